"""Fires a schedule: a due instant of a time trigger becomes a job, and `next_nominal` moves on (I1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from tidegate_core.firing.catch_up import ALONE, GATHERED_BY, Due, Fate, Made, Missed, Rules, Walk, at_most, walk
from tidegate_core.firing.misfires import write_skips
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.search import Next, Search
from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Notice
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key, Value
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.jobs import end_job, time_job, write_ledger
from tidegate_core.shard.outages.outage_time import CatchUp
from tidegate_core.shard.schedule_state import fires, fires_through, spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.shard.timer_rows import as_all_read_it, leave, nominal_row, remind
from tidegate_core.writes.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class FireSchedule:
    """Decides about a timer row of kind `NOMINAL_TIMER`.

    The row is a lower bound; `next_nominal` of the state decides.

    Attributes:
        memory: Cache of the shard, with its outages and the rows that wait for the end of a scope suspension.
    """

    row: TimerRow
    memory: ShardCache | None = None
    name: str = "fire"
    stale: tuple[Key, ...] = ()

    @property
    def about(self) -> str:
        return self.row.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.row.ref.split("/", 1)
        key = keys.schedule_state(unit.shard, namespace, schedule)
        state = unit.record(ScheduleState, key)
        row_key = self.row.key(unit.shard)
        if state is None or not fires(state) or state.next_nominal != self.row.at:
            # The row is outdated: an update, suspend or delete left it over, or a request created the due jobs. After
            # an outage there may be thousands, one for each of its transactions; rows that are gone already cost no
            # further transaction.
            if self.memory is None or self.memory.is_left_to_remove(row_key):
                unit.forget_row(row_key)
            return
        spec = spec_of(unit, namespace, schedule, state.version)
        assert spec is not None
        suspended_since = unit.controls.suspended_since(namespace)
        if isinstance(spec.trigger, EventTrigger):
            if suspended_since is not None:
                leave(unit, self.row, self.memory)
                return
            unit.forget_row(row_key)
            remind(unit, state, spec.trigger, now)
            return
        through = now if suspended_since is None else _last_before(unit, state, suspended_since, now)
        first, walked = self._walk(unit, state, spec, through)
        assert isinstance(spec.trigger, TimeTrigger)
        moved = as_all_read_it(unit, _moved(state, walked), spec.trigger)
        if suspended_since is not None and moved == state:
            leave(unit, self.row, self.memory)
            return
        if moved == state and fires_through(state, now) < now:
            return  # The row stays: the end of the hold rewrites it, and it is checked again.
        unit.forget_row(row_key)
        for due in walked.made:
            self._make(unit, state, spec, due, first, now)
        write_skips(unit, state, spec, moved.fired_through, now)
        unit.put(moved, key)
        row = nominal_row(moved)
        if row is not None:
            unit.set_row(row, row.key(unit.shard))

    def _walk(self, unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, now: int) -> tuple[Next, Walk]:
        """Returns the first instant to walk, and the walk from there."""
        trigger = spec.trigger
        assert isinstance(trigger, TimeTrigger)
        search = Search.of_a_decision()

        def next_after(after: int) -> Next:
            return trigger.seek(after, self.row.ref, search)

        def live(following: Next) -> Next:
            """Continues to the first instant outside all suspended spans: instants within them are never misfires."""
            while (nominal := following.found) is not None and nominal <= now:
                if promised is not None and nominal in promised:
                    return following
                until = unit.controls.suspended_until(spec.namespace, _due(state, nominal), now)
                if until is None and brought_by_update is not None and nominal in brought_by_update:
                    # It is due at the update, but lies in a suspended span.
                    until = unit.controls.suspended_until(spec.namespace, nominal, now)
                if until is None:
                    return following
                following = next_after(until)
            return following

        outages = () if self.memory is None else self.memory.outages
        own = _own(state)
        brought_by_update, promised = own if state.missed_by_update else None, _promised(state)
        rules = Rules(spec.catchup, now, outages, own, state.activated_at, fires_through(state, now))
        first = live(gone_on(state.following, next_after))
        alone = Made(state.alone_since or 0, state.alone or 0)
        counted = at_most(trigger.fires_left(state.fires), next_after)
        return first, walk(first, lambda after: live(counted(after)), rules, _gathered(state, spec), alone)

    def _make(
        self, unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, due: Due, first: Next, now: int
    ) -> None:
        def job_of(nominal: int) -> Job:
            return time_job(unit.shard, state, spec, nominal, now, first.since if nominal == first.at else None)

        job = job_of(due.last)
        if due.fate not in ALONE:
            job = replace(job, covered=due.count, covered_from=due.first)
        if due.fate == "left_out":
            write_ledger(unit, job, "skipped", "outage", now)
            return
        if due.fate == "too_old":
            write_ledger(unit, job, "expired", "catchup_window", now)
            told: dict[str, Value] = {
                "schedule": self.row.ref,
                "occurrences": due.count,
                "first": due.first,
                "last": due.last,
            }
            unit.after(Notice("catchup_expired", told))
            return
        if due.fate == "coalesced":
            job = replace(job, interval_start=job_of(due.first).interval_start)
        if due.fate != "on_time":
            job = replace(job, catch_up=True)
        promised = _promised(state)
        is_promised = promised is not None and due.last in promised
        due_at = _counted_since(unit, state, now) if is_promised else _due(state, due.last)
        if due_at > job.nominal:
            job = replace(job, due=due_at)
        unit.put_new(job, job.key(unit.shard))
        if unit.controls.has_dropped(spec.namespace, due_at) or due.last <= (state.unmade_through or 0):
            # It was due before the suspension, or before a resume that leaves it out. It gets a ledger entry and
            # never disappears silently (I1).
            end_job(unit, job, "cancelled", "suspended", now)


def gone_on(following: Next, next_after: Callable[[int], Next]) -> Next:
    """Returns a found instant unchanged; for a search bound it returns the result of a further search."""
    if not following.is_bound or following.at is None:
        return following
    found = next_after(following.at - 1)
    return found if following.since is None else found._replace(since=following.since)


def _last_before(unit: UnitOfWork, state: ScheduleState, suspended_since: int, now: int) -> int:
    """Returns the last instant to walk during a scope suspension.

    Later ones wait for its end, which nodes learn of some time later.

    For a schedule that was activated during the suspension, no instant was due before it.
    """
    return min(now, suspended_since - 1) if _counted_since(unit, state, now) < suspended_since else 0


def _counted_since(unit: UnitOfWork, state: ScheduleState, now: int) -> int:
    """Returns the activation, or the end of the scope suspensions that contain it; a time after `now` while they
    continue.

    Instants that the schedule promised to catch up become due then.
    """
    since = state.activated_at
    while since <= now and (until := unit.controls.suspended_until(state.namespace, since, now)) is not None:
        since = until + 1
    return since


def _due(state: ScheduleState, nominal: int) -> int:
    """An instant before the activation, such as a past `at`, is due at the activation."""
    return max(nominal, state.activated_at)


def _moved(state: ScheduleState, walked: Walk) -> ScheduleState:
    """Returns the state after all walked instants, with or without an occurrence."""
    gathered = walked.gathered
    walked_through = [due.last for due in walked.made] + ([] if gathered is None else [gathered.last])
    walked_count = sum(due.count for due in walked.made) + (0 if gathered is None else gathered.count)
    return replace(
        state.at_next(walked.following),
        fired_through=max([state.fired_through, *walked_through]),
        fires=state.fires + walked_count - (state.gathered or 0),
        gathered=None if gathered is None else gathered.count,
        gathered_from=0 if gathered is None else gathered.first,
        gathered_through=0 if gathered is None else gathered.last,
        gathered_as=None if gathered is None else gathered.fate,
        alone=walked.alone.count or None,
        alone_since=walked.alone.begin or None,
    )


def _gathered(state: ScheduleState, spec: ScheduleSpec) -> Due | None:
    if state.gathered is None:
        return None
    fate = cast(Fate, state.gathered_as or GATHERED_BY[spec.catchup.mode])
    return Due(state.gathered_from, state.gathered_through, state.gathered, fate)


def _own(state: ScheduleState) -> Missed | None:
    """Returns the span that the schedule itself must catch up."""
    if state.missed_from is None or state.missed_until is None or state.missed_as is None:
        return None
    return Missed(state.missed_from, state.missed_until, cast(CatchUp, state.missed_as))


def _promised(state: ScheduleState) -> Missed | None:
    """Returns the span that is caught up in any case. A span of an update excludes instants in a scope suspension."""
    return None if state.missed_by_update else _own(state)
