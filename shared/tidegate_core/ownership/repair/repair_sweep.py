"""Two sweeps of a shard's active schedules: each finds rows that a schedule needs and that the store has lost.

tidegate never removes such a row from an active schedule; a partial restore or a manual delete does. Without the row the schedule would be
silent: it would not fire, not receive events, or not send messages. The shard's actor runs both sweeps from its recovery on. They read; the
decisions of `row_repair.py` write. `TimerSweep` is the faster one: one read serves a hundred schedules, and `RepairSweep` needs one for each
event key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tidegate_core.commands.fire_route import route_of
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.ownership.repair.row_repair import (
    RestoreRecurring,
    RestoreSubscriptions,
    RestoreTimers,
    timer_rows_of,
    wake_rows_of,
)
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, ReadRange
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.recurring_message import Recurring
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Key, Page, RangeRead
from tidegate_core.shard.events.subscriptions import SubscribedLeaf, heard_leaves, missing_rows
from tidegate_core.shard.schedule_state import fires, parsed

TIMERS_CHECK_MS: Final = 60_000
"""Interval between pages of the timer sweep: it takes ten minutes for a shard of 1,000 schedules, and two reads a minute."""
TIMERS_PAGE: Final = 100
"""Schedules of one page: one read takes the rows of that many."""
CHECK_MS: Final = 600_000
"""Interval between pages of the repair sweep: it takes ten minutes for a shard of 25 such schedules, seven hours for 1,000."""
PAGE: Final = 25
"""Schedules of one page: some 50 reads at one event key each, so at most about 310 an hour for each shard."""
KNOWN_MAX: Final = 10_000
"""Schedules whose needs are kept in memory, some 100 bytes each, so that each definition is read once."""


class TimerSweep:
    """Finds missing timer rows; one per shard."""

    def __init__(self, writer: ShardWriter) -> None:
        self._writer = writer
        self._host = writer.host
        self._after: str | None = None

    def serve(self) -> Operation[None]:
        """Reads page after page, until the assignment ends."""
        while True:
            pause = TIMERS_CHECK_MS + self._host.jitter(f"timers {self._writer.shard}", TIMERS_CHECK_MS // 5)
            yield from self._host.sleep(pause, routine=True)
            yield from self._host.safely("sweep_timers", f"shard {self._writer.shard}", self._look())

    def _look(self) -> Operation[None]:
        wanted = RangeRead(
            keys.shard_pk(self._writer.shard),
            *keys.prefix_range(keys.STATE_PREFIX),
            limit=TIMERS_PAGE,
            after=self._after,
        )
        page = yield from self._host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        self._after = page.next_after
        states = [from_item(ScheduleState, item) for item in page.items]
        rows = {row.key(self._writer.shard): state for state in states for row in timer_rows_of(state)}
        if not rows:
            return
        found = yield from self._host.read_for_good(Read(tuple(rows)))
        assert isinstance(found, Items)
        gone: dict[str, list[Key]] = {}
        for key, state in rows.items():
            if key not in found.found:
                gone.setdefault(keys.schedule_ref(state.namespace, state.name), []).append(key)
        for ref, stale in gone.items():
            # The schedule may have fired between the two reads: the decision checks again.
            self._writer.add(RestoreTimers(ref, tuple(stale)))


class _Needs(NamedTuple):
    """Rows that a version of a schedule needs in addition to its timer rows."""

    version: int
    heard: tuple[SubscribedLeaf, ...]
    has_record: bool


class RepairSweep:
    """Finds missing subscriptions, and missing rows of recurring messages; one per shard."""

    def __init__(self, writer: ShardWriter, recurring: RecurringQueue) -> None:
        self._writer = writer
        self._host = writer.host
        self._recurring = recurring
        self._after: str | None = None
        self._known: dict[str, _Needs] = {}

    def serve(self) -> Operation[None]:
        """Reads page after page, until the assignment ends."""
        while True:
            pause = CHECK_MS + self._host.jitter(f"standing {self._writer.shard}", CHECK_MS // 5)
            yield from self._host.sleep(pause, routine=True)
            yield from self._host.safely("sweep_standing", f"shard {self._writer.shard}", self._look())

    def _look(self) -> Operation[None]:
        wanted = RangeRead(
            keys.shard_pk(self._writer.shard), *keys.prefix_range(keys.STATE_PREFIX), limit=PAGE, after=self._after
        )
        page = yield from self._host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        self._after = page.next_after
        states = [state for state in (from_item(ScheduleState, item) for item in page.items) if fires(state)]
        yield from self._learn(states)
        by_ref = {keys.schedule_ref(state.namespace, state.name): state for state in states}
        for ref, state in by_ref.items():
            known = self._known.get(ref)
            if known is not None and known.heard and (yield from missing_rows(self._writer, state, known.heard)):
                # A request may have changed the schedule between the reads: the procedure checks again.
                self._writer.add(RestoreSubscriptions(ref))
        sending = {ref: state for ref, state in by_ref.items() if ref in self._known and self._known[ref].has_record}
        yield from self._look_at_records(sending)

    def _learn(self, states: list[ScheduleState]) -> Operation[None]:
        """Reads the definitions of versions that are not in memory."""
        wanted: dict[Key, ScheduleState] = {}
        for state in states:
            known = self._known.get(keys.schedule_ref(state.namespace, state.name))
            if known is None or known.version != state.version:
                wanted[keys.definition(self._writer.shard, state.namespace, state.name, state.version)] = state
        if not wanted:
            return
        found = yield from self._host.read_for_good(Read(tuple(wanted)))
        assert isinstance(found, Items)
        for key, state in wanted.items():
            ref = keys.schedule_ref(state.namespace, state.name)
            self._known.pop(ref, None)
            if key not in found.found:
                # No row tells what it said: the user has to apply the schedule again.
                self._host.note("definition_missing", schedule=ref, version=state.version)
                continue
            if len(self._known) >= KNOWN_MAX:
                del self._known[next(iter(self._known))]
            spec = parsed(from_item(Definition, found.found[key]).spec)
            self._known[ref] = _Needs(state.version, heard_leaves(spec), not route_of(spec).keeps_next_in_state)

    def _look_at_records(self, sending: Mapping[str, ScheduleState]) -> Operation[None]:
        if not sending:
            return
        shard = self._writer.shard
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
        summons = {ref: key for ref, record in records.items() for key in wake_rows_of(record, shard)}
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
                self._writer.add(RestoreRecurring(ref, self._recurring, stale))
            elif ref in summons and self._recurring.summoned.is_left(summons[ref]):
                self._recurring.summoned.again(ref, summons[ref])
