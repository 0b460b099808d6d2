"""Quotas that have to be counted: how many schedules a namespace has, and how many of them hear the same event (decision 28).

The first is exact: an item that each create and each delete of the namespace moves in its own transaction, by compare-and-set. It
is there only where a quota asks for it, is counted from the states of all shards when it is not, and again before it refuses
anybody. The second is a look at the index: of those that are applied at the same moment each shard may let one more pass.
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
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleCount, ScheduleState
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.rows.trigger_rows import IndexRow
from tidegate_core.writes.unit_of_work import NotAtHand, UnitOfWork

COUNTED_FOR_MS: Final = 600_000
"""Who would be refused has the schedules counted again, but not more often: it reads the states of all shards, about a second."""
NOT_COUNTED: Final = 0
"""Instead of when: a delete has come before anybody has counted, amid the first count maybe."""
COUNTS_MAX: Final = 3
"""In which schedules come and go; then what is known by now says it, if anything is."""
BEING_COUNTED: Final = Problem("namespace", "is being counted", "send the request again")


def counted_problems(
    lane: ShardWriter, spec: ScheduleSpec, before: ScheduleState | None, quota: Quota
) -> Operation[tuple[Problem, ...]]:
    """Returns which counted quotas a definition does not fit into."""
    found: list[Problem] = []
    if quota.schedules_max is not None and not _is_there(before):
        found += yield from _too_many(lane, spec.namespace, quota.schedules_max)
    if quota.fan_out_max is not None and isinstance(spec.trigger, EventTrigger):
        found += yield from _too_wide(lane, spec, spec.trigger, quota.fan_out_max)
    return tuple(found)


def count_after(
    unit: UnitOfWork, most: int | None, before: ScheduleState | None, after: ScheduleState | None
) -> ScheduleCount | Problem | None:
    """Returns the namespace's count once a schedule has moved, or why it must not; None where it stays as it is.

    Args:
        unit: Where the count is read, so that the transaction is carried out under just this one.
        most: How many there may be; None where nobody counts.
        before: The schedule as it is; None: it is not known.
        after: As it would be; None: it does not move.
    """
    change = 0 if after is None else _is_there(after) - _is_there(before)
    if most is None or after is None or not change:
        return None
    count = unit.record(ScheduleCount, keys.schedule_count(after.namespace))
    if count is None or count.counted_at == NOT_COUNTED:
        if change < 0:
            # Written each time, so that who counts at the moment sees that something went.
            return ScheduleCount(namespace=after.namespace, schedules=most, counted_at=NOT_COUNTED)
        # A create counts first. This one was removed by hand, or never written, just now.
        return BEING_COUNTED
    if change > 0 and count.schedules >= most:
        return _full(after.namespace, count.schedules, most)
    return replace(count, schedules=max(0, count.schedules + change))


@dataclass(frozen=True, slots=True)
class _Counted:
    """Writes what was counted, unless a schedule of the namespace came or went meanwhile.

    Attributes:
        seen: The item as it was before anything was read.
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


def _too_many(lane: ShardWriter, namespace: str, most: int) -> Operation[list[Problem]]:
    key = keys.schedule_count(namespace)
    item = yield from _fresh(lane, key)
    for _ in range(COUNTS_MAX):
        if item is not None and not _is_to_count(from_item(ScheduleCount, item), most, lane.host.now):
            break
        yield from _count(lane, namespace, item)
        item = yield from _fresh(lane, key)
    assert item is not None
    count = from_item(ScheduleCount, item)
    if count.counted_at == NOT_COUNTED:
        return [BEING_COUNTED]
    return [_full(namespace, count.schedules, most)] if count.schedules >= most else []


def _is_to_count(count: ScheduleCount, most: int, now: int) -> bool:
    is_old = count.counted_at <= now - COUNTED_FOR_MS
    return count.counted_at == NOT_COUNTED or (count.schedules >= most and is_old)


def _count(lane: ShardWriter, namespace: str, seen: Item | None) -> Operation[None]:
    low, high = keys.schedule_states(namespace)
    schedules = 0
    for shard in range(lane.host.holding.shards):
        items = yield from lane.read_range(low, high, keys.shard_pk(shard))
        schedules += sum(item["status"] != "deleted" for item in items)
    count = ScheduleCount(namespace=namespace, schedules=schedules, counted_at=lane.host.now)
    yield from lane.decide_alone(_Counted(count, seen))


def _too_wide(lane: ShardWriter, spec: ScheduleSpec, trigger: EventTrigger, most: int) -> Operation[list[Problem]]:
    for event_key in sorted({leaf.event_key(spec.namespace) for leaf in trigger.leaves()} - {""}):
        pk, low, high = keys.index_rows_in(event_key, spec.namespace)
        items = yield from lane.read_range(low, high, pk)
        others = {row.name for row in (from_item(IndexRow, item) for item in items)} - {spec.name}
        if len(others) >= most:
            problem = f"{len(others)} schedules of namespace {spec.namespace} hear {event_key} already, {most} may"
            return [Problem("trigger", problem, f"raise fan_out_max in {QUOTAS_SETTING} of nodes and API")]
    return []


def _fresh(lane: ShardWriter, key: Key) -> Operation[Item | None]:
    """Reads what others write as well."""
    lane.view.forget((key,))
    yield from lane.fetch(NotAtHand(keys=[key]))
    return lane.view.item(key)


def _full(namespace: str, schedules: int, most: int) -> Problem:
    problem = f"{namespace} has {schedules} schedules, {most} are its quota"
    return Problem(
        "namespace", problem, f"delete one, or raise schedules_max in {QUOTAS_SETTING} ({namespace}) of nodes and API"
    )


def _is_there(state: ScheduleState | None) -> bool:
    return state is not None and state.status != "deleted"


def _revision(item: Item | None) -> object:
    return None if item is None else item["rev"]
