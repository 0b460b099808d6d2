"""A time trigger's instant has come: each instant becomes one job, and the cursor moves from the last scheduled one (I1, I2)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import HOUR, MINUTE, NOW, SECOND, Doc, a_definition, a_schedule, a_spec, every
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.firing.catch_up import MADE_PER_TRANSACTION
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.language.values.instants import as_datetime, format_instant, parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Update
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.shard_cache import ShardCache

REF = "flights/nightly"
FIRST = NOW - NOW % MINUTE + MINUTE
"""A whole minute."""


def a_row(at: int = FIRST) -> TimerRow:
    return TimerRow(at=at, kind="S", ref=REF)


def a_desk(trigger: Doc | None = None, next_nominal: int | None = FIRST, **state: Any) -> DecisionHarness:
    desk = DecisionHarness(a_definition(a_spec(trigger=trigger or every("1m"))))
    desk.lay(a_schedule(next_nominal=next_nominal, **state))
    if next_nominal is not None:
        desk.lay(a_row(next_nominal))
    return desk


def state(desk: DecisionHarness) -> ScheduleState:
    found = desk.record(ScheduleState, keys.schedule_state(0, "flights", "nightly"))
    assert found is not None
    return found


def nominals(desk: DecisionHarness) -> list[int]:
    return sorted(job.nominal for job in desk.records(Job, "J#"))


def timers(desk: DecisionHarness) -> list[int]:
    return [row.at for row in desk.records(TimerRow, "T#")]


def test_given_an_instant_that_has_come_then_it_becomes_a_job_and_the_next_is_armed() -> None:
    desk = a_desk()
    desk.decide(FireSchedule(a_row()), FIRST + 20)
    (job,) = desk.records(Job, "J#")
    assert (job.nominal, job.state, job.trigger, job.generation, job.satisfied_at) == (
        FIRST,
        "pending_constraint",
        "time",
        1,
        FIRST + 20,
    )
    assert (job.interval_start, job.interval_end) == (FIRST - MINUTE, FIRST)
    assert state(desk).next_nominal == FIRST + MINUTE
    assert timers(desk) == [FIRST + MINUTE]


@pytest.mark.parametrize(
    ("late_by", "made"),
    [
        pytest.param(0, 1, id="on time"),
        pytest.param(MINUTE - 1, 1, id="just before the next"),
        pytest.param(MINUTE, 2, id="at the next"),
        pytest.param(3 * MINUTE + 5, 4, id="three missed"),
        pytest.param(100 * MINUTE, MADE_PER_TRANSACTION, id="more than one transaction makes"),
    ],
)
def test_given_a_late_look_then_every_instant_gets_its_job(late_by: int, made: int) -> None:
    desk = a_desk()
    desk.decide(FireSchedule(a_row()), FIRST + late_by)
    assert nominals(desk) == [FIRST + number * MINUTE for number in range(made)]
    assert state(desk).next_nominal == FIRST + made * MINUTE
    assert timers(desk) == [FIRST + made * MINUTE]


@given(late_by=st.integers(0, 40 * MINUTE))
def test_given_any_lateness_then_following_the_rows_makes_each_instant_once(late_by: int) -> None:
    desk = a_desk()
    now = FIRST + late_by
    while timers(desk)[0] <= now:
        desk.decide(FireSchedule(a_row(timers(desk)[0])), now)
    assert nominals(desk) == list(range(FIRST, now + 1, MINUTE))


@pytest.mark.parametrize(
    "desk",
    [
        pytest.param(lambda: a_desk(status="suspended"), id="suspended"),
        pytest.param(lambda: a_desk(status="deleted"), id="deleted"),
        pytest.param(lambda: a_desk(next_nominal=FIRST + 2 * MINUTE), id="moved on"),
        pytest.param(lambda: a_desk(next_nominal=None), id="over"),
    ],
)
def test_given_a_row_left_behind_then_it_goes_and_nothing_fires(desk: object) -> None:
    assert callable(desk)
    made: DecisionHarness = desk()
    made.lay(a_row())
    before = state(made)
    made.decide(FireSchedule(a_row()), FIRST)
    assert nominals(made) == []
    assert FIRST not in timers(made)
    assert state(made) == before


def test_given_a_row_of_a_schedule_that_is_unknown_then_it_goes() -> None:
    desk = DecisionHarness(a_row())
    desk.decide(FireSchedule(a_row()), FIRST)
    assert timers(desk) == []


def test_given_the_same_row_twice_then_the_second_does_nothing() -> None:
    desk = a_desk()
    desk.decide(FireSchedule(a_row()), FIRST)
    before = state(desk)
    desk.decide(FireSchedule(a_row()), FIRST)
    assert state(desk) == before
    assert nominals(desk) == [FIRST]


def test_given_the_last_instant_then_no_row_follows() -> None:
    desk = a_desk(every("1m", end=format_instant(FIRST + 90 * SECOND)))
    desk.decide(FireSchedule(a_row()), FIRST + 10 * MINUTE)
    assert nominals(desk) == [FIRST, FIRST + MINUTE]
    assert state(desk).next_nominal is None
    assert timers(desk) == []


@pytest.mark.parametrize(
    "expressions",
    [
        pytest.param(("* 0-11 * * *", "* 12-23 * * *"), id="halves of days"),
        pytest.param(("*/2 * * * *", "1-59/2 * * * *"), id="every other minute"),
    ],
)
def test_given_months_left_out_behind_an_instant_then_the_row_behind_them_is_armed(
    expressions: tuple[str, ...],
) -> None:
    """A search that gave up on the way would leave the schedule active and without a row, and no one would hear of it."""
    first = as_datetime(FIRST).date() + timedelta(days=1)
    days, later = [first + timedelta(days=number) for number in range(60)], first + timedelta(days=60)
    months = {(day.month, ",".join(str(each.day) for each in days if each.month == day.month)) for day in days}
    left_out = [
        {"type": "cron", "expression": f"{expression[:-5]}{numbers} {month} *"}
        for expression in expressions
        for month, numbers in months
    ]
    last = parse_instant(f"{first}T00:00:00Z") - MINUTE
    desk = a_desk(every("1m", exclude=left_out), next_nominal=last)
    desk.decide(FireSchedule(a_row(last)), last)

    assert nominals(desk) == [last]
    assert state(desk).next_nominal == parse_instant(f"{later}T00:00:00Z")
    assert timers(desk) == [state(desk).next_nominal]


def test_given_a_single_instant_then_it_fires_once_however_late() -> None:
    desk = a_desk({"type": "at", "instant": format_instant(FIRST)})
    desk.decide(FireSchedule(a_row()), FIRST + 99 * MINUTE)
    assert nominals(desk) == [FIRST]
    assert state(desk).next_nominal is None


def test_given_a_state_that_moved_since_it_was_read_then_the_transaction_is_refused() -> None:
    """I1, I2: the write consumes exactly the cursor from which it was decided."""
    desk = a_desk()
    transaction, _ = desk.prepare(FireSchedule(a_row()), FIRST)
    assert transaction is not None
    key = keys.schedule_state(0, "flights", "nightly")
    touch = Update(key, "SET rev = rev + :one, w = :w", {}, {":one": 1, ":w": "t"})
    desk.store.transact(type(transaction)("other", (touch,), "t", key))
    desk.store.transact(transaction)
    assert nominals(desk) == []
    assert timers(desk) == [FIRST]


def test_given_another_incarnation_then_the_same_instant_has_another_id() -> None:
    ids = set()
    for incarnation in ("I1", "I2"):
        desk = a_desk(incarnation=incarnation)
        desk.decide(FireSchedule(a_row()), FIRST)
        ids.add(desk.records(Job, "J#")[0].id)
    assert len(ids) == 2


HELD: Doc = {"status": "suspended", "mode": "hold", "suspended_at": FIRST - SECOND}


def test_given_a_hold_that_has_ended_then_what_is_due_from_its_end_on_waits_for_who_carries_that_out() -> None:
    desk = a_desk(**HELD, until=FIRST + 2 * MINUTE)
    now = FIRST + 10 * MINUTE
    desk.decide(FireSchedule(a_row()), now)
    assert nominals(desk) == [FIRST, FIRST + MINUTE]
    held = state(desk)
    desk.decide(FireSchedule(a_row(FIRST + 2 * MINUTE)), now)
    assert (nominals(desk), state(desk)) == ([FIRST, FIRST + MINUTE], held)
    assert timers(desk) == [FIRST + 2 * MINUTE]


@pytest.mark.parametrize("until", [FIRST + MINUTE, FIRST + MINUTE + 1, None])
def test_given_a_hold_that_goes_on_then_all_that_is_due_is_made(until: int | None) -> None:
    desk = a_desk(**HELD, until=until)
    now = FIRST + 30 * SECOND
    desk.decide(FireSchedule(a_row()), now)
    assert (nominals(desk), timers(desk)) == ([FIRST], [FIRST + MINUTE])


def test_given_a_hold_that_ends_in_an_outage_then_one_job_stands_for_what_was_held_and_it_is_as_old_as_it_is() -> None:
    desk = DecisionHarness(a_definition(a_spec(trigger=every("1m"), catchup={"mode": "last", "window": "10m"})))
    desk.lay(a_schedule(next_nominal=FIRST, **HELD, until=FIRST + 5 * MINUTE))
    memory = ShardCache(0)
    memory.outages_are((Outage(FIRST - SECOND, FIRST + HOUR),))
    now = FIRST + 13 * MINUTE
    for _ in range(3):
        desk.decide(FireSchedule(a_row(timers(desk)[-1] if timers(desk) else FIRST), memory), now)
    assert [(job.nominal, job.covered) for job in desk.records(Job, "J#")] == [(FIRST + 4 * MINUTE, 2)]
    (too_old,) = desk.records(LedgerRow, "L#")
    assert (too_old.nominal, too_old.covered, too_old.reason) == (FIRST + 2 * MINUTE, 3, "catchup_window")
    assert (state(desk).next_nominal, state(desk).gathered) == (FIRST + 5 * MINUTE, None)
