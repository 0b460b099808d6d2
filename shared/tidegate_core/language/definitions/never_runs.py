"""Definitions whose jobs can only expire: taken, as windows and triggers change one by one, and warned of, as nobody means it.

Pure: the trigger's own instants and the windows' own openings are asked, up to a bound. What is said is true of all that was looked at;
where the bound came first, nothing is said. It is of jobs that are made on time: what is made up for after an outage, or asked for by
hand, comes when it comes, and may well meet a window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from tidegate_core.language.constraints import DelayConstraint, TimeWindowConstraint
from tidegate_core.language.constraints.constraint import Hold
from tidegate_core.language.constraints.facts import Facts
from tidegate_core.language.definitions.catch_up_policy import is_too_old
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers import TimeTrigger
from tidegate_core.language.triggers.search import STEPS_PER_SEARCH, Search
from tidegate_core.language.values.durations import Duration, format_duration
from tidegate_core.language.values.instants import TEN_YEARS_MS, Instant, as_datetime, format_instant
from tidegate_core.language.values.problems import Problem

ONE_YEAR_MS: Final = 366 * 86_400_000
"""All weekdays and clock changes are within: what comes oftener than once a year and meets no window by then never means to."""
INSTANTS_MAX: Final = 500
"""That are looked at, or openings where these are fewer: of a daily trigger more than a year."""
LOOKS_MAX: Final = 10_000
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


class _Miss(NamedTuple):
    """Why one job cannot run.

    Attributes:
        made: When it is made.
        opening: When the windows open that it does not live to see.
        alike: What is made up to then meets the same.
        ended: When windows end it that are closed (`on_unmet: abort`); None: it expires.
    """

    made: Instant
    opening: Instant
    alike: Instant
    ended: Instant | None = None


class _Missed(NamedTuple):
    """What was looked at, none of which can run.

    Attributes:
        first: The first one.
        through: How far was looked; None: to the last one.
    """

    first: _Miss
    through: Instant | None = None


@dataclass(frozen=True)
class _Looking:
    """One look at a schedule that is applied at `now`."""

    spec: ScheduleSpec
    now: Instant
    looks: Search = field(default_factory=lambda: Search(LOOKS_MAX))
    search: Search = field(default_factory=lambda: Search(STEPS_PER_SEARCH))

    @property
    def ref(self) -> str:
        return f"{self.spec.namespace}/{self.spec.name}"

    @cached_property
    def windows(self) -> Windows:
        return [each for each in self.spec.constraints if isinstance(each, TimeWindowConstraint)]

    @cached_property
    def at_once(self) -> Windows:
        """Those that end a job which does not meet them."""
        return [each for each in self.windows if each.on_unmet == "abort"]

    @cached_property
    def waited_for(self) -> Windows:
        """Those that a job waits for."""
        return [each for each in self.windows if each.on_unmet != "abort"]

    @cached_property
    def delay(self) -> Duration:
        """Before that no job runs."""
        return max((each.after for each in self.spec.constraints if isinstance(each, DelayConstraint)), default=0)

    @cached_property
    def flexible(self) -> Duration:
        return getattr(self.spec.trigger, "flexible", None) or 0

    @cached_property
    def has_known_looks(self) -> bool:
        """Whether nothing but windows and delays says when a job that waits is looked at again."""
        return all(isinstance(each, TimeWindowConstraint | DelayConstraint) for each in self.spec.constraints)

    def missed(self) -> _Missed | None:
        """Returns what one thing keeps all jobs from; None where one may run, or where too little was looked at to tell.

        Where some jobs miss the one and the others the other, one of these may pass after all: it is not looked at, and so not
        ended, as long as one before it waits.

        Raises:
            _TooLong: Likewise.
        """
        if not isinstance(self.spec.trigger, TimeTrigger):
            return None  # Nobody knows when its events come.
        found = (self._all_miss(self.spec.trigger, misses) for misses in self._ways())
        return next((missed for missed in found if missed is not None), None)

    def _ways(self) -> Iterator[Callable[[Instant], _Miss | None]]:
        if self.at_once:
            yield self._ended
        if self.spec.pending_timeout_action == "abort":
            yield self._expired

    def _all_miss(self, trigger: TimeTrigger, misses: Callable[[Instant], _Miss | None]) -> _Missed | None:
        made_up_for = {self.spec.catchup.on_create, self.spec.catchup.after_update} != {"none"}
        if made_up_for and misses(self.now) is None:
            return None  # What lies behind is made now.
        after, missed = trigger.counts_from(self.now) - 1, None
        for _ in range(INSTANTS_MAX):
            following = trigger.seek(after, self.ref, self.search)
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
                miss = misses(made)
            except _TooLong:
                break
            if miss is None:
                return None
            missed = missed or _Missed(miss)
            after = max(made, miss.alike)
        return missed._replace(through=after) if missed is not None and after >= self.now + ONE_YEAR_MS else None

    def _expired(self, made: Instant) -> _Miss | None:
        """Returns how a job comes too early for the next instant at which all windows are open; None where it lives to see it.

        Raises:
            _TooLong: It comes, but less often than once a year.
        """
        patience = SLACK_MS + self.spec.pending_timeout
        opening = self._next_opening(self.windows, made + self.delay)
        # What is made before that meets the same opening, and does not live to see it either.
        return _Miss(made, opening, opening - patience - 1) if opening > made + patience else None

    def _ended(self, made: Instant) -> _Miss | None:
        """Returns how a job is ended by windows that are closed when it is looked at; None where it may not be.

        It is looked at when it is made, and then each time at the last of the instants before which something stands in its way for
        certain, or when a further one joins the line behind it, until its time-out has it expire or forces it. Under `alert` the
        line is looked at when the time-out of any job in it passes. It may be oftener, which can only end it sooner. What waits behind it
        is looked at when it is ended, and ended with it.

        Raises:
            _TooLong: They open, but less often than once a year.
        """
        # Before its own instant in a flexible window nothing ends it.
        slack = SLACK_MS + self.flexible
        patience = self.spec.pending_timeout
        alerts = self.spec.pending_timeout_action == "alert"
        end = None if alerts else made + patience
        at, time_outs = made, [made + patience]
        while end is None or at < end:
            closed = self._closed(self.at_once, at)
            if closed:
                opening = self._next_opening(self.at_once, at)
                return _Miss(made, opening, opening - slack - 1, ended=at) if opening > at + slack else None
            standing = self._closed(self.waited_for, at)
            if at < made + self.delay:
                standing.append(made + self.delay)
            if not standing or self.flexible or not self.has_known_looks:
                return None
            joined = self._next_in_line(at)
            if joined is not None:
                time_outs.append(joined + patience)
            passed = [each for each in time_outs if each > at] if alerts else []
            at = min([max(standing), *passed] if joined is None else [max(standing), joined, *passed])
        return None

    def _next_in_line(self, at: Instant) -> Instant | None:
        """Returns when the next job joins those that wait; None where none does, or may have none of them looked at."""
        trigger = self.spec.trigger
        if self.spec.overlap not in ("allow", "queue") or not isinstance(trigger, TimeTrigger):
            return None
        found = trigger.seek(at, self.ref, self.search)
        if found.is_bound:
            raise _TooLong
        return found.at

    def _next_opening(self, windows: Windows, begin: Instant) -> Instant:
        opening = self.opening(windows, begin)
        if opening is None:
            raise _TooLong
        return opening

    def opening(self, windows: Windows, begin: Instant) -> Instant | None:
        """Returns the first instant from `begin` on at which all are open; None where there is none within a year."""
        at = begin
        while at < begin + ONE_YEAR_MS:
            closed = self._closed(windows, at)
            if not closed:
                return at
            at = max(closed)
            if len(windows) == 1:
                return at
        return None

    def _closed(self, windows: Windows, at: Instant) -> list[Instant]:
        """Returns when those open next that are closed."""
        if not self.looks.takes(sum(len(each.windows or (each,)) for each in windows)):
            raise _TooLong
        verdicts = [each.check(Facts(at, at)) for each in windows]
        return [verdict.until for verdict in verdicts if isinstance(verdict, Hold) and verdict.until is not None]


def _never_together(place: int) -> Problem:
    return Problem(
        f"constraints[{place}]",
        "is not open together with the other time windows at any instant of the next year: no job can run",
        "all time_window constraints have to be open at once; where one of them is enough write one, with windows",
    )


def _told(place: int, spec: ScheduleSpec, missed: _Missed) -> Problem:
    first = missed.first
    made, opens = format_instant(first.made), format_instant(first.opening)
    if first.ended is not None:
        when = _at_its_instant(spec) if first.ended == first.made else f"at {format_instant(first.ended)}"
        problem = f"the first is made at {made} and ended {when} (on_unmet: abort), because it opens at {opens}"
        other_way = "on_unmet: wait"
    else:
        patience = format_duration(spec.pending_timeout)
        problem = f"the first is made at {made} and expires after pending_timeout, {patience}; it opens at {opens}"
        other_way = "a longer pending_timeout"
    which = "" if missed.through is None else f" before {as_datetime(missed.through):%Y-%m-%d}"
    hint = f"let the trigger name times within the window, or use {other_way}"
    return Problem(f"constraints[{place}]", f"no job of the trigger can run{which}: {problem}", hint)


def _at_its_instant(spec: ScheduleSpec) -> str:
    is_flexible = isinstance(spec.trigger, TimeTrigger) and spec.trigger.flexible is not None
    return "at its own instant in the flexible window" if is_flexible else "at once"
