"""Warns of schedules whose jobs can never run, because no time window is open for them.

The definition is still accepted, because users change windows and triggers one by one. The check follows the trigger's instants
and the windows' openings up to a limit. A warning is true for all checked instants; if the limit comes first, there is none.
The check covers jobs that are created on time. Catch-up jobs and manual jobs may meet an open window.
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
"""Span of the check. It contains all weekdays and clock changes, so later instants meet the windows in the same way."""
INSTANTS_MAX: Final = 500
"""Instants that are checked, more than a year of a daily trigger; openings, if these are fewer."""
LOOKS_MAX: Final = 10_000
"""Checks of windows, about 8 µs each."""
SLACK_MS: Final = 60_000
"""Normal lateness of a job. There is no warning if a job that is at most this late can run."""

Windows: TypeAlias = Sequence[TimeWindowConstraint]


def never_runs_warning(spec: ScheduleSpec, now: Instant) -> Problem | None:
    """Returns a warning if its time windows keep every job of a schedule applied at `now` from running; None if a job may run."""
    looking = _Looking(spec, now)
    if not looking.windows:
        return None
    place = next(number for number, each in enumerate(spec.constraints) if isinstance(each, TimeWindowConstraint))
    try:
        # With `force` a job runs in the end. Then only windows that abort it earlier can prevent that.
        needed = looking.at_once if spec.pending_timeout_action == "force" else looking.windows
        if needed and looking.opening(needed, now) is None:
            return _never_together(place)
        missed = looking.missed()
    except _TooLong:
        return None
    return None if missed is None else _told(place, spec, missed)


class _TooLong(Exception):
    """The limit was reached without an answer."""


class _Miss(NamedTuple):
    """Why one job cannot run.

    Attributes:
        made: Instant at which the job is created.
        opening: Instant at which the windows open, after the job's end.
        alike: Last instant of creation for which a job meets the same fate.
        ended: Instant at which a closed window aborts the job (`on_unmet: abort`); None if the job expires.
    """

    made: Instant
    opening: Instant
    alike: Instant
    ended: Instant | None = None


class _Missed(NamedTuple):
    """Result of a check in which no job can run.

    Attributes:
        first: First job.
        through: End of the checked span; None if all instants of the trigger were checked.
    """

    first: _Miss
    through: Instant | None = None


@dataclass(frozen=True)
class _Looking:
    """Check of a schedule whose definition is applied at `now`."""

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
        """Windows that abort a job if they are closed."""
        return [each for each in self.windows if each.on_unmet == "abort"]

    @cached_property
    def waited_for(self) -> Windows:
        """Windows for which a job waits."""
        return [each for each in self.windows if each.on_unmet != "abort"]

    @cached_property
    def delay(self) -> Duration:
        """Longest delay constraint; no job runs before it has passed."""
        return max((each.after for each in self.spec.constraints if isinstance(each, DelayConstraint)), default=0)

    @cached_property
    def flexible(self) -> Duration:
        return getattr(self.spec.trigger, "flexible", None) or 0

    @cached_property
    def has_known_looks(self) -> bool:
        """Whether only windows and delays decide when a waiting job is checked again."""
        return all(isinstance(each, TimeWindowConstraint | DelayConstraint) for each in self.spec.constraints)

    def missed(self) -> _Missed | None:
        """Returns the result if the same cause keeps all jobs from running; None if a job may run or the limit was reached.

        The cause must be the same for all jobs: expiry or abort. With mixed causes a job may run after all: it is not checked,
        and so not aborted, while an earlier job waits.

        Raises:
            _TooLong: The limit was reached.
        """
        if not isinstance(self.spec.trigger, TimeTrigger):
            return None  # The times of events are unknown.
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
            return None  # A catch-up job is created now and may run.
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
                return None  # Another warning covers instants that are too old.
            made = max(nominal, self.now)  # The job of a past `at` is created at once.
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
        """Returns why a job expires before all windows are open; None if it does not expire before.

        Raises:
            _TooLong: The windows open less often than once a year.
        """
        patience = SLACK_MS + self.spec.pending_timeout
        opening = self._next_opening(self.windows, made + self.delay)
        # A job that is created before `alike` expires before the same opening.
        return _Miss(made, opening, opening - patience - 1) if opening > made + patience else None

    def _ended(self, made: Instant) -> _Miss | None:
        """Returns why a closed window aborts a job when the job is checked; None if the job may survive.

        A job is checked when it is created, then at the latest instant before which a constraint certainly blocks it, and when
        a further job joins the queue, until its time-out. Under `alert` it is also checked at the time-out of any queued job.
        More checks are possible; they can only abort the job earlier. Later jobs in the queue are checked and aborted with it.

        Raises:
            _TooLong: The windows open less often than once a year.
        """
        # Before its instant in a flexible window nothing aborts the job.
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
        """Returns when the next job joins the queue; None if none does, or if the policy need not check the queue then."""
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
        """Returns the first instant from `begin` on at which all windows are open; None if there is none within a year."""
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
        """Returns the next openings of the windows that are closed."""
        if not self.looks.takes(sum(len(each.windows or (each,)) for each in windows)):
            raise _TooLong
        verdicts = [each.check(Facts(at, at)) for each in windows]
        return [verdict.until for verdict in verdicts if isinstance(verdict, Hold) and verdict.until is not None]


def _never_together(place: int) -> Problem:
    return Problem(
        f"constraints[{place}]",
        "is not open together with the other time windows at any instant of the next year: no job can run",
        "all time_window constraints must be open at once; if one of them is enough, write one constraint with windows",
    )


def _told(place: int, spec: ScheduleSpec, missed: _Missed) -> Problem:
    first = missed.first
    made, opens = format_instant(first.made), format_instant(first.opening)
    if first.ended is not None:
        when = _at_its_instant(spec) if first.ended == first.made else f"at {format_instant(first.ended)}"
        problem = f"the first is created at {made} and aborted {when} (on_unmet: abort), because it opens at {opens}"
        other_way = "on_unmet: wait"
    else:
        patience = format_duration(spec.pending_timeout)
        problem = f"the first is created at {made} and expires after pending_timeout, {patience}; it opens at {opens}"
        other_way = "a longer pending_timeout"
    which = "" if missed.through is None else f" before {as_datetime(missed.through):%Y-%m-%d}"
    hint = f"let the trigger name times within the window, or use {other_way}"
    return Problem(f"constraints[{place}]", f"no job of the trigger can run{which}: {problem}", hint)


def _at_its_instant(spec: ScheduleSpec) -> str:
    is_flexible = isinstance(spec.trigger, TimeTrigger) and spec.trigger.flexible is not None
    return "at its instant in the flexible window" if is_flexible else "at once"
