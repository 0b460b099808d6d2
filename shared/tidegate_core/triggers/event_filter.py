"""Filters on what an event says: a closed, small grammar without code, total on every event, bounded in size.

A comparison with something that is not there, or is of another kind, is false; so a filter never fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, Strict, StringConstraints, WithJsonSchema, model_validator

from tidegate_core.model.document import AtMost, Document, Flag
from tidegate_core.model.events import CustomEvent, DataPartitionEvent
from tidegate_core.model.problems import refused
from tidegate_core.sources.pointers import MISSING, value_at

MAX_DEPTH = 5
MAX_COMPARISONS = 50
MAX_CHOICES = 100
LARGEST_NUMBER = 1.7976931348623157e308
"""Of a comparison: a float's largest. Other readers of JSON take no larger one."""

_FIELDS = ("partition", "kind", "version", "producer", "bytes", "rows", "subject")
_DATA = "/data"

FilteredEvent: TypeAlias = DataPartitionEvent | CustomEvent


def _known_field(name: str) -> str:
    if name in _FIELDS or name == _DATA or name.startswith(f"{_DATA}/"):
        return name
    raise refused(
        f'"{name[:64]}" is no field of events', hint=f"{', '.join(_FIELDS)}, or a JSON pointer from {_DATA} on"
    )


def _scalar(value: Any) -> Any:
    if isinstance(value, str | bool):
        return value
    if _is_number(value):
        return _within_bounds(value)
    hint = 'quote it: "null"' if value is None else ""
    raise refused("is neither a text, a number nor true/false", hint=hint)


def _number(value: Any) -> Any:
    if _is_number(value):
        return _within_bounds(value)
    raise refused("is not a number", hint="write one without quotes, such as 1024")


def _within_bounds(value: float) -> float:
    if abs(value) > LARGEST_NUMBER:
        raise refused("is beyond 1.8e308", hint="give a number that fits a float")
    return value


def _is_number(value: Any) -> bool:
    """Whether it can be compared. A whole number always can: of those Python knows no largest one, and JSON neither."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


FieldName = Annotated[str, Strict(), StringConstraints(min_length=1, max_length=256), AfterValidator(_known_field)]
Scalar = Annotated[Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Number = Annotated[Any, BeforeValidator(_number), WithJsonSchema({"type": "number"})]

_COMPARISONS = ("equals", "in", "prefix", "above", "at_least", "below", "at_most", "exists")
_COMBINATIONS = ("all_of", "any_of", "not")


class Filter(Document):
    """One comparison of a `field`, or a combination of filters by `all_of`, `any_of` or `not`.

    Attributes:
        field: `partition`, `kind`, `version`, `producer`, `bytes`, `rows`, `subject`, or a JSON pointer such as `/data/day`.
        equals: The same text, number or truth.
        one_of: One of these; `in` in JSON.
        prefix: A text that begins so.
        above, at_least, below, at_most: A number; several of them bound it from both sides.
        exists: Whether it is there at all; null within `/data` is there.
        all_of: All of these hold.
        any_of: One of these holds.
        negated: This does not hold; `not` in JSON.
    """

    EXAMPLE: ClassVar = {
        "all_of": [
            {"field": "partition", "prefix": "2026-"},
            {"not": {"field": "bytes", "below": 1024}},
        ]
    }
    FIELD_HINTS: ClassVar = {
        "and": "the word is all_of",
        "or": "the word is any_of",
        "gt": "the word is above",
        "gte": "the word is at_least",
        "lt": "the word is below",
        "lte": "the word is at_most",
        "eq": "the word is equals",
    }

    field: FieldName | None = None
    equals: Scalar | None = None
    one_of: Annotated[tuple[Scalar, ...], Field(min_length=1), AtMost(MAX_CHOICES)] | None = Field(
        default=None, alias="in"
    )
    prefix: Annotated[str, Strict(), StringConstraints(max_length=1024)] | None = None
    above: Number | None = None
    at_least: Number | None = None
    below: Number | None = None
    at_most: Number | None = None
    exists: Flag | None = None
    all_of: Annotated[tuple[Filter, ...], Field(min_length=1), AtMost(MAX_COMPARISONS)] | None = None
    any_of: Annotated[tuple[Filter, ...], Field(min_length=1), AtMost(MAX_COMPARISONS)] | None = None
    negated: Filter | None = Field(default=None, alias="not")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        compares = [name for name in _COMPARISONS if getattr(self, _ATTRIBUTES.get(name, name)) is not None]
        combines = [name for name in _COMBINATIONS if getattr(self, _ATTRIBUTES.get(name, name)) is not None]
        if len(combines) + (self.field is not None) != 1 or (compares and self.field is None):
            raise refused(
                "needs either a field with a comparison, or one of all_of, any_of, not",
                hint="such as {field: bytes, above: 0}",
            )
        if self.field is not None and not compares:
            raise refused(f"is not compared with anything: one of {', '.join(_COMPARISONS)}", field="field")
        if self.depth > MAX_DEPTH:
            raise refused(f"is {self.depth} levels deep, at most {MAX_DEPTH} are allowed")
        if self.comparisons > MAX_COMPARISONS:
            raise refused(f"has {self.comparisons} comparisons, at most {MAX_COMPARISONS} are allowed")
        return self

    @property
    def depth(self) -> int:
        return 1 + max((each.depth for each in self._parts()), default=0)

    @property
    def comparisons(self) -> int:
        return sum(each.comparisons for each in self._parts()) or 1

    def holds_for(self, event: FilteredEvent) -> bool:
        """Returns whether an event is meant."""
        return self.holds_in(event.model_dump(mode="json", by_alias=True))

    def fields(self) -> Iterator[str]:
        """Yields what is compared."""
        if self.field is not None:
            yield self.field
        for each in self._parts():
            yield from each.fields()

    def _parts(self) -> Sequence[Filter]:
        negated = () if self.negated is None else (self.negated,)
        return (*(self.all_of or ()), *(self.any_of or ()), *negated)

    def holds_in(self, event: dict[str, Any]) -> bool:
        """Returns whether a JSON document is meant."""
        if self.all_of is not None:
            return all(each.holds_in(event) for each in self.all_of)
        if self.any_of is not None:
            return any(each.holds_in(event) for each in self.any_of)
        if self.negated is not None:
            return not self.negated.holds_in(event)
        assert self.field is not None
        return self.holds_of(_found(event, self.field))

    def holds_of(self, value: Any) -> bool:
        """Returns whether all comparisons with a value hold; there may be several of one field."""
        return (
            (self.exists is None or self.exists == (value is not MISSING))
            and (self.equals is None or _same(value, self.equals))
            and (self.one_of is None or any(_same(value, each) for each in self.one_of))
            and (self.prefix is None or (isinstance(value, str) and value.startswith(self.prefix)))
            and self._in_bounds(value)
        )

    def _in_bounds(self, value: Any) -> bool:
        if self.above is None and self.at_least is None and self.below is None and self.at_most is None:
            return True
        if not _is_number(value):
            return False
        return (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )


_ATTRIBUTES = {"in": "one_of", "not": "negated"}


def _same(value: Any, wanted: Any) -> bool:
    """Python takes True for 1, and nobody else does."""
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _found(event: dict[str, Any], name: str) -> Any:
    """Returns what a field or a JSON pointer (RFC 6901) leads to."""
    if not name.startswith("/"):
        value = event.get(name)
        return MISSING if value is None else value
    value = value_at(event, name)
    # Of data that are null the stored form says nothing, as of an event without any.
    return MISSING if name == _DATA and value is None else value
