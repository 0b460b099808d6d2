"""Every active schedule has the timer rows that its state names: looked after page by page, and mended.

State and rows move in one transaction, so one without the other means a bug, a restore of a part, or that somebody has changed the
store. Such a schedule would never fire again, silently. The row follows from the state, so whoever holds the shard writes
it anew, as any decision does; and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Notice, Read, ReadRange
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key, Page, RangeRead
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.timer_rows import nominal_row, tick_row
from tidegate_core.writes.unit_of_work import UnitOfWork

CHECK_MS: Final = 60_000
"""Between two pages: a shard of 1,000 schedules is gone through in ten minutes, for two reads a minute."""
PAGE: Final = 100
"""As many as one read of their rows takes."""


class TimerSweep:
    """One per shard."""

    def __init__(self, lane: ShardWriter) -> None:
        self._lane = lane
        self._host = lane.host
        self._after: str | None = None

    def serve(self) -> Operation[None]:
        """Looks for good, one look after the other; ends with the holding."""
        while True:
            pause = CHECK_MS + self._host.jitter(f"timers {self._lane.shard}", CHECK_MS // 5)
            yield from self._host.sleep(pause, routine=True)
            yield from self._host.safely("sweep_timers", f"shard {self._lane.shard}", self._look())

    def _look(self) -> Operation[None]:
        wanted = RangeRead(
            keys.shard_pk(self._lane.shard), *keys.prefix_range(keys.STATE_PREFIX), limit=PAGE, after=self._after
        )
        page = yield from self._host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        self._after = page.next_after
        states = [from_item(ScheduleState, item) for item in page.items]
        rows = {row.key(self._lane.shard): state for state in states for row in rows_of(state)}
        if not rows:
            return
        found = yield from self._host.read_for_good(Read(tuple(rows)))
        assert isinstance(found, Items)
        gone: dict[str, list[Key]] = {}
        for key, state in rows.items():
            if key not in found.found:
                gone.setdefault(keys.schedule_ref(state.namespace, state.name), []).append(key)
        for ref, stale in gone.items():
            # It may have fired between the two reads: the decision looks again.
            self._lane.add(Rearm(ref, tuple(stale)))


def rows_of(state: ScheduleState) -> list[TimerRow]:
    """Returns all timer rows that a schedule's state stands for."""
    ref = keys.schedule_ref(state.namespace, state.name)
    until = None if state.until is None else TimerRow(at=state.until, kind=keys.RESUME_TIMER, ref=ref)
    return [row for row in (nominal_row(state), tick_row(state), until) if row is not None]


@dataclass(frozen=True, slots=True)
class Rearm:
    """Writes the timer rows of a schedule that are not there, as its present state names them.

    Attributes:
        stale: Rows that a look did not find: what is remembered of them is not believed.
    """

    ref: str
    stale: tuple[Key, ...] = ()
    name: str = "rearm"

    @property
    def about(self) -> str:
        return self.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, name = self.ref.split("/", 1)
        key = keys.schedule_state(unit.shard, namespace, name)
        state = unit.record(ScheduleState, key)
        if state is None:
            return
        rows = rows_of(state)
        there = unit.items([row.key(unit.shard) for row in rows])
        missing = [row for row, item in zip(rows, there, strict=True) if item is None]
        for row in missing:
            unit.set_row(row, row.key(unit.shard))
            unit.after(Notice("timer_row_missing", {"schedule": self.ref, "kind": row.kind, "at": row.at}))
        if missing:
            unit.put(state, key)  # Consumes the state that names them: a late repeat writes no row of the past.
