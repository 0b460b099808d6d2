"""Where in a record of a source's topic a value lies: in a header, in its JSON, or in one element of a list in it.

Filters on the records of a source's topic: which of them, or which elements of their lists, are meant for the source.
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
"""Characters of a header's name or of a pointer: a source lies in the item of all sources."""
PLACES: Final = ("header", "pointer", "record")

HeaderName = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX, pattern=VISIBLE_PATTERN)]
Pointer = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX)]


class Place(Document):
    """Where a value lies.

    Attributes:
        header: Name of a header of the record; of several the last one counts.
        pointer: JSON pointer (RFC 6901) into the record's value, such as `/file/day`; with `each` into one of its elements.
        record: With `each`: JSON pointer into the record's value as a whole.
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
        """The fields that it has of `PLACES`."""
        return tuple(name for name in PLACES if getattr(self, name) is not None)


def check_pointer(pointer: str | None, field: str) -> None:
    """Passes a JSON pointer, or none."""
    if pointer and not pointer.startswith("/"):
        raise refused("is no JSON pointer", hint="begin it with a slash, such as /file/day", field=field)


_NUMERIC = ("above", "at_least", "below", "at_most")


class Unreadable:
    """In place of a value: the record is no JSON, so that nobody can say what it is."""


UNREADABLE = Unreadable()


class Values(Protocol):
    """What a record has in its places."""

    def at(self, place: Place) -> Any:
        """Returns the value, `MISSING`, or `UNREADABLE`."""
        ...


class RecordFilter(Comparison, Place):
    """One comparison of what a header or a JSON pointer leads to, or a combination of filters by `all_of`, `any_of` or `not`.

    Attributes:
        all_of: All of these hold.
        any_of: One of these holds.
        negated: This does not hold; `not` in JSON.
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
        """A header is a text: compared with anything else the filter would let nothing through, for ever."""
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
        """Yields the places that it looks into."""
        if self.places:
            yield self
        for each in self.parts():
            yield from each.compared()

    def holds(self, values: Values) -> bool | None:
        """Returns whether a record is meant; None where only JSON could tell, and it is none.

        What its headers say decides where it can, in whichever order the filter names them.
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
