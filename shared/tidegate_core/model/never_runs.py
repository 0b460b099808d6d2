"""Definitions whose jobs can only expire: taken, as windows and triggers change one by one, and warned of, as nobody means it.

Pure: the trigger's own instants and the windows' own openings are asked, up to a bound. What is said is true of all that was looked at;
where the bound came first, nothing is said. It is of jobs that are made on time: what is made up for after an outage, or asked for by
hand, comes when it comes, and may well meet a window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from tidegate_core.constraints import DelayConstraint, TimeWindowConstraint
from tidegate_core.constraints.base import Facts, Hold
from tidegate_core.model.catch_up import is_too_old
from tidegate_core.model.durations import Duration, format_duration
from tidegate_core.model.instants import TEN_YEARS_MS, Instant, as_datetime, format_instant
from tidegate_core.model.problems import Problem
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.triggers import TimeTrigger
from tidegate_core.triggers.search import STEPS_PER_SEARCH, Search

ONE_YEAR_MS: Final = 366 * 86_400_000
"""All weekdays and clock changes are within: what comes oftener than once a year and meets no window by then never means to."""
INSTANTS_MAX: Final = 500
"""That are looked at, or openings where these are fewer: of a daily trigger more than a year."""
LOOKS_MAX: Final = 5_000
"""At windows of the day, of some 8 µs each."""
SLACK_MS: Final = 60_000
"""A job that is made later than that after its nominal is late (SEMANTICS 3.4): what less lateness lets run is not warned of."""

Windows: TypeAlias = Sequence[TimeWindowConstraint]


def never_runs_warning(spec: ScheduleSpec, now: Instant) -> Problem | None:
    """Returns that no job of a schedule that is applied at `now` can run, as far as its windows say; None where one may."""
    looking = _Looking(spec, now)
    if not looking.windows:
        return None
    place = next(number for number, each in enumerate(spec.constraints) if isinstance(each, TimeWindowConstraint))
    try:
        # What is forced in the end needs those alone that end it before that.
        needed = looking.at_once if spec.pending_timeout_action == "force" else looking.windows
        if needed and looking.opening(needed, now) is None:
            return _never_together(place)
        missed = looking.missed()
    except _TooLong:
        return None
    return None if missed is None else _told(place, spec, missed)


class _TooLong(Exception):
    """So many looks did not tell."""


class _Wait(NamedTuple):
    """What a job that is made has to meet.

    Attributes:
        windows: All of them have to be open at one instant.
        begin: So long after it is made at the earliest.
        patience: So long after it is made at the latest.
        is_at_once: Because nothing has it wait (`on_unmet: abort`), and not because it expires.
    """

    windows: Windows
    begin: Duration
    patience: Duration
    is_at_once: bool = False


class _Missed(NamedTuple):
    """What was looked at, none of which can run.

    Attributes:
        first: When the first one is made.
        opening: When the windows open after that.
        through: How far was looked; None: to the last one.
    """

    wait: _Wait
    first: Instant
    opening: Instant
    through: Instant | None = None


@dataclass(frozen=True)
class _Looking:
    """One look at a schedule that is applied at `now`."""

    spec: ScheduleSpec
    now: Instant
    looks: Search = field(default_factory=lambda: Search(LOOKS_MAX))

    @cached_property
    def windows(self) -> Windows:
        return [each for each in self.spec.constraints if isinstance(each, TimeWindowConstraint)]

    @cached_property
    def at_once(self) -> Windows:
        """Those that end a job which does not meet them."""
        return [each for each in self.windows if each.on_unmet == "abort"]

    def missed(self) -> _Missed | None:
        """Returns what one thing keeps all jobs from; None where one may run, or where too little was looked at to tell.

        Where some jobs miss the one and the others the other, one of these may pass after all: it is not looked at, and so not
        ended, as long as one before it waits.

        Raises:
            _TooLong: Likewise.
        """
        if not isinstance(self.spec.trigger, TimeTrigger):
            return None  # Nobody knows when its events come.
        found = (self._all_miss(self.spec.trigger, wait) for wait in self._waits())
        return next((missed for missed in found if missed is not None), None)

    def _waits(self) -> Iterator[_Wait]:
        if self.at_once:
            # Before its own instant in a flexible window nothing ends it.
            yield _Wait(
                self.at_once, 0, SLACK_MS + (getattr(self.spec.trigger, "flexible", None) or 0), is_at_once=True
            )
        if self.spec.pending_timeout_action == "abort":
            delays = [each.after for each in self.spec.constraints if isinstance(each, DelayConstraint)]
            yield _Wait(self.windows, max(delays, default=0), SLACK_MS + self.spec.pending_timeout)

    def _all_miss(self, trigger: TimeTrigger, wait: _Wait) -> _Missed | None:
        made_up_for = {self.spec.catchup.on_create, self.spec.catchup.after_update} != {"none"}
        if made_up_for and self._misses(wait, self.now) is None:
            return None  # What lies behind is made now.
        search = Search(STEPS_PER_SEARCH)
        after, missed = trigger.counts_from(self.now) - 1, None
        for _ in range(INSTANTS_MAX):
            following = trigger.seek(after, f"{self.spec.namespace}/{self.spec.name}", search)
            nominal = following.at
            if following.is_bound:
                return None
            if nominal is None:
                return missed
            if nominal > self.now + TEN_YEARS_MS:
                return missed and missed._replace(through=nominal)
            if is_too_old(self.spec, nominal, self.now):
                return None  # Another warning says what becomes of it.
            made = max(nominal, self.now)  # An `at` that has passed is made at once.
            try:
                opening = self._misses(wait, made)
            except _TooLong:
                break
            if opening is None:
                return None
            missed = missed or _Missed(wait, made, opening)
            # What is made before that meets the same opening, and does not live to see it either.
            after = max(made, opening - wait.patience - 1)
        return missed._replace(through=after) if missed is not None and after >= self.now + ONE_YEAR_MS else None

    def _misses(self, wait: _Wait, made: Instant) -> Instant | None:
        """Returns the opening that a job comes too early for; None where it meets one."""
        opening = self.opening(wait.windows, made + wait.begin)
        if opening is None:
            raise _TooLong  # It comes, but less often than once a year.
        return opening if opening > made + wait.patience else None

    def opening(self, windows: Windows, begin: Instant) -> Instant | None:
        """Returns the first instant from `begin` on at which all are open; None where there is none within a year."""
        at = begin
        while at < begin + ONE_YEAR_MS:
            if not self.looks.takes(sum(len(each.windows or (each,)) for each in windows)):
                raise _TooLong
            verdicts = [each.check(Facts(at, at)) for each in windows]
            closed = [verdict.until for verdict in verdicts if isinstance(verdict, Hold) and verdict.until is not None]
            if not closed:
                return at
            at = max(closed)
            if len(windows) == 1:
                return at
        return None


def _never_together(place: int) -> Problem:
    return Problem(
        f"constraints[{place}]",
        "is not open together with the other time windows at any instant of the next year: no job can run",
        "all time_window constraints have to be open at once; where one of them is enough write one, with windows",
    )


def _told(place: int, spec: ScheduleSpec, missed: _Missed) -> Problem:
    made, opens = format_instant(missed.first), format_instant(missed.opening)
    if missed.wait.is_at_once:
        problem = f"the first is made at {made} and ended at once (on_unmet: abort), because it opens at {opens}"
        other_way = "on_unmet: wait"
    else:
        patience = format_duration(spec.pending_timeout)
        problem = f"the first is made at {made} and expires after pending_timeout, {patience}; it opens at {opens}"
        other_way = "a longer pending_timeout"
    which = "" if missed.through is None else f" before {as_datetime(missed.through):%Y-%m-%d}"
    hint = f"let the trigger name times within the window, or use {other_way}"
    return Problem(f"constraints[{place}]", f"no job of the trigger can run{which}: {problem}", hint)
