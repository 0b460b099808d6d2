"""Scenarios that a crash may meet: from what a trigger waits for to its runs."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.builders import (
    HOUR,
    SECOND,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour


def fire(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), args=["${nominal}"])))
    bench.run(25 * SECOND)


def fire_what_was_missed(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), args=["${nominal}"], overlap="allow")))
    bench.run(SECOND)
    bench.now += 95 * SECOND  # The node was away.
    bench.run(5 * SECOND)


def admit_one_after_another(bench: ActorHarness) -> None:
    bench.behaves = lambda order: Behaviour(runs_for=12 * SECOND)
    bench.request(an_apply(a_spec(trigger=every("5s"), args=["${nominal}"])))
    bench.run(40 * SECOND)


def admit_under_a_shared_limit(bench: ActorHarness) -> None:
    bench.behaves = lambda order: Behaviour(runs_for=2 * SECOND)
    for name in ("one", "two"):
        shared = [at_most(1, "program")]
        bench.request(an_apply(a_spec(name, every("10s"), file="/jobs/same.py", constraints=shared, overlap="allow")))
    bench.run(18 * SECOND)


def wait_for_the_run_before(bench: ActorHarness) -> None:
    bench.behaves = lambda order: Behaviour(runs_for=2 * SECOND)
    constraints = [
        {"type": "delay", "after": "1s"},
        {"type": "since_last_run", "at_least": "7s", "of": "finish"},
        {"type": "rate", "max": 2, "per": "40s"},
    ]
    bench.request(an_apply(a_spec(trigger=every("5s"), constraints=constraints, pending_timeout="20s")))
    bench.run(40 * SECOND)


def count_to_three(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=3))))
    bench.run(3 * SECOND)
    for days in ("abbc", "de"):
        for day in days:
            bench.event(an_event(day))
        bench.run(3 * SECOND)


def count_by_correlation(bench: ActorHarness) -> None:
    trigger = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="30s")
    bench.request(an_apply(a_spec(trigger=trigger, args=["${correlation}"], overlap="allow")))
    bench.run(3 * SECOND)
    for day in ("d1", "d2", "d3"):
        bench.event(an_event(day, "a"))
    for day in ("d1", "d2"):
        bench.event(an_event(day, "b"))
    bench.run(40 * SECOND)


def wait_for_deadlines(bench: ActorHarness) -> None:
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


def meet_at_an_instant(bench: ActorHarness) -> None:
    """CD-067: ticks that meet data, and that meet nothing in time."""
    ten = {**every("10s"), "ttl": "12s"}
    bench.request(an_apply(a_spec(trigger=all_of(ten, on_data("a"), timeout="1m"), args=["${nominal}"])))
    for day in ("d1", "d2", "d3"):
        bench.run(24 * SECOND)
        bench.event(an_event(day, "a"))
    bench.run(3 * SECOND)
    bench.now += 41 * SECOND  # The node was away.
    bench.run(5 * SECOND)


def wait_for_what_belongs_to_an_instant(bench: ActorHarness) -> None:
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


def meet_after_more_ticks_than_fit(bench: ActorHarness) -> None:
    """Windows of ten days that nobody served: what came on the last one is counted behind their ticks, in parts."""
    eight = {"type": "cron", "expression": "0 8 * * *", "ttl": "2h"}
    trigger = all_of(eight, {**on_data("a"), "ttl": "2h"}, window={"every": "day", "zone": "UTC"})
    bench.request(an_apply(a_spec(trigger=trigger, args=["${nominal}"])))
    bench.run(SECOND)
    bench.now += (10 * 24 + 7) * HOUR  # The node was away.
    bench.event(an_event("d1", "a"))
    bench.run(15 * SECOND)


def start_at_an_instant(bench: ActorHarness) -> None:
    """Ticks that fire alone, with what has come by then."""
    bench.request(an_apply(a_spec(trigger={"type": "any_of", "triggers": [every("15s"), on_data("a", 2)]})))
    for day in ("d1", "d2", "d3"):
        bench.run(9 * SECOND)
        bench.event(an_event(day, "a"))
    bench.run(20 * SECOND)


def remind_of_what_is_there(bench: ActorHarness) -> None:
    sized = {"type": "data_size", "dataset": "a", "rows": 9, "at_least_every": "1m"}
    bench.request(an_apply(a_spec(trigger=sized)))
    bench.run(3 * SECOND)
    bench.event(an_event("d1", "a", rows=3))
    bench.run(130 * SECOND)


def follow_a_run(bench: ActorHarness) -> None:
    bench.behaves = lambda order: Behaviour(outputs={"rows": 3})
    bench.request(an_apply(a_spec("down", on_run_of("up"), ["${upstream.run_id}", "${upstream.outputs.rows}"])))
    bench.run(2 * SECOND)
    bench.request(an_apply(a_spec("up", every("10s"))))
    bench.run(12 * SECOND)


def follow_a_start(bench: ActorHarness) -> None:
    """One program goes on while it is followed, one has ended before anybody looked."""
    quick, slow = Behaviour(starts_after=10, runs_for=10), Behaviour(runs_for=4 * SECOND)
    bench.behaves = lambda order: slow if "flights/slow" in str(order.context) else quick
    for name in ("slow", "quick"):
        bench.request(an_apply(a_spec(f"after-{name}", on_run_of(name, "started"), ["${upstream.run_id}"])))
    bench.run(2 * SECOND)
    bench.request(an_apply(a_spec("slow", every("10s"))))
    bench.request(an_apply(a_spec("quick", every("10s"))))
    bench.run(12 * SECOND)


def lose_an_upstream(bench: ActorHarness) -> None:
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


OF_TRIGGERS: list[Callable[[ActorHarness], None]] = [
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
]
