"""A crash after any effect, a lost answer to any write: what comes of it must be what comes of a run without a fault.

A bench takes no time, so the undisturbed run is an exact yardstick: rows, ledger, receipts, programs started, messages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count

import pytest

from tidegate_core.effects import Commit, Effect, Write
from tidegate_testkit.bench import Behaviour, Bench
from tidegate_testkit.builders import (
    HOUR,
    SECOND,
    a_cancel,
    a_request,
    a_send,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
    on_run_of,
)

Scenario = Callable[[Bench], None]

CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
"""Closed from the bench's first instant on (02:13:20) for 46 minutes: jobs wait."""
NEVER_STARTS = Behaviour(starts_after=None)
FOR_EVER = Behaviour(runs_for=None)


def fire(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), args=["${nominal}"])))
    bench.run(25 * SECOND)


def fire_what_was_missed(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), args=["${nominal}"], overlap="allow")))
    bench.run(SECOND)
    bench.now += 95 * SECOND  # The node was away.
    bench.run(5 * SECOND)


def admit_one_after_another(bench: Bench) -> None:
    bench.behaves = lambda order: Behaviour(runs_for=12 * SECOND)
    bench.request(an_apply(a_spec(trigger=every("5s"), args=["${nominal}"])))
    bench.run(40 * SECOND)


def admit_under_a_shared_limit(bench: Bench) -> None:
    bench.behaves = lambda order: Behaviour(runs_for=2 * SECOND)
    for name in ("one", "two"):
        shared = [at_most(1, "program")]
        bench.request(an_apply(a_spec(name, every("10s"), file="/jobs/same.py", constraints=shared, overlap="allow")))
    bench.run(18 * SECOND)


def wait_for_the_run_before(bench: Bench) -> None:
    bench.behaves = lambda order: Behaviour(runs_for=2 * SECOND)
    constraints = [
        {"type": "delay", "after": "1s"},
        {"type": "since_last_run", "at_least": "7s", "of": "finish"},
        {"type": "rate", "max": 2, "per": "40s"},
    ]
    bench.request(an_apply(a_spec(trigger=every("5s"), constraints=constraints, pending_timeout="20s")))
    bench.run(40 * SECOND)


def count_to_three(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=3))))
    bench.run(3 * SECOND)
    for days in ("abbc", "de"):
        for day in days:
            bench.event(an_event(day))
        bench.run(3 * SECOND)


def count_by_correlation(bench: Bench) -> None:
    trigger = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="30s")
    bench.request(an_apply(a_spec(trigger=trigger, args=["${correlation}"], overlap="allow")))
    bench.run(3 * SECOND)
    for day in ("d1", "d2", "d3"):
        bench.event(an_event(day, "a"))
    for day in ("d1", "d2"):
        bench.event(an_event(day, "b"))
    bench.run(40 * SECOND)


def wait_for_deadlines(bench: Bench) -> None:
    """Latches expire, one fires with what is there, one settles, one takes exactly as many as it needs."""
    a, b = on_data("a"), on_data("b")
    nested = all_of({"type": "any_of", "triggers": [a, on_data("b", 3)]}, {**on_data("c"), "ttl": "8s"}, timeout="20s")
    for name, trigger in {
        "nested": nested,
        "partial": all_of(a, b, on_data("x"), timeout="12s", on_timeout="partial"),
        "settles": {**a, "settle": "6s"},
        "exactly": {**on_data("b", 2), "take": "exactly_n"},
    }.items():
        bench.request(an_apply(a_spec(name, trigger, overlap="allow")))
    bench.run(3 * SECOND)
    for number, dataset in enumerate("cabbb"):
        bench.event(an_event(f"d{number}", dataset))
        bench.run(4 * SECOND)
    bench.run(30 * SECOND)


def meet_at_an_instant(bench: Bench) -> None:
    """CD-067: ticks that meet data, and that meet nothing in time."""
    ten = {**every("10s"), "ttl": "12s"}
    bench.request(an_apply(a_spec(trigger=all_of(ten, on_data("a"), timeout="1m"), args=["${nominal}"])))
    for day in ("d1", "d2", "d3"):
        bench.run(24 * SECOND)
        bench.event(an_event(day, "a"))
    bench.run(3 * SECOND)
    bench.now += 41 * SECOND  # The node was away.
    bench.run(5 * SECOND)


def wait_for_what_belongs_to_an_instant(bench: Bench) -> None:
    """6.5, `driver: time`: instances that data come for early, late, in an outage, and never."""
    ten = {**every("10s"), "driver": "time"}
    bench.request(an_apply(a_spec(trigger=all_of(ten, on_data("a"), timeout="25s"), args=["${nominal}"])))
    bench.run(5 * SECOND)
    for day in ("d1", "d2", "d3"):
        bench.event(an_event(day, "a"))
        bench.run(14 * SECOND)
    bench.now += 21 * SECOND  # The node was away, for less than the time-out.
    bench.run(SECOND)
    bench.event(an_event("d4", "a"))
    bench.run(4 * SECOND)


def meet_after_more_ticks_than_fit(bench: Bench) -> None:
    """Windows of ten days that nobody served: what came on the last one is counted behind their ticks, in parts."""
    eight = {"type": "cron", "expression": "0 8 * * *", "ttl": "2h"}
    trigger = all_of(eight, {**on_data("a"), "ttl": "2h"}, window={"every": "day", "zone": "UTC"})
    bench.request(an_apply(a_spec(trigger=trigger, args=["${nominal}"])))
    bench.run(SECOND)
    bench.now += (10 * 24 + 7) * HOUR  # The node was away.
    bench.event(an_event("d1", "a"))
    bench.run(15 * SECOND)


def start_at_an_instant(bench: Bench) -> None:
    """Ticks that fire alone, with what has come by then."""
    bench.request(an_apply(a_spec(trigger={"type": "any_of", "triggers": [every("15s"), on_data("a", 2)]})))
    for day in ("d1", "d2", "d3"):
        bench.run(9 * SECOND)
        bench.event(an_event(day, "a"))
    bench.run(20 * SECOND)


def remind_of_what_is_there(bench: Bench) -> None:
    sized = {"type": "data_size", "dataset": "a", "rows": 9, "at_least_every": "1m"}
    bench.request(an_apply(a_spec(trigger=sized)))
    bench.run(3 * SECOND)
    bench.event(an_event("d1", "a", rows=3))
    bench.run(130 * SECOND)


def follow_a_run(bench: Bench) -> None:
    bench.behaves = lambda order: Behaviour(outputs={"rows": 3})
    bench.request(an_apply(a_spec("down", on_run_of("up"), ["${upstream.run_id}", "${upstream.outputs.rows}"])))
    bench.run(2 * SECOND)
    bench.request(an_apply(a_spec("up", every("10s"))))
    bench.run(12 * SECOND)


def follow_a_start(bench: Bench) -> None:
    """One program goes on while it is followed, one has ended before anybody looked."""
    quick, slow = Behaviour(starts_after=10, runs_for=10), Behaviour(runs_for=4 * SECOND)
    bench.behaves = lambda order: slow if "flights/slow" in str(order.context) else quick
    for name in ("slow", "quick"):
        bench.request(an_apply(a_spec(f"after-{name}", on_run_of(name, "started"), ["${upstream.run_id}"])))
    bench.run(2 * SECOND)
    bench.request(an_apply(a_spec("slow", every("10s"))))
    bench.request(an_apply(a_spec("quick", every("10s"))))
    bench.run(12 * SECOND)


def lose_an_upstream(bench: Bench) -> None:
    """One schedule ends with it, one goes on without it."""
    bench.request(an_apply(a_spec("up", every("10s"))))
    bench.request(an_apply(a_spec("both", all_of(on_run_of("up"), on_data("a", 2)))))
    either = {"type": "any_of", "triggers": [on_run_of("up"), on_data("a", 3)]}
    bench.request(an_apply(a_spec("either", either)))
    bench.run(12 * SECOND)
    bench.event(an_event("d1", "a"))
    bench.request(a_request("delete", "up"))
    bench.run(5 * SECOND)
    for day in ("d2", "d3"):
        bench.event(an_event(day, "a"))
    bench.run(3 * SECOND)


def update_while_pending(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), constraints=[CLOSED])))
    bench.run(75 * SECOND)
    bench.request(an_apply(a_spec(trigger=every("20s"), args=["new"]), "second"))
    bench.run(30 * SECOND)


def delete_with_many_pending(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), constraints=[CLOSED])))
    bench.run(95 * SECOND)
    bench.request(a_request("delete"))
    bench.run(20 * SECOND)


def suspend_before_the_gate(bench: Bench) -> None:
    bench.behaves = lambda order: NEVER_STARTS
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.run(25 * SECOND)
    bench.request(a_request("suspend"))
    bench.run(20 * SECOND)
    bench.behaves = lambda order: Behaviour()
    bench.request(a_request("resume"))
    bench.run(15 * SECOND)


def suspend_under_a_shared_limit(bench: Bench) -> None:
    bench.behaves = lambda order: NEVER_STARTS
    limits = [at_most(3, "program")]
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow", constraints=limits)))
    bench.run(35 * SECOND)
    bench.request(a_request("suspend"))
    bench.run(15 * SECOND)


def drop_evidence(bench: Bench) -> None:
    trigger = all_of(on_data("a"), on_data("b"), correlate="data_partition")
    bench.request(an_apply(a_spec(trigger=trigger)))
    bench.run(3 * SECOND)
    for number in range(7):
        bench.event(an_event(f"d{number}", "a"))
    bench.run(3 * SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, args=["changed"]), "second"))
    bench.run(3 * SECOND)
    for number in range(2):
        bench.event(an_event(f"d{number}", "b"))
    bench.run(2 * SECOND)


def trigger_by_hand(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(2 * SECOND)


def cancel_a_job(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s", end="2025-11-13T02:13:32Z"), constraints=[CLOSED])))
    bench.run(15 * SECOND)
    job = str(bench.rows("J#")[0]["id"])
    bench.request({"id": "cancel", "type": "job.cancel", "job_id": job})
    bench.run(5 * SECOND)


def cancel_a_run_before_the_gate(bench: Bench) -> None:
    bench.behaves = lambda order: NEVER_STARTS
    bench.request(an_apply(a_spec(trigger=every("10s"))))
    bench.run(11 * SECOND)
    run = str(bench.rows("R#")[0]["id"])
    bench.behaves = lambda order: Behaviour()
    bench.request({"id": "cancel", "type": "run.cancel", "run_id": run})
    bench.run(12 * SECOND)


def cancel_a_running_run(bench: Bench) -> None:
    bench.behaves = lambda order: FOR_EVER
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(4 * SECOND)
    run = str(bench.rows("R#")[0]["id"])
    bench.request({"id": "cancel", "type": "run.cancel", "run_id": run})
    bench.run(15 * SECOND)


def a_program_that_dies_before_the_gate(bench: Bench) -> None:
    behaviours = {1: NEVER_STARTS, 2: Behaviour()}
    bench.behaves = lambda order: behaviours[order.attempt]
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(4 * SECOND)
    bench.vanish(str(bench.rows("R#")[0]["id"]))
    bench.run(20 * SECOND)


def send(bench: Bench) -> None:
    bench.request(a_send("m-1", after="2s", receipt=True))
    bench.request(a_send("m-2", key="k", after="3s"))
    bench.request(a_send(None, after="4s"))
    bench.request(a_send("m-4", after="1s", deliver_at=None) | {"payload": {"x": 1}})
    bench.run(20 * SECOND)


def replace(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="5s"))
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="6s"))
    bench.run(20 * SECOND)


def replace_after_delivery(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(3 * SECOND)
    bench.request(a_send("m-2", key="k", after="1s"))
    bench.run(20 * SECOND)


def cancel_in_time(bench: Bench) -> None:
    bench.request(a_send("m-1", after="5m"))
    bench.request(a_send("m-2", key="k", after="5m"))
    bench.run(SECOND)
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.request(a_cancel("c-2", key="k"))
    bench.run(330 * SECOND)


def cancel_too_late(bench: Bench) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.run(3 * SECOND)
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(20 * SECOND)


def cancel_nothing(bench: Bench) -> None:
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(2 * SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)


SCENARIOS: list[Scenario] = [
    fire,
    fire_what_was_missed,
    admit_one_after_another,
    admit_under_a_shared_limit,
    wait_for_the_run_before,
    count_to_three,
    count_by_correlation,
    wait_for_deadlines,
    meet_at_an_instant,
    wait_for_what_belongs_to_an_instant,
    meet_after_more_ticks_than_fit,
    start_at_an_instant,
    remind_of_what_is_there,
    follow_a_run,
    follow_a_start,
    lose_an_upstream,
    update_while_pending,
    delete_with_many_pending,
    suspend_before_the_gate,
    suspend_under_a_shared_limit,
    drop_evidence,
    trigger_by_hand,
    cancel_a_job,
    cancel_a_run_before_the_gate,
    cancel_a_running_run,
    a_program_that_dies_before_the_gate,
    send,
    replace,
    replace_after_delivery,
    cancel_in_time,
    cancel_too_late,
    cancel_nothing,
]


UNORDERED = frozenset({admit_under_a_shared_limit})
"""Which of two shards' owners takes a free permit first is nobody's promise: only what came of it is compared."""
WAITING_ANEW = frozenset({meet_after_more_ticks_than_fit})
"""A successor waits for the log again before it ends what is past its time: rows say when it did, some 100 ms later."""
BEGUN = SECOND
"""The actor serves by then, and no schedule is activated at an instant that it fires at."""


def begun() -> Bench:
    bench = Bench()
    bench.run(BEGUN)
    return bench


@cache
def undisturbed(scenario: Scenario) -> Bench:
    bench = begun()
    scenario(bench)
    return bench


def differences(expected: dict[str, object], found: dict[str, object]) -> list[str]:
    return [
        f"{what}: expected {expected[what]}, found {found[what]}" for what in expected if expected[what] != found[what]
    ]


def is_a_write(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write)


def number(wanted: int) -> Callable[[Effect], bool]:
    """Matches the write of this number, counted from the beginning of the scenario."""
    seen = count()
    return lambda effect: is_a_write(effect) and next(seen) == wanted


def writes_of(scenario: Scenario) -> range:
    before, after = begun(), undisturbed(scenario)
    return range(sum(map(is_a_write, after.asked)) - sum(map(is_a_write, before.asked)))


@pytest.mark.parametrize("late_writes_after", [None, 700], ids=["", "late-writes"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_a_crash_after_any_effect_then_the_outcome_is_that_without_one(
    scenario: Scenario, late_writes_after: int | None
) -> None:
    looks_at = Bench.summary if scenario in UNORDERED | WAITING_ANEW else Bench.picture
    expected = looks_at(undisturbed(scenario))
    wrong: dict[int, list[str]] = {}
    # Late writes differ from none at few of the effects: every third is a sample, moved by the scenario's place.
    step, offset = (1, 0) if late_writes_after is None else (3, SCENARIOS.index(scenario) % 3)
    for effects in range(begun().effects_outside + 1 + offset, undisturbed(scenario).effects_outside + 1, step):
        bench = begun()
        bench.crash_after, bench.late_writes_after = effects, late_writes_after
        scenario(bench)
        if found := differences(expected, looks_at(bench)):
            wrong[effects] = found
    assert wrong == {}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_a_crash_during_the_take_over_then_the_outcome_is_that_without_one(scenario: Scenario) -> None:
    expected = undisturbed(scenario).picture()
    for effects in range(1, begun().effects_outside + 1):
        bench = Bench()
        bench.crash_after = effects
        bench.run(BEGUN)
        scenario(bench)
        assert differences(expected, bench.picture()) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_a_lost_answer_to_any_write_then_the_outcome_is_the_same(scenario: Scenario) -> None:
    expected = undisturbed(scenario).summary()
    wrong: dict[int, list[str]] = {}
    for each in writes_of(scenario):
        bench = begun()
        bench.lose_answer_of(number(each))
        scenario(bench)
        if found := differences(expected, bench.summary()):
            wrong[each] = found
    assert wrong == {}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_any_write_that_does_not_arrive_then_the_outcome_is_the_same(scenario: Scenario) -> None:
    expected = undisturbed(scenario).summary()
    wrong: dict[int, list[str]] = {}
    for each in writes_of(scenario):
        bench = begun()
        bench.lose(number(each))
        scenario(bench)
        if found := differences(expected, bench.summary()):
            wrong[each] = found
    assert wrong == {}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_any_scenario_then_no_program_is_started_twice(scenario: Scenario) -> None:
    started = [(order.run_id, order.attempt) for order in undisturbed(scenario).started]
    assert len(started) == len(set(started))
