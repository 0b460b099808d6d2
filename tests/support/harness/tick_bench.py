"""A schedule's ticks on a desk; shared by the tests of composites with time leaves."""

from __future__ import annotations

from tests.support.builders import HOUR, NOW, Doc
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.evidence_bench import REF, a_desk
from tidegate_core.evidence.expiry import LatchTicks
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.timer_rows import tick_row

FIRST = NOW - NOW % HOUR + HOUR
"""The first tick of an hourly trigger after NOW."""


def a_ticking_desk(trigger: Doc, **state: object) -> DecisionHarness:
    desk = a_desk(trigger, **{"next_tick": FIRST, **state})
    row = tick_row(state_of(desk))
    assert row is not None
    desk.lay(row)
    return desk


def state_of(desk: DecisionHarness) -> ScheduleState:
    state = desk.record(ScheduleState, keys.schedule_state(0, *REF.split("/")))
    assert state is not None
    return state


def tick(desk: DecisionHarness, now: int | None = None) -> None:
    """Decides on the row of the next tick, at its time or later."""
    row = tick_row(state_of(desk))
    assert row is not None
    desk.decide(LatchTicks(row, now or row.at), now or row.at)
