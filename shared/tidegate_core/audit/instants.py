"""A trigger's instants, as far as an audit looks."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate_core.model.instants import Instant
from tidegate_core.triggers.base import TimeTrigger
from tidegate_core.triggers.search import Search


def next_instant(trigger: TimeTrigger, ref: str, after: Instant, through: Instant) -> Instant | None:
    """Returns the first instant behind `after`; None where there is none up to `through`.

    What lies behind that is not searched for: exclusions may leave out years.
    """
    found = trigger.seek(after, ref, Search(ahead=max(0, through - after))).found
    return None if found is None or found > through else found


def instants_between(trigger: TimeTrigger, ref: str, first: Instant, last: Instant) -> Iterator[Instant]:
    """Yields the instants from `first` to `last`, both included."""
    instant = next_instant(trigger, ref, first - 1, last)
    while instant is not None:
        yield instant
        instant = next_instant(trigger, ref, instant, last)
