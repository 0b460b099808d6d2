"""Comparisons that contradict each other, in filters of triggers and of sources: no value passes all of them.

The checks of an apply call this, so that such a filter is refused and nobody waits for what it would let through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol, Self, TypeVar

from tidegate_core.language.values.comparison import Comparison
from tidegate_core.language.values.problems import Problem

BOUNDS: Final = ("above", "at_least", "below", "at_most")


class Combining(Protocol):
    """A filter: one comparison, or a combination of filters."""

    @property
    def all_of(self) -> tuple[Self, ...] | None:
        """All of these hold."""
        ...

    @property
    def any_of(self) -> tuple[Self, ...] | None:
        """One of these holds."""
        ...

    @property
    def negated(self) -> Self | None:
        """This does not hold."""
        ...


_Filter = TypeVar("_Filter", bound=Combining)


def compared(where: _Filter, path: str, *, is_negated: bool = False) -> Iterator[tuple[str, _Filter, bool]]:
    """Yields each comparison of a filter with its place, and whether it stands under an odd number of `not`.

    Args:
        where: The filter.
        path: Its place.
        is_negated: Whether it stands under such a number itself.
    """
    if where.all_of is None and where.any_of is None and where.negated is None:
        yield path, where, is_negated
    if where.negated is not None:
        yield from compared(where.negated, f"{path}.not", is_negated=not is_negated)
    for name, parts in (("all_of", where.all_of), ("any_of", where.any_of)):
        for place, each in enumerate(parts or ()):
            yield from compared(each, f"{path}.{name}[{place}]", is_negated=is_negated)


def contradiction(where: Comparison, path: str, *, is_whole: bool = False) -> Problem | None:
    """Returns the problem of a comparison that holds for no value at all.

    Args:
        where: The comparison.
        path: Its place.
        is_whole: Whether the value is a whole number from 0 on, if it is a number.
    """
    others = [name for name, _ in _given(where) if name != "exists"]
    if where.exists is False and others:
        return Problem(path, f"can never be true: what does not exist has no {others[0]}", "leave one of them out")
    if where.exists is not False and not _may_hold(where, is_whole=is_whole):
        return Problem(path, "can never be true: its comparisons exclude each other", "look at its bounds and values")
    return None


def values_of(where: Comparison, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the values that something has to be equal to, each with its place."""
    if where.equals is not None:
        yield f"{path}.equals", where.equals
    yield from ((f"{path}.in[{place}]", value) for place, value in enumerate(where.one_of or ()))


def _given(where: Comparison) -> Iterator[tuple[str, Any]]:
    for name in ("equals", "one_of", "prefix", *BOUNDS, "exists"):
        if (value := getattr(where, name)) is not None:
            yield name, value


def _may_hold(where: Comparison, *, is_whole: bool) -> bool:
    """Whether some value passes all of the comparisons."""
    values = [value for _, value in values_of(where, "")]
    if values:
        return any(where.holds_of(value) for value in values)
    bounds = [getattr(where, name) for name in BOUNDS]
    if where.prefix is not None or bounds == [None] * len(BOUNDS):
        return bounds == [None] * len(BOUNDS)
    return _has_number(where, is_whole=is_whole)


def _has_number(where: Comparison, *, is_whole: bool) -> bool:
    """Whether a number lies within all bounds; of whole ones, which count something, one from 0 on."""
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
