"""The walk over due instants of a time trigger, and the outcome of misfires.

It is pure, and starts at the last scheduled instant, never at now. It may stop anywhere. The state's cursor holds the
gathered instants without an occurrence, and the number of own jobs for the same span. So the next transaction, or the
next owner after a second crash, continues where it stopped.
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
"""Occurrences of one schedule created in one transaction; the next timer row creates the rest at once."""
WALKED_PER_TRANSACTION = 500
"""Instants walked in one transaction: a cron expression costs some 20 µs each, and other decisions wait."""

Fate: TypeAlias = Literal["on_time", "alone", "last", "coalesced", "left_out", "too_old"]
"""Outcome of an instant.

- `on_time`: a normal job.
- `alone`: missed, with its own job.
- `last`, `coalesced`: one job for many instants, with the data of the last one or of all.
- `left_out`, `too_old`: no job, one ledger entry for all of them.
"""
ALONE = frozenset({"on_time", "alone"})
GATHERED_BY: dict[CatchUp, Fate] = {"all": "coalesced", "last": "last", "coalesce": "coalesced", "none": "left_out"}
"""Outcome of gathered instants by catch-up mode; for `all`, of the instants beyond `max_runs`."""


@dataclass(frozen=True, slots=True)
class Due:
    """A due occurrence with the instants that it stands for.

    Attributes:
        first, last: First and last of these instants; `last` is the nominal time.
        count: Number of instants.
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
    """Number of instants with own jobs in the missed span that begins at `begin`."""

    begin: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """The misfires of a schedule and its policy for them.

    Attributes:
        policy: Catch-up policy of the schedule.
        now: Present time.
        outages: Outages of the shard.
        own: Span that the schedule itself missed: by a suspension, at its creation, or by an update.
        activated_at: Time from which its instants count; an earlier instant is an `at` in the past.
        through: Last instant to walk, when the present state must not create jobs for all due instants.
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
            return None  # A past `at` counts from its activation; an outage before that did not miss it.
        outage = outage_at(self.outages, instant)
        return None if outage is None else Missed(outage.begin, outage.end, self.policy.mode)

    def fate(self, instant: int, missed: Missed | None, alone: int) -> Fate:
        """Returns the outcome of an instant when `alone` instants of its span have own jobs."""
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
    """The result of a walk.

    Attributes:
        made: Occurrences, in order.
        gathered: Instants for one occurrence whose remaining instants were not walked.
        following: Next instant, due or not, or the bound of its search.
        alone: Count toward `max_runs`.
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
    """Walks the due instants.

    Args:
        following: First instant to walk. If only a search bound is known, the walk ends there; gathered instants then
            stay gathered until the bound is in the past.
        next_after: The trigger's search.
        rules: Misfires and the present time.
        gathered: Result of the walk before.
        alone: Result of the walk before.
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
            continue  # This instant is walked again: the limit of occurrences may be reached.
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
    """Returns `next_after` with an end after `left` walked instants; None means no bound.

    The walk requests the next instant once per walked instant.
    """
    walked = count(1)
    return lambda after: Next(None) if left is not None and next(walked) >= left else next_after(after)
