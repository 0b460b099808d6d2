"""A schedule's ticks on a desk; shared by the tests of composites with time leaves."""

from __future__ import annotations

from tests.support.builders import HOUR, NOW, Doc
from tests.support.harness.decision_harness import Desk
from tests.unit.tidegate_core.decisions.run_plane.counting import REF, a_desk
from tidegate_core.decisions.run_plane.latch_ticks import LatchTicks
from tidegate_core.decisions.run_plane.timers import tick_row
from tidegate_core.records.run_plane import ScheduleState
from tidegate_core.store import keys

FIRST = NOW - NOW % HOUR + HOUR
"""The first tick of an hourly trigger after NOW."""


def a_ticking_desk(trigger: Doc, **state: object) -> Desk:
    desk = a_desk(trigger, **{"next_tick": FIRST, **state})
    row = tick_row(state_of(desk))
    assert row is not None
    desk.lay(row)
    return desk


def state_of(desk: Desk) -> ScheduleState:
    state = desk.record(ScheduleState, keys.schedule_state(0, *REF.split("/")))
    assert state is not None
    return state


def tick(desk: Desk, now: int | None = None) -> None:
    """Decides on the row of the next tick, at its time or later."""
    row = tick_row(state_of(desk))
    assert row is not None
    desk.decide(LatchTicks(row, now or row.at), now or row.at)
