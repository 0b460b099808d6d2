"""CDAP's test scenarios TS-04 to TS-08 as the rows state them, and its edge cases about update, disable and delete."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.language.values.derived_ids import schedule_shard

IN_40_S = {"type": "time_window", "opens": "02:14", "closes": "02:13"}
"""Opens 40 s after a bench begins, for all of a day: what waits for it is due then, to the millisecond."""
OFFSETS = range(-500, 51)
SCHEDULES = tier.at_night(200, else_=40)


@pytest.fixture
def bench() -> ActorHarness:
    return ActorHarness()


def answer(bench: ActorHarness, document: Doc, run: int = 0) -> Doc:
    bench.request(document)
    bench.run(run)
    return bench.receipts()[str(document["id"])]


def events(bench: ActorHarness, count: int, prefix: str, dataset: str = "raw") -> None:
    for number in range(count):
        bench.event(an_event(f"{prefix}-{number}", dataset))
    bench.run(100)


def test_given_ts_04_then_an_update_obsoletes_the_half_filled_job(bench: ActorHarness) -> None:
    """TS-04: needs 5; 1 event; update the properties; 4 more; wait 10 s: no run. 1 more: a run with the new ones."""
    bench.request(an_apply(a_spec(trigger=on_data(count=5), args=["old"])))
    events(bench, 1, "before")
    assert answer(bench, an_apply(a_spec(trigger=on_data(count=5), args=["new"]), "u"))["discarded"]["evidence"] == {
        "": 1
    }
    events(bench, 4, "after")
    bench.run(10 * SECOND)
    assert bench.started == []
    events(bench, 1, "last")
    assert [order.args for order in bench.started] == [("new",)]


def test_given_ts_05_then_an_update_drops_the_job_that_waits_for_its_constraint(bench: ActorHarness) -> None:
    """TS-05: needs 5 and a wait; 5 events; update to 3 and hardly any wait; 3 events: a run with the new properties at
    once, and the old job never runs. Rows CD-033 and CD-035.
    """
    bench.request(an_apply(a_spec(trigger=on_data(count=5), args=["old"], constraints=[IN_40_S])))
    events(bench, 5, "before")
    (job,) = bench.rows("J#")
    receipt = answer(bench, an_apply(a_spec(trigger=on_data(count=3), args=["new"]), "u"))
    assert receipt["discarded"]["jobs"] == [job["id"]]
    events(bench, 3, "after")
    bench.run(SECOND)
    assert [order.args for order in bench.started] == [("new",)]
    bench.run(HOUR)
    assert [entry[0] for entry in bench.ledger()] == ["cancelled/superseded", "launched"]


def test_given_ts_06_at_random_offsets_then_no_deleted_schedule_runs_whenever_its_last_event_comes(
    bench: ActorHarness,
) -> None:
    """TS-06, at 200 offsets at night: needs 5; 4 events; DELETE; 1 more at -500 to +50 ms of it: no run, unless its fifth event was counted, and
    the program past the gate, before the delete was answered. The same name made again counts from 0.
    """
    chance = random.Random(6)
    names = [f"s{number}" for number in range(SCHEDULES)]
    for name in names:
        bench.request(an_apply(a_spec(name, on_data(name, count=5))))
    for name in names:
        for number in range(4):
            bench.event(an_event(f"{number}", name))
    deleted_at = bench.now + SECOND
    last = {name: deleted_at + chance.choice(OFFSETS) for name in names}
    stops = _Stops(bench)
    _in_order(
        bench,
        [(last[name], partial(bench.event, an_event("4", name))) for name in names]
        + [(deleted_at, partial(stops.ask, name, "delete")) for name in names],
    )
    bench.run(10 * SECOND)
    stops.check()
    late = [name for name in names if last[name] > deleted_at]
    assert len(late) > tier.at_night(10, else_=1)
    assert [name for name in late if _started(bench, name)] == []
    for name in names[:20]:
        bench.request(an_apply(a_spec(name, on_data(name, count=5)), f"again-{name}"))
        for number in range(5, 9):
            bench.event(an_event(f"{number}", name))
    before = len(bench.started)
    bench.run(10 * SECOND)
    assert len(bench.started) == before


@pytest.mark.parametrize("wait", [{"type": "delay", "after": "40s"}, IN_40_S], ids=["delay", "window"])
@pytest.mark.parametrize("starts_after", [0, 20, 300])
def test_given_ts_07_at_random_offsets_then_a_run_was_claimed_before_its_delete_or_never_starts(
    starts_after: int, wait: Doc
) -> None:
    """TS-07, at 200 offsets at night: 5 events and a delay of 40 s, or a window that opens then; DELETE at -500 to +50 ms of the end of the wait. A program starts only when the
    delete's answer lists it as running. Rows CD-035 and OQ-01.
    """
    bench = ActorHarness(behaviour=Behaviour(starts_after=starts_after, runs_for=MINUTE))
    chance = random.Random(7)
    names = [f"s{number}" for number in range(SCHEDULES)]
    due = bench.now + 40 * SECOND
    for name in names:
        bench.request(an_apply(a_spec(name, on_data(name, count=5), constraints=[wait])))
    for name in names:
        for number in range(5):
            bench.event(an_event(f"{number}", name))
    assert len(bench.rows("J#")) == SCHEDULES
    at = {name: due + chance.choice(OFFSETS) for name in names}
    stops = _Stops(bench)
    _in_order(bench, [(at[name], partial(stops.ask, name, "delete")) for name in names])
    bench.run(5 * MINUTE)
    stops.check()
    started = {name for name in names if _started(bench, name)}
    assert starts_after > 20 or started, "some deletes come after the claim"
    assert not started & {name for name in names if at[name] < due}
    ended = {entry[1]: entry[0] for entry in bench.ledger()}
    assert ended == {name: "launched" if name in started else "cancelled/schedule_deleted" for name in names}


@pytest.mark.parametrize("blocked_by", ["window", "limit", "both"])
def test_given_ts_08_then_the_run_starts_only_when_all_constraints_hold_at_the_same_check(
    bench: ActorHarness, blocked_by: str
) -> None:
    """TS-08: a trigger and several constraints; each flips in turn."""
    window = IN_40_S if blocked_by in {"window", "both"} else {**IN_40_S, "opens": "02:00", "closes": "01:59"}
    busy_until = bench.now + (MINUTE if blocked_by in {"limit", "both"} else 5 * SECOND)
    bench.behaves = lambda order: Behaviour(runs_for=busy_until - bench.now)
    shared: dict[str, Any] = {"file": "/jobs/same.py"}
    bench.request(an_apply(a_spec("other", every("10h"), constraints=[at_most(1, "program")], **shared)))
    bench.request(a_request("trigger", "other"))
    bench.run(SECOND)
    bench.behaves = lambda order: Behaviour()
    both = [window, at_most(1, "program")]
    bench.request(an_apply(a_spec(trigger=on_data(), constraints=both, **shared)))
    events(bench, 1, "d")
    opens = bench.now // MINUTE * MINUTE + MINUTE if blocked_by in {"window", "both"} else 0
    expected = max(opens, busy_until)
    bench.run(expected - bench.now - 100)
    assert len(bench.started) == 1
    bench.run(3 * SECOND)
    assert len(bench.started) == 2


@pytest.mark.parametrize(
    "request_", [an_apply(a_spec(trigger=on_data(count=2), args=["new"]), "it"), a_request("delete", request_id="it")]
)
def test_given_an_update_or_delete_then_the_half_filled_job_goes_and_all_events_are_needed_anew(
    bench: ActorHarness, request_: Doc
) -> None:
    """Section 3.11 of the rows: update, disable and delete each drop the pending half-filled job."""
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    events(bench, 1, "before")
    assert answer(bench, request_)["discarded"]["evidence"] == {"": 1}
    if request_["type"] == "schedule.delete":
        bench.request(an_apply(a_spec(trigger=on_data(count=2)), "again"))
    events(bench, 1, "after")
    assert bench.started == []
    events(bench, 1, "last")
    assert len(bench.started) == 1


def test_given_many_schedules_suspended_at_once_while_all_are_due_then_nothing_starts_after_its_answer() -> None:
    """Row CD-035 for each mode that stops: the suspend races with 60 launches, and whoever commits first wins."""
    for mode in ("drop", "hold", "freeze"):
        bench = ActorHarness(behaviour=Behaviour(starts_after=120))
        chance = random.Random(mode)
        names = [f"s{number}" for number in range(tier.at_night(60, else_=20))]
        for name in names:
            bench.request(an_apply(a_spec(name, every("1m"))))
        due = bench.now // MINUTE * MINUTE + MINUTE
        at = {name: due + chance.choice(range(-200, 300)) for name in names}
        stops = _Stops(bench)
        _in_order(bench, [(at[name], partial(stops.ask, name, "suspend", mode=mode)) for name in names])
        bench.run(10 * SECOND)
        stops.check()


def _started(bench: ActorHarness, name: str) -> set[str]:
    return {order.run_id for order in bench.started if str(order.context["schedule"]["name"]) == name}  # type: ignore[index,call-overload]


class _Stops:
    """Requests that stop schedules, each at its instant, with what had started of the schedule when it was answered."""

    def __init__(self, bench: ActorHarness) -> None:
        self._bench = bench
        self._before: dict[str, set[str]] = {}

    def ask(self, name: str, kind: str, **more: Any) -> None:
        """On a bench the answer comes at the instant of the request."""
        self._bench.request(a_request(kind, name, **more))
        receipt = self._bench.receipts()[f"{kind}-{name}"]
        self._before[name] = _started(self._bench, name)
        assert set(receipt["running"]) <= self._before[name]

    def check(self) -> None:
        for name, before in self._before.items():
            assert _started(self._bench, name) == before
        assert {schedule_shard("flights", name, 4) for name in self._before} == {0, 1, 2, 3}
        assert self._bench.notices("decision_failed") == []


def _in_order(bench: ActorHarness, acts: Sequence[tuple[int, Callable[[], None]]]) -> None:
    for at, act in sorted(acts, key=lambda each: each[0]):
        bench.run(at - bench.now)
        act()
