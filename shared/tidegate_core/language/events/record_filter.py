"""Places of values in a record of a source's topic, and filters that select records or elements of their lists.

A place is a header, a pointer into the record's JSON, or a pointer into one element of a list in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Final, Protocol, Self

from pydantic import Field, StringConstraints, model_validator

from tidegate_core.language.values.comparison import MAX_COMPARISONS, Comparison
from tidegate_core.language.values.document import PLATFORM, AtMost, Document, planned
from tidegate_core.language.values.names import VISIBLE_PATTERN
from tidegate_core.language.values.problems import refused

PARTS_MAX: Final = 256
"""Characters of a header's name or of a pointer. One item of the store holds all sources, so each must stay small."""
PLACES: Final = ("header", "pointer", "record")

HeaderName = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX, pattern=VISIBLE_PATTERN)]
Pointer = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX)]


class Place(Document):
    """Place of a value in a record.

    Attributes:
        header: Name of a header; if the record has several of that name, the last one counts.
        pointer: JSON pointer (RFC 6901) into the record's value, such as `/file/day`; with `each`, into one element.
        record: JSON pointer into the whole value of the record, for sources with `each`.
    """

    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "expression", "key")

    header: HeaderName | None = None
    pointer: Pointer | None = None
    record: Pointer | None = None

    @model_validator(mode="after")
    def _pointers_begin_with_a_slash(self) -> Self:
        for name in ("pointer", "record"):
            check_pointer(getattr(self, name), name)
        return self

    @property
    def places(self) -> tuple[str, ...]:
        """Fields of `PLACES` that are given."""
        return tuple(name for name in PLACES if getattr(self, name) is not None)


def check_pointer(pointer: str | None, field: str) -> None:
    """Refuses a pointer that does not begin with a slash; accepts None."""
    if pointer and not pointer.startswith("/"):
        raise refused("is no JSON pointer", hint="begin it with a slash, such as /file/day", field=field)


_NUMERIC = ("above", "at_least", "below", "at_most")


class Unreadable:
    """Stands for every value of a record that is no JSON."""


UNREADABLE = Unreadable()


class Values(Protocol):
    """Values of one record, by place."""

    def at(self, place: Place) -> Any:
        """Returns the value, `MISSING`, or `UNREADABLE`."""
        ...


class RecordFilter(Comparison, Place):
    """A comparison of the value at a header or JSON pointer, or a combination of filters by `all_of`, `any_of` or `not`.

    Attributes:
        all_of: Filters that must all hold.
        any_of: Filters of which one must hold.
        negated: Filter that must not hold; `not` in JSON.
    """

    EXAMPLE: ClassVar = {
        "all_of": [
            {"header": "type", "in": ["commit", "landing"]},
            {"pointer": "/eventName", "prefix": "ObjectCreated:"},
        ]
    }
    FIELD_HINTS: ClassVar = {
        **Comparison.FIELD_HINTS,
        "field": "a source compares what a header or a pointer leads to, such as {pointer: /type, equals: commit}",
    }

    all_of: Annotated[tuple[RecordFilter, ...], Field(min_length=1), AtMost(MAX_COMPARISONS)] | None = None
    any_of: Annotated[tuple[RecordFilter, ...], Field(min_length=1), AtMost(MAX_COMPARISONS)] | None = None
    negated: RecordFilter | None = Field(default=None, alias="not")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        self.check_form(self.places, "one header, pointer or record", "{pointer: /type, equals: commit}")
        if self.header is not None:
            self._check_texts()
        return self

    def _check_texts(self) -> None:
        """Refuses comparisons of a header with a number or boolean: a header is a text, so they would never hold."""
        hint = "a header is a text: put it in quotes"
        if self.equals is not None and not isinstance(self.equals, str):
            raise refused("can never be true", hint=hint, field="equals")
        if any(not isinstance(each, str) for each in self.one_of or ()):
            raise refused("can never be true", hint=hint, field="in")
        for name in _NUMERIC:
            if getattr(self, name) is not None:
                raise refused(
                    "can never be true", hint="a header is a text: compare it by equals, in or prefix", field=name
                )

    def parts(self) -> Sequence[RecordFilter]:
        negated = () if self.negated is None else (self.negated,)
        return (*(self.all_of or ()), *(self.any_of or ()), *negated)

    def compared(self) -> Iterator[Place]:
        """Yields the places whose values the filter compares."""
        if self.places:
            yield self
        for each in self.parts():
            yield from each.compared()

    def holds(self, values: Values) -> bool | None:
        """Returns whether a record passes; None if the answer needs a value of its JSON, and the record is no JSON.

        If headers alone decide the answer, the filter never returns None, in any order of its comparisons.
        """
        if self.all_of is not None:
            return _all(each.holds(values) for each in self.all_of)
        if self.any_of is not None:
            return _not(_all(_not(each.holds(values)) for each in self.any_of))
        if self.negated is not None:
            return _not(self.negated.holds(values))
        value = values.at(self)
        return None if value is UNREADABLE else self.holds_of(value)


def _all(parts: Iterator[bool | None]) -> bool | None:
    found = list(parts)
    if False in found:
        return False
    return None if None in found else True


def _not(holds: bool | None) -> bool | None:
    return None if holds is None else not holds
