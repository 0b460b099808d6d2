"""Searches that end before they have found something: the state says how far they came, and the outcome is that of uncut ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_definition,
    a_request,
    a_schedule,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.tier import at_night
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.language.triggers.search import STEPS_PER_DECISION, Search
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.trigger_rows import TimerRow

LEFT_OUT: list[Doc] = [
    {"type": "cron", "expression": "*/20 * * * *"},
    {"type": "cron", "expression": "* 4,7 * * *"},
    {"type": "cron", "expression": "30-59 5 * * *", "zone": "Europe/Rome"},
]
TENS: Doc = {"type": "cron", "expression": "*/10 * * * *", "exclude": LEFT_OUT}
SEVERAL: Doc = {
    "type": "times",
    "specs": [TENS, every("25m", exclude=LEFT_OUT)],
    "exclude": [{"type": "cron", "expression": "* 10 * * *", "zone": "UTC"}],
}
TRIGGERS = {
    "cron": TENS,
    "elapsed": every("5m", exclude=LEFT_OUT),
    "several": SEVERAL,
    "so many": {**TENS, "max_fires": 7},
    "later": {**TENS, "start": "2025-11-13T03:00:00Z", "end": "2025-11-13T11:00:00Z"},
    "ticks": all_of({**TENS, "ttl": "2h"}, {**every("50m", exclude=LEFT_OUT), "ttl": "2h"}, on_data("a")),
    "instances": all_of({**TENS, "driver": "time"}, on_data("a")),
}


@contextmanager
def steps_of(numbers: list[int]) -> Iterator[None]:
    """Each decision has the next of these numbers of steps, and again from the first one on."""
    following = cycle(numbers)
    with patch.object(Search, "of_a_decision", lambda parts=1: Search(next(following))):
        yield


def outcome(trigger: Doc, catchup: Doc, backlog: str, steps: list[int]) -> dict[str, object]:
    """An outage, a suspend, an update and a crash, with events all along."""
    with steps_of(steps):
        bench = ActorHarness()
        bench.run(SECOND)
        more: Doc = {} if trigger["type"] == "all_of" else {"catchup": catchup}
        spec = a_spec(trigger=trigger, **more)
        bench.request(an_apply(spec, "a"))
        _run(bench, HOUR)
        bench.away(2 * HOUR)
        _run(bench, HOUR)
        bench.request(a_request("schedule.suspend", request_id="s"))
        bench.run(HOUR)
        bench.request(a_request("schedule.resume", request_id="r", backlog=backlog))
        _run(bench, HOUR)
        bench.request(an_apply({**spec, "labels": {"version": "two"}}, "b"))
        bench.crash()
        _run(bench, 3 * HOUR)
        state = bench.state_of()
    assert state is not None
    return {
        "started": sorted((order.run_id, str(order.context)) for order in bench.started),
        "ledger": bench.ledger(),
        "receipts": {name: (each["status"], each["version"]) for name, each in bench.receipts().items()},
        "state": (state.fired_through, state.fires, state.gathered, state.alone, state.seals, state.ticked),
    }


def _run(bench: ActorHarness, milliseconds: int) -> None:
    for _ in range(milliseconds // (20 * MINUTE)):
        bench.event(an_event(f"{bench.now}", "a"))
        bench.run(20 * MINUTE)


UNCUT: dict[tuple[str, str, str], dict[str, object]] = {}


@settings(max_examples=at_night(8, else_=1), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(sorted(TRIGGERS)),
    mode=st.sampled_from(["all", "last", "coalesce", "none"]),
    backlog=st.sampled_from(["all", "last", "none"]),
    steps=st.lists(st.integers(1, 25), min_size=1, max_size=4),
)
def test_given_searches_that_are_cut_anywhere_then_what_comes_of_it_is_what_uncut_ones_would_have_made(
    name: str, mode: str, backlog: str, steps: list[int]
) -> None:
    """Nothing fires twice, early or not at all, and nothing is told otherwise (I1, I2)."""
    story = (name, mode, backlog)
    catchup: Doc = {"mode": mode, "max_runs": 3}
    if story not in UNCUT:
        UNCUT[story] = outcome(TRIGGERS[name], catchup, backlog, [10_000_000])
    assert outcome(TRIGGERS[name], catchup, backlog, steps) == UNCUT[story]


# -- what one decision takes, and what it leaves -------------------------------------------------------------------------

FROM = parse_instant("2025-12-31T23:59:59Z")
BY_HOURS = [
    {"type": "cron", "dialect": "quartz", "expression": f"* * {hour} * * ? 2026-2029", "zone": "UTC"}
    for hour in range(24)
]
ADVERSE = [
    pytest.param(every("1m", phase="59s", exclude=BY_HOURS), id="every minute"),
    pytest.param({"type": "cron", "dialect": "unix6", "expression": "* * * * * *", "exclude": BY_HOURS}, id="seconds"),
    pytest.param({"type": "times", "specs": [every("1m", phase="59s")] * 9, "exclude": BY_HOURS}, id="several"),
]


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What all searches have compared so far."""
    counted = [0]
    takes = Search.takes

    def counting(search: Search, comparisons: int) -> bool:
        counted[0] += 1 + comparisons
        return takes(search, comparisons)

    monkeypatch.setattr(Search, "takes", counting)
    return counted


@pytest.mark.parametrize("trigger", ADVERSE)
def test_given_years_left_out_then_no_decision_takes_more_than_its_steps_and_the_next_one_goes_on(
    trigger: Doc, spent: list[int]
) -> None:
    """Review finding: the shard writer stood still for 20 ms to 1 s for each such year."""
    desk = DecisionHarness(a_definition(a_spec(trigger=trigger)))
    desk.lay(a_schedule(next_nominal=FROM, activated_at=FROM - 1), TimerRow(at=FROM, kind="S", ref="flights/nightly"))
    bounds, most = list[int](), 0
    state = _fired(desk)
    while state.next_nominal_is_bound:
        assert state.next_nominal is not None
        assert (state.fired_through, state.searched_from) == (FROM, FROM)
        bounds.append(state.next_nominal)
        spent[0] = 0
        state = _fired(desk)
        most = max(most, spent[0])
    assert len(bounds) > 4
    assert bounds == sorted(set(bounds))
    # Forward and back once more each, by the step in which they end.
    assert most <= STEPS_PER_DECISION + 4 * 60
    assert state.next_nominal is not None
    assert format_instant(state.next_nominal)[:16] == "2030-01-01T00:00"
    assert [job.nominal for job in desk.records(Job, "J#")] == [FROM]

    spent[0] = 0
    _fired(desk)
    later = max(desk.records(Job, "J#"), key=lambda job: job.nominal)
    assert (later.nominal, later.interval_start) == (state.next_nominal, FROM)
    assert spent[0] < 4 * 60, "what was searched forward is not searched back"
    assert desk.records(LedgerRow, "L#") == []


def _fired(desk: DecisionHarness) -> ScheduleState:
    """Decides on the schedule's row when it comes; returns the state behind that."""
    (row,) = desk.records(TimerRow, "T#")
    desk.decide(FireSchedule(row, desk.memory), row.at)
    state = desk.record(ScheduleState, keys.schedule_state(0, "flights", "nightly"))
    assert state is not None
    return state
