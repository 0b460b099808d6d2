"""Checks of an apply against stored rows: whether an update may keep pending work, and whether counted quotas have room.

The procedure that applies a request calls them before it moves the state; a dry run asks the update rules alone.

Two quotas are counted (decision 28). Schedules of a namespace: exact. Each create and delete moves one count item in its own transaction, by
compare-and-set. The item exists only where a quota asks for it. It is counted from the states of all shards if it is missing, and again before it
refuses a schedule. Subscribers of an event: read from the index. Schedules that are applied at the same moment may each pass, one per shard.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.definitions.quotas import Quota
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import QUOTAS_SETTING
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.problems import Problem
from tidegate_core.language.values.states import OnUpdate
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleCount, ScheduleState
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.rows.trigger_rows import IndexRow
from tidegate_core.writes.unit_of_work import NotAtHand, UnitOfWork

ALREADY_ACTIVE = Problem(
    "suspended",
    "only says how a schedule begins, and this one is active",
    "leave it out, and suspend the schedule",
)
"""It is no problem if the former version has it too: a resume does not force users to change the document."""
OTHER_TRIGGER = Problem(
    "on_update",
    "is carry, and the trigger differs: what it has counted is no evidence for the new one",
    "use finish_old to let waiting jobs complete, or restart",
)


def update_problems(how: OnUpdate, spec: ScheduleSpec, former: ScheduleSpec | None, status: str) -> tuple[Problem, ...]:
    """Returns why an update is not possible in this way.

    Args:
        how: Value of `on_update`, from the request or the new definition.
        spec: New definition.
        former: Present definition; None: there is none, and no pending work.
        status: Status of the schedule after the update.
    """
    began_so = former is not None and former.suspended
    already = (ALREADY_ACTIVE,) if status == "active" and spec.suspended and not began_so else ()
    return (*_kept_problems(how, spec, former), *already)


def trigger_stays(how: OnUpdate, *, exists: bool) -> bool:
    """Whether an update keeps the trigger of the former version. That trigger may have ended, and is not checked again."""
    return exists and how == "carry"


def _kept_problems(how: OnUpdate, spec: ScheduleSpec, former: ScheduleSpec | None) -> tuple[Problem, ...]:
    if former is None:
        return ()
    of_target = spec.target_rules.update_problem(how) or former.target_rules.update_problem(how)
    if of_target is not None:
        return (of_target,)
    if how == "carry" and former.trigger != spec.trigger:
        return (OTHER_TRIGGER,)
    return ()


COUNTED_FOR_MS: Final = 600_000
"""Age at which a count that would refuse a schedule is taken again. A count reads the states of all shards, in about a second."""
NOT_COUNTED: Final = 0
"""Value of `counted_at` before the first count: a delete came before that count, or during it."""
COUNTS_MAX: Final = 3
"""Counts that schedules of the namespace disturb before the newest known count decides."""
BEING_COUNTED: Final = Problem("namespace", "is being counted", "send the request again")


def counted_problems(
    writer: ShardWriter, spec: ScheduleSpec, before: ScheduleState | None, quota: Quota
) -> Operation[tuple[Problem, ...]]:
    """Returns the counted quotas that a definition would exceed."""
    found: list[Problem] = []
    if quota.schedules_max is not None and not _is_there(before):
        found += yield from _too_many(writer, spec.namespace, quota.schedules_max)
    if quota.fan_out_max is not None and isinstance(spec.trigger, EventTrigger):
        found += yield from _too_wide(writer, spec, spec.trigger, quota.fan_out_max)
    return tuple(found)


def count_after(
    unit: UnitOfWork, most: int | None, before: ScheduleState | None, after: ScheduleState | None
) -> ScheduleCount | Problem | None:
    """Returns the namespace's count after a schedule has moved, or why it must not move; None: the count does not change.

    Args:
        unit: Unit that reads the count, so that the transaction depends on it.
        most: Quota of schedules; None: no quota.
        before: State of the schedule; None: the schedule is unknown.
        after: State after the request; None: it does not change.
    """
    change = 0 if after is None else _is_there(after) - _is_there(before)
    if most is None or after is None or not change:
        return None
    count = unit.record(ScheduleCount, keys.schedule_count(after.namespace))
    if count is None or count.counted_at == NOT_COUNTED:
        if change < 0:
            # Each delete writes the item, so that a count that is being taken notices the delete.
            return ScheduleCount(namespace=after.namespace, schedules=most, counted_at=NOT_COUNTED)
        # A create takes a count first. So the item was never written, or a user has just removed it by hand.
        return BEING_COUNTED
    if change > 0 and count.schedules >= most:
        return _full(after.namespace, count.schedules, most)
    return replace(count, schedules=max(0, count.schedules + change))


@dataclass(frozen=True, slots=True)
class _Counted:
    """Writes a count, unless a schedule of the namespace was created or deleted while it was taken.

    Attributes:
        seen: Count item before the count began.
    """

    count: ScheduleCount
    seen: Item | None
    stale: tuple[Key, ...] = ()
    name: str = "count_schedules"

    @property
    def about(self) -> str:
        return self.count.namespace

    def decide(self, unit: UnitOfWork, now: int) -> None:
        key = keys.schedule_count(self.count.namespace)
        if _revision(unit.item(key)) == _revision(self.seen):
            unit.put(self.count, key)


def _too_many(writer: ShardWriter, namespace: str, most: int) -> Operation[list[Problem]]:
    key = keys.schedule_count(namespace)
    item = yield from _fresh(writer, key)
    for _ in range(COUNTS_MAX):
        if item is not None and not _is_to_count(from_item(ScheduleCount, item), most, writer.host.now):
            break
        yield from _count(writer, namespace, item)
        item = yield from _fresh(writer, key)
    assert item is not None
    count = from_item(ScheduleCount, item)
    if count.counted_at == NOT_COUNTED:
        return [BEING_COUNTED]
    return [_full(namespace, count.schedules, most)] if count.schedules >= most else []


def _is_to_count(count: ScheduleCount, most: int, now: int) -> bool:
    is_old = count.counted_at <= now - COUNTED_FOR_MS
    return count.counted_at == NOT_COUNTED or (count.schedules >= most and is_old)


def _count(writer: ShardWriter, namespace: str, seen: Item | None) -> Operation[None]:
    low, high = keys.schedule_states(namespace)
    schedules = 0
    for shard in range(writer.host.holding.shards):
        items = yield from writer.read_range(low, high, keys.shard_pk(shard))
        schedules += sum(item["status"] != "deleted" for item in items)
    count = ScheduleCount(namespace=namespace, schedules=schedules, counted_at=writer.host.now)
    yield from writer.decide_alone(_Counted(count, seen))


def _too_wide(writer: ShardWriter, spec: ScheduleSpec, trigger: EventTrigger, most: int) -> Operation[list[Problem]]:
    for event_key in sorted({leaf.event_key(spec.namespace) for leaf in trigger.leaves()} - {""}):
        pk, low, high = keys.index_rows_in(event_key, spec.namespace)
        items = yield from writer.read_range(low, high, pk)
        others = {row.name for row in (from_item(IndexRow, item) for item in items)} - {spec.name}
        if len(others) >= most:
            problem = f"{len(others)} schedules of namespace {spec.namespace} subscribe to {event_key} already, at most {most} may"
            return [Problem("trigger", problem, f"raise fan_out_max in {QUOTAS_SETTING} of nodes and API")]
    return []


def _fresh(writer: ShardWriter, key: Key) -> Operation[Item | None]:
    """Reads an item that owners of other shards write too."""
    writer.view.forget((key,))
    yield from writer.fetch(NotAtHand(keys=[key]))
    return writer.view.item(key)


def _full(namespace: str, schedules: int, most: int) -> Problem:
    problem = f"{namespace} has {schedules} schedules, {most} are its quota"
    return Problem(
        "namespace", problem, f"delete one, or raise schedules_max in {QUOTAS_SETTING} ({namespace}) of nodes and API"
    )


def _is_there(state: ScheduleState | None) -> bool:
    return state is not None and state.status != "deleted"


def _revision(item: Item | None) -> object:
    return None if item is None else item["rev"]
