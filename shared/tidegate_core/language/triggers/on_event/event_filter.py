"""Filters on the fields of an event: a small grammar without code, bounded in size.

A comparison with a missing value, or with a value of another type, is false. So a filter has a result for every event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, Field, Strict, StringConstraints, model_validator

from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.values.comparison import MAX_COMPARISONS, Comparison
from tidegate_core.language.values.document import AtMost, Document
from tidegate_core.language.values.json_values import MISSING, value_at
from tidegate_core.language.values.problems import refused

_FIELDS = ("partition", "kind", "version", "producer", "bytes", "rows", "subject")
_DATA = "/data"

FilteredEvent: TypeAlias = DataPartitionEvent | CustomEvent


def _known_field(name: str) -> str:
    if name in _FIELDS or name == _DATA or name.startswith(f"{_DATA}/"):
        return name
    raise refused(
        f'"{name[:64]}" is no field of events', hint=f"{', '.join(_FIELDS)}, or a JSON pointer from {_DATA} on"
    )


FieldName = Annotated[str, Strict(), StringConstraints(min_length=1, max_length=256), AfterValidator(_known_field)]


class EventField(Document):
    """The compared field of an event.

    Attributes:
        field: Name `partition`, `kind`, `version`, `producer`, `bytes`, `rows` or `subject`, or a pointer such as `/data/day`.
    """

    field: FieldName | None = None


class Filter(Comparison, EventField):
    """A comparison of a `field`, or a combination of filters by `all_of`, `any_of` or `not`.

    Attributes:
        all_of: Filters that must all hold.
        any_of: Filters of which one must hold.
        negated: Filter that must not hold; `not` in JSON.
    """

    EXAMPLE: ClassVar = {
        "all_of": [
            {"field": "partition", "prefix": "2026-"},
            {"not": {"field": "bytes", "below": 1024}},
        ]
    }

    all_of: Annotated[tuple[Filter, ...], Field(min_length=1), AtMost(MAX_COMPARISONS)] | None = None
    any_of: Annotated[tuple[Filter, ...], Field(min_length=1), AtMost(MAX_COMPARISONS)] | None = None
    negated: Filter | None = Field(default=None, alias="not")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        places = () if self.field is None else ("field",)
        self.check_form(places, "a field", "{field: bytes, above: 0}")
        return self

    def holds_for(self, event: FilteredEvent) -> bool:
        """Returns whether an event passes."""
        return self.holds_in(event.model_dump(mode="json", by_alias=True))

    def fields(self) -> Iterator[str]:
        """Yields the compared fields."""
        if self.field is not None:
            yield self.field
        for each in self.parts():
            yield from each.fields()

    def parts(self) -> Sequence[Filter]:
        negated = () if self.negated is None else (self.negated,)
        return (*(self.all_of or ()), *(self.any_of or ()), *negated)

    def holds_in(self, event: dict[str, Any]) -> bool:
        """Returns whether an event as a JSON document passes."""
        if self.all_of is not None:
            return all(each.holds_in(event) for each in self.all_of)
        if self.any_of is not None:
            return any(each.holds_in(event) for each in self.any_of)
        if self.negated is not None:
            return not self.negated.holds_in(event)
        assert self.field is not None
        return self.holds_of(_found(event, self.field))


def _found(event: dict[str, Any], name: str) -> Any:
    """Returns the value at a field's name or JSON pointer (RFC 6901), or `MISSING`."""
    if not name.startswith("/"):
        value = event.get(name)
        return MISSING if value is None else value
    value = value_at(event, name)
    # The stored form has no field for data that are null, so null data count as missing.
    return MISSING if name == _DATA and value is None else value
