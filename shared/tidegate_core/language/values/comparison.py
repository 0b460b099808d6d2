"""Comparisons of one JSON value, and the check for comparisons that contradict each other.

Filters of triggers and of sources are built from `Comparison`. Each comparison has a result for every value: it is false if
the value is missing or has another type. Filters contain no code.

Without a check, a schedule could wait for ever for an event that passes its filter. So an apply calls `contradiction` and
refuses filters that no event can pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Final, Protocol, Self, TypeVar

from pydantic import BeforeValidator, Field, Strict, StringConstraints, WithJsonSchema

from tidegate_core.language.values.document import AtMost, Document, Flag
from tidegate_core.language.values.json_values import MISSING
from tidegate_core.language.values.problems import Problem, refused

MAX_CHOICES: Final = 100
LARGEST_NUMBER: Final = 1.7976931348623157e308
"""Largest number in a comparison: the largest float. Other JSON readers accept no larger one."""
COMPARISONS: Final = ("equals", "in", "prefix", "above", "at_least", "below", "at_most", "exists")
COMBINATIONS: Final = ("all_of", "any_of", "not")
_ATTRIBUTES: Final = {"in": "one_of", "not": "negated"}
"""Attribute names for JSON fields that are Python keywords."""
MAX_DEPTH: Final = 5
"""Levels of one filter."""
MAX_COMPARISONS: Final = 50
"""Comparisons in one filter."""


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
    """Whether a value can be compared as a number. Every whole number can: Python and JSON have no largest one."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


Scalar = Annotated[Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Number = Annotated[Any, BeforeValidator(_number), WithJsonSchema({"type": "number"})]


class Comparison(Document):
    """Comparisons with one value; all given comparisons must hold. A filter adds which value is compared, and combinations.

    Attributes:
        equals: Text, number or boolean that the value must equal.
        one_of: List of such values, any of which the value must equal; `in` in JSON.
        prefix: Beginning of the text.
        above, at_least, below, at_most: Bound of a number; two of them give a range.
        exists: Whether the value must exist or must be missing; null exists.
    """

    FIELD_HINTS: ClassVar = {
        "and": "the word is all_of",
        "or": "the word is any_of",
        "gt": "the word is above",
        "gte": "the word is at_least",
        "lt": "the word is below",
        "lte": "the word is at_most",
        "eq": "the word is equals",
    }

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

    def parts(self) -> Sequence[Comparison]:
        """Returns the filters that this filter combines."""
        return ()

    @property
    def depth(self) -> int:
        return 1 + max((each.depth for each in self.parts()), default=0)

    @property
    def comparisons(self) -> int:
        return sum(each.comparisons for each in self.parts()) or 1

    def check_form(self, places: Sequence[str], what: str, example: str) -> None:
        """Accepts either one value with comparisons or one combination, within the size bounds.

        Args:
            places: Given fields that name the compared value.
            what: Description of these fields for the error text.
            example: A valid comparison for the error text.

        Raises:
            PydanticCustomError: The filter has another form or is too large.
        """
        compares = self._given(COMPARISONS)
        combines = self._given(COMBINATIONS)
        if len(combines) + len(places) != 1 or (compares and not places):
            raise refused(
                f"needs either {what} with a comparison, or one of all_of, any_of, not", hint=f"such as {example}"
            )
        if places and not compares:
            raise refused(f"is not compared with anything: add one of {', '.join(COMPARISONS)}", field=places[0])
        if self.depth > MAX_DEPTH:
            raise refused(f"is {self.depth} levels deep, at most {MAX_DEPTH} are allowed")
        if self.comparisons > MAX_COMPARISONS:
            raise refused(f"has {self.comparisons} comparisons, at most {MAX_COMPARISONS} are allowed")

    def _given(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if getattr(self, _ATTRIBUTES.get(name, name)) is not None]

    def holds_of(self, value: Any) -> bool:
        """Returns whether all given comparisons hold for the value."""
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


def _same(value: Any, wanted: Any) -> bool:
    """Compares two values as JSON does: in Python `True == 1`, in JSON they differ."""
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


BOUNDS: Final = ("above", "at_least", "below", "at_most")


class Combining(Protocol):
    """A filter: one comparison, or a combination of filters."""

    @property
    def all_of(self) -> tuple[Self, ...] | None:
        """Filters that must all hold."""
        ...

    @property
    def any_of(self) -> tuple[Self, ...] | None:
        """Filters of which one must hold."""
        ...

    @property
    def negated(self) -> Self | None:
        """Filter that must not hold."""
        ...


_Filter = TypeVar("_Filter", bound=Combining)


def compared(where: _Filter, path: str, *, is_negated: bool = False) -> Iterator[tuple[str, _Filter, bool]]:
    """Yields each comparison of a filter with its path, and whether an odd number of `not` encloses it.

    Args:
        where: The filter.
        path: Path of the filter in the document.
        is_negated: Whether an odd number of `not` encloses the filter itself.
    """
    if where.all_of is None and where.any_of is None and where.negated is None:
        yield path, where, is_negated
    if where.negated is not None:
        yield from compared(where.negated, f"{path}.not", is_negated=not is_negated)
    for name, parts in (("all_of", where.all_of), ("any_of", where.any_of)):
        for place, each in enumerate(parts or ()):
            yield from compared(each, f"{path}.{name}[{place}]", is_negated=is_negated)


def contradiction(where: Comparison, path: str, *, is_whole: bool = False) -> Problem | None:
    """Returns the problem of a comparison that no value passes; None if some value passes it.

    Args:
        where: The comparison.
        path: Path of the comparison in the document.
        is_whole: Whether a number in this place is always a whole number from 0 on.
    """
    others = [name for name, _ in _given(where) if name != "exists"]
    if where.exists is False and others:
        return Problem(path, f"can never be true: a missing value has no {others[0]}", "leave one of them out")
    if where.exists is not False and not _may_hold(where, is_whole=is_whole):
        return Problem(path, "can never be true: its comparisons exclude each other", "check its bounds and values")
    return None


def values_of(where: Comparison, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the values of `equals` and `in`, each with its path."""
    if where.equals is not None:
        yield f"{path}.equals", where.equals
    yield from ((f"{path}.in[{place}]", value) for place, value in enumerate(where.one_of or ()))


def _given(where: Comparison) -> Iterator[tuple[str, Any]]:
    for name in ("equals", "one_of", "prefix", *BOUNDS, "exists"):
        if (value := getattr(where, name)) is not None:
            yield name, value


def _may_hold(where: Comparison, *, is_whole: bool) -> bool:
    """Whether some value passes all comparisons."""
    values = [value for _, value in values_of(where, "")]
    if values:
        return any(where.holds_of(value) for value in values)
    bounds = [getattr(where, name) for name in BOUNDS]
    if where.prefix is not None or bounds == [None] * len(BOUNDS):
        return bounds == [None] * len(BOUNDS)
    return _has_number(where, is_whole=is_whole)


def _has_number(where: Comparison, *, is_whole: bool) -> bool:
    """Whether some number is within all bounds; with `is_whole`, some whole number from 0 on."""
    low = max(
        (each for each in (where.above, where.at_least, 0 if is_whole else None) if each is not None), default=None
    )
    high = min((each for each in (where.below, where.at_most) if each is not None), default=None)
    if low is None or high is None:
        return True
    if not is_whole:
        is_open = where.above == low or where.below == high
        return bool(low < high or (low == high and not is_open))
    first = int(low) + (low != int(low) or where.above == low)
    return bool(first < high or (first == high and where.below != high))
