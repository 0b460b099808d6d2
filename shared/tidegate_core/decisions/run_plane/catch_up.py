"""Which instants of a time trigger are due, and which of those that fell into an outage become one (SEMANTICS 3).

A pure walk from the last scheduled instant, never from now. It may stop anywhere: what it has gathered of an outage and not
made yet is the cursor in the schedule's state, so that the next transaction, or the next owner after a second crash, goes on
where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tidegate_core.decisions.outages import CatchUp, outage_at
from tidegate_core.records.outages import Outage

MADE_PER_TRANSACTION = 8
"""Occurrences of one schedule made in one transaction; the rest follows at once through the next timer row."""
WALKED_PER_TRANSACTION = 500
"""Instants looked at in one transaction: a cron expression costs some 20 µs each, and the lane has others to serve."""


@dataclass(frozen=True, slots=True)
class Due:
    """An occurrence that is due, with the instants that it stands for.

    Attributes:
        first, last: Of these instants; `last` is its nominal.
        count: Their number.
        missed: Whether they fell into an outage, and the schedule wants other than a job for each.
    """

    first: int
    last: int
    count: int = 1
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a walk came.

    Attributes:
        made: Occurrences, in their order.
        gathered: Instants of an outage whose others are still to be walked.
        following: The next instant, due or not; None when there is no more.
    """

    made: tuple[Due, ...]
    gathered: Due | None
    following: int | None


def walk(
    nominal: int | None,
    next_after: Callable[[int], int | None],
    now: int,
    mode: CatchUp = "all",
    outages: Sequence[Outage] = (),
    gathered: Due | None = None,
) -> Walk:
    """Walks the instants that are due.

    Args:
        nominal: The first one that was not walked yet.
        next_after: The trigger's own.
        now: Instants after it are not due.
        mode: What becomes of instants in an outage.
        outages: Facts of the shard.
        gathered: From the walk before.
    """
    made: list[Due] = []
    walked = 0
    while _is_due(nominal, now) and len(made) < MADE_PER_TRANSACTION and walked < WALKED_PER_TRANSACTION:
        assert nominal is not None
        outage = None if mode == "all" else outage_at(outages, nominal)
        if gathered is not None and (outage is None or gathered.last not in outage):
            made.append(gathered)
            gathered = None
        elif gathered is not None:
            gathered = replace(gathered, last=nominal, count=gathered.count + 1)
            nominal = next_after(nominal)
        else:
            due = Due(nominal, nominal, missed=outage is not None)
            gathered, made = (due, made) if due.missed else (None, [*made, due])
            nominal = next_after(nominal)
        walked += 1
    if gathered is not None and not _is_due(nominal, now):
        made.append(gathered)
        gathered = None
    return Walk(tuple(made), gathered, nominal)


def at_most(left: int | None, next_after: Callable[[int], int | None]) -> Callable[[int], int | None]:
    """Returns the same trigger's `next_after`, which ends after `left` instants were walked; None is without a bound.

    The walk asks for the next instant once for each that it has walked.
    """
    walked = count(1)
    return lambda after: None if left is not None and next(walked) >= left else next_after(after)


def _is_due(nominal: int | None, now: int) -> bool:
    return nominal is not None and nominal <= now
