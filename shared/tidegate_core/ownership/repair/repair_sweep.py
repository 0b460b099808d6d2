"""Every active schedule has what it lives by beside its timer rows: index rows where it hears events, a record where it sends messages.

Nothing of the system takes these away from a schedule that is active; a restore of a part, or a hand, does. Such a schedule would hear
nothing, or send nothing, silently. Timer rows are looked after more often (`timer_sweep`): they cost one read for a hundred schedules, and
these one for each event key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tidegate_core.commands.fire_route import route_of
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.ownership.repair.recurring_repair import RestoreRecurring, gone_of
from tidegate_core.ownership.repair.subscription_repair import RestoreSubscriptions
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, ReadRange
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.recurring_message import Recurring
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Key, Page, RangeRead
from tidegate_core.shard.events.subscriptions import SubscribedLeaf, heard_leaves, missing_rows
from tidegate_core.shard.schedule_state import fires, parsed

CHECK_MS: Final = 600_000
"""Between two pages: a shard of 25 such schedules is gone through in ten minutes, one of 1,000 in seven hours."""
PAGE: Final = 25
"""Schedules of one look: some 50 reads at one event key each, so about 310 an hour for each shard at most."""
KNOWN_MAX: Final = 10_000
"""Versions of which it is remembered what they live by (some 100 bytes each): their definitions are read once."""


class _LivesBy(NamedTuple):
    """What a version of a schedule needs beside its timer rows."""

    version: int
    heard: tuple[SubscribedLeaf, ...]
    has_record: bool


class RepairSweep:
    """One per shard."""

    def __init__(self, lane: ShardWriter, recurring: RecurringQueue) -> None:
        self._lane = lane
        self._host = lane.host
        self._recurring = recurring
        self._after: str | None = None
        self._known: dict[str, _LivesBy] = {}

    def serve(self) -> Operation[None]:
        """Looks for good, one look after the other; ends with the holding."""
        while True:
            pause = CHECK_MS + self._host.jitter(f"standing {self._lane.shard}", CHECK_MS // 5)
            yield from self._host.sleep(pause, routine=True)
            yield from self._host.safely("sweep_standing", f"shard {self._lane.shard}", self._look())

    def _look(self) -> Operation[None]:
        wanted = RangeRead(
            keys.shard_pk(self._lane.shard), *keys.prefix_range(keys.STATE_PREFIX), limit=PAGE, after=self._after
        )
        page = yield from self._host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        self._after = page.next_after
        states = [state for state in (from_item(ScheduleState, item) for item in page.items) if fires(state)]
        yield from self._learn(states)
        by_ref = {keys.schedule_ref(state.namespace, state.name): state for state in states}
        for ref, state in by_ref.items():
            known = self._known.get(ref)
            if known is not None and known.heard and (yield from missing_rows(self._lane, state, known.heard)):
                # It may have been changed between the reads: the procedure looks again.
                self._lane.add(RestoreSubscriptions(ref))
        sending = {ref: state for ref, state in by_ref.items() if ref in self._known and self._known[ref].has_record}
        yield from self._look_at_records(sending)

    def _learn(self, states: list[ScheduleState]) -> Operation[None]:
        """Reads the definitions of versions that are not known yet."""
        wanted: dict[Key, ScheduleState] = {}
        for state in states:
            known = self._known.get(keys.schedule_ref(state.namespace, state.name))
            if known is None or known.version != state.version:
                wanted[keys.definition(self._lane.shard, state.namespace, state.name, state.version)] = state
        if not wanted:
            return
        found = yield from self._host.read_for_good(Read(tuple(wanted)))
        assert isinstance(found, Items)
        for key, state in wanted.items():
            ref = keys.schedule_ref(state.namespace, state.name)
            self._known.pop(ref, None)
            if key not in found.found:
                # Nobody can write it anew: its owner applies it again.
                self._host.note("definition_missing", schedule=ref, version=state.version)
                continue
            if len(self._known) >= KNOWN_MAX:
                del self._known[next(iter(self._known))]
            spec = parsed(from_item(Definition, found.found[key]).spec)
            self._known[ref] = _LivesBy(state.version, heard_leaves(spec), not route_of(spec).keeps_next_in_state)

    def _look_at_records(self, sending: Mapping[str, ScheduleState]) -> Operation[None]:
        if not sending:
            return
        shard = self._lane.shard
        places = {
            ref: (
                keys.recurring(shard, each.namespace, each.name),
                keys.recurring_far(shard, each.namespace, each.name),
            )
            for ref, each in sending.items()
        }
        found = yield from self._host.read_for_good(Read(tuple(key for both in places.values() for key in both)))
        assert isinstance(found, Items)
        records = {
            ref: from_item(Recurring, item)
            for ref, both in places.items()
            for item in [found.found.get(both[0]) or found.found.get(both[1])]
            if item is not None
        }
        summons = {ref: key for ref, record in records.items() for key in gone_of(record, shard)}
        there: Mapping[Key, object] = {}
        if summons:
            rows = yield from self._host.read_for_good(Read(tuple(summons.values())))
            assert isinstance(rows, Items)
            there = rows.found
        for ref, state in sending.items():
            record = records.get(ref)
            is_open = record is not None and record.is_open_for(state.generation)
            if not is_open or (ref in summons and summons[ref] not in there):
                stale = (*places[ref], *([summons[ref]] if ref in summons else ()))
                self._lane.add(RestoreRecurring(ref, self._recurring, stale))
            elif ref in summons and self._recurring.summoned.is_left(summons[ref]):
                self._recurring.summoned.again(ref, summons[ref])
