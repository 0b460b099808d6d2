"""Which instants of a time trigger are due, and what becomes of those that were missed (SEMANTICS 3).

A pure walk from the last scheduled instant, never from now. It may stop anywhere: what it has gathered and not made yet, and how
many it has made of the same cause, is the cursor in the schedule's state, so that the next transaction, or the next owner
after a second crash, goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, TypeAlias

from tidegate_core.language.definitions.catch_up_policy import CatchUpPolicy
from tidegate_core.language.triggers.search import Next
from tidegate_core.rows.outage import Outage
from tidegate_core.shard.outages.outage_time import CatchUp, outage_at

MADE_PER_TRANSACTION = 8
"""Occurrences of one schedule made in one transaction; the rest follows at once through the next timer row."""
WALKED_PER_TRANSACTION = 500
"""Instants looked at in one transaction: a cron expression costs some 20 µs each, and the lane has others to serve."""

Fate: TypeAlias = Literal["on_time", "alone", "last", "coalesced", "left_out", "too_old"]
"""`on_time`: as if nothing had been. `alone`: missed, and a job of its own all the same. `last`, `coalesced`: one job for many, of
the last one's data or of all. `left_out`, `too_old`: no job, and an entry in the ledger for all of them.
"""
ALONE = frozenset({"on_time", "alone"})
GATHERED_BY: dict[CatchUp, Fate] = {"all": "coalesced", "last": "last", "coalesce": "coalesced", "none": "left_out"}
"""What becomes of instants that are gathered; of `all`, of those that are too many."""


@dataclass(frozen=True, slots=True)
class Due:
    """An occurrence that is due, with the instants that it stands for.

    Attributes:
        first, last: Of these instants; `last` is its nominal.
        count: Their number.
    """

    first: int
    last: int
    count: int = 1
    fate: Fate = "on_time"


@dataclass(frozen=True, slots=True)
class Missed:
    """A span whose instants were missed for one cause: `begin <= instant < end`."""

    begin: int
    end: int
    mode: CatchUp

    def __contains__(self, instant: int) -> bool:
        return self.begin <= instant < self.end


@dataclass(frozen=True, slots=True)
class Made:
    """How many instants of the missed span that begins there have jobs of their own."""

    begin: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """What is missed, and what the schedule wants of it.

    Attributes:
        policy: The schedule's.
        now: The present.
        outages: Facts of the shard.
        own: What this very schedule missed: by a pause, at its creation, by an update.
        activated_at: Since when its instants count; an earlier one is an `at` that had passed.
        through: Up to when they are walked, where not all that are due are the present state's to make.
    """

    policy: CatchUpPolicy
    now: int
    outages: Sequence[Outage] = ()
    own: Missed | None = None
    activated_at: int = 0
    through: int | None = None

    def is_due(self, following: Next) -> bool:
        return following.is_due(self.now if self.through is None else self.through)

    def missed_at(self, instant: int) -> Missed | None:
        if self.own is not None and instant in self.own:
            return self.own
        if instant < self.activated_at:
            return None  # An `at` that had passed when it was applied: whoever was away then, nobody missed it.
        outage = outage_at(self.outages, instant)
        return None if outage is None else Missed(outage.begin, outage.end, self.policy.mode)

    def fate(self, instant: int, missed: Missed | None, alone: int) -> Fate:
        """Returns what becomes of an instant, when so many of its span have jobs of their own."""
        if missed is None:
            return "too_old" if instant + self.policy.window < self.activated_at else "on_time"
        if missed.mode == "none":
            return "left_out"
        if instant + self.policy.window < self.now:
            return "too_old"
        if missed.mode == "all" and alone < self.policy.max_runs:
            return "alone"
        return GATHERED_BY[missed.mode]


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a walk came.

    Attributes:
        made: Occurrences, in their order.
        gathered: Instants that one is to stand for, whose others are still to be walked.
        following: The next instant, due or not, or how far it was searched.
        alone: Counts towards `max_runs`.
    """

    made: tuple[Due, ...]
    gathered: Due | None
    following: Next
    alone: Made = Made()


def walk(
    following: Next,
    next_after: Callable[[int], Next],
    rules: Rules,
    gathered: Due | None = None,
    alone: Made = Made(),
) -> Walk:
    """Walks the instants that are due.

    Args:
        following: The first one that was not walked yet. A walk ends where only a bound of it is known: what may be gathered
            with it is not, until it lies behind the present.
        next_after: The trigger's own.
        rules: What was missed, and what is due.
        gathered: From the walk before.
        alone: From the walk before.
    """
    made: list[Due] = []
    walked = 0
    while len(made) < MADE_PER_TRANSACTION and walked < WALKED_PER_TRANSACTION:
        nominal = following.found
        if nominal is None or not rules.is_due(following):
            break
        missed = rules.missed_at(nominal)
        mine = alone if missed is not None and alone.begin == missed.begin else Made()
        fate = rules.fate(nominal, missed, mine.count)
        walked += 1
        if gathered is not None and not _goes_with(gathered, fate, missed):
            made.append(gathered)
            gathered = None
            continue  # This instant comes again: there may be no room for it.
        if gathered is not None:
            gathered = replace(gathered, last=nominal, count=gathered.count + 1)
        elif fate in ALONE:
            made.append(Due(nominal, nominal, fate=fate))
            alone = Made(missed.begin, mine.count + 1) if missed is not None and fate == "alone" else alone
        else:
            gathered = Due(nominal, nominal, fate=fate)
        following = next_after(nominal)
    if gathered is not None and not rules.is_due(following):
        made.append(gathered)
        gathered = None
    return Walk(tuple(made), gathered, following, alone)


def _goes_with(gathered: Due, fate: Fate, missed: Missed | None) -> bool:
    return fate == gathered.fate and missed is not None and gathered.last in missed


def at_most(left: int | None, next_after: Callable[[int], Next]) -> Callable[[int], Next]:
    """Returns the same trigger's `next_after`, which ends after `left` instants were walked; None is without a bound.

    The walk asks for the next instant once for each that it has walked.
    """
    walked = count(1)
    return lambda after: Next(None) if left is not None and next(walked) >= left else next_after(after)
