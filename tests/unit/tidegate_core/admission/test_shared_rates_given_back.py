"""What a shared rate counts of runs that end early, are forced or whose owner falls: nothing leaks (issue 5)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.crash_points import crash_points
from tests.support.harness.crowds import CROWD, FILE, SHARDS, USED_WITHIN_MS, apart, due_together
from tests.support.harness.rates_bench import (
    QUICK,
    a_bench,
    admitted,
    begun,
    rate,
    schedules,
    started,
    the_rate,
    trigger,
)

NEVER_STARTS = Behaviour(starts_after=None)


def test_given_abort_then_what_the_rate_does_not_let_go_at_once_ends() -> None:
    """CD-080: decided by the very write that counts."""
    bench = a_bench(shards=SHARDS)
    due_together(bench, apart(CROWD), rate(2, on_unmet="abort"))
    bench.run(2 * MINUTE)
    ended = sorted(entry[0] for entry in bench.ledger())
    assert ended == ["launched"] * 2 + ["skipped/rate_reached"] * (CROWD - 2)


def test_given_a_pending_time_out_that_forces_then_the_rate_is_ignored_and_counts_it() -> None:
    """SEMANTICS 7.7: a rate is soft."""
    bench = a_bench()
    first, forced, last = apart(3)
    schedules(bench, [first, last], rate(1, per="1h"))
    schedules(bench, [forced], rate(1, per="1h"), pending_timeout="10m", pending_timeout_action="force")
    made = trigger(bench, first, forced)
    bench.run(30 * MINUTE)
    assert started(bench) == made
    assert the_rate(bench).in_use == 2
    made += trigger(bench, last)
    bench.run(35 * MINUTE)
    assert started(bench) == made[:2]
    bench.run(6 * MINUTE)
    assert started(bench) == made


def test_given_a_time_out_that_forces_then_the_job_stands_in_its_limits_line_whatever_its_rate_says() -> None:
    """It asked for the rate first, stood in no other line before that had room, and a stream passed it at the limit for a day."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=30 * SECOND))
    forced, *others = apart(3)
    limit = at_most(1, "group", group="yard")
    schedules(bench, [forced], limit, rate(1, per="1d"), pending_timeout="1m", pending_timeout_action="force")
    schedules(bench, others, limit, overlap="allow")
    trigger(bench, forced)
    bench.run(MINUTE)
    for _ in range(10):
        trigger(bench, *others)
    (job,) = trigger(bench, forced)
    for _ in range(20):
        trigger(bench, *others)
        bench.run(30 * SECOND)
    assert bench.rows("IW#")
    assert job in started(bench)[: 2 + 11 * len(others)]


@pytest.mark.parametrize("how", ["cancel", "suspend", "delete", "update"])
def test_given_a_run_that_ends_before_its_start_then_who_waits_has_its_place_at_once(how: str) -> None:
    """SEMANTICS 7.5: a run cancelled before its start refunds."""
    bench = a_bench(NEVER_STARTS)
    first, second = apart(2)
    schedules(bench, [first, second], rate(1, per="1h"))
    made = trigger(bench, first)
    bench.behaves = lambda order: QUICK
    made += trigger(bench, second)
    bench.run(MINUTE)
    assert started(bench) == []
    stop(bench, how, first, made[0])
    bench.run(USED_WITHIN_MS)
    assert started(bench) == made[1:]
    assert the_rate(bench).in_use == 1


def stop(bench: ActorHarness, how: str, name: str, run_id: str) -> None:
    match how:
        case "cancel":
            bench.request({"id": "c", "type": "run.cancel", "namespace": "flights", "run_id": run_id})
        case "suspend":
            bench.request(a_request("suspend", name, mode="hold"))
        case "update":
            bench.request(an_apply(a_spec(name, every("11h"), file=FILE, constraints=[rate(1, per="1h")]), "u"))
        case _:
            bench.request(a_request(how, name))


def test_given_several_runs_of_one_rate_that_are_parked_together_then_all_are_taken_back_in_one_write() -> None:
    bench = a_bench(NEVER_STARTS)
    schedules(bench, ["a"], rate(5, per="1h"), overlap="allow")
    trigger(bench, "a", "a", "a", "a")
    assert the_rate(bench).in_use == 4
    bench.request(a_request("suspend", "a", mode="freeze"))
    bench.run(SECOND)
    assert (the_rate(bench).in_use, the_rate(bench).counts) == (0, {})
    bench.behaves = lambda order: QUICK
    bench.request(a_request("resume", "a", backlog="all"))
    bench.run(SECOND)
    assert (len(begun(bench)), the_rate(bench).in_use) == (4, 4)


def test_given_a_run_that_has_started_then_nothing_is_taken_back_whatever_becomes_of_it() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=None))
    first, second = apart(2)
    schedules(bench, [first, second], rate(1, per="1h"))
    made = trigger(bench, first, second)
    stop(bench, "cancel", first, made[0])
    bench.run(30 * MINUTE)
    assert started(bench) == made[:1]


def a_hard_day(bench: ActorHarness) -> None:
    """Runs that start, one that is cancelled before, several that are parked, and jobs that wait for what comes of it."""
    schedules(bench, ["a"], rate(2, per="20s"), overlap="allow")
    schedules(bench, ["b", "c"], rate(2, per="20s"))
    trigger(bench, "b")
    bench.behaves = lambda order: NEVER_STARTS
    made = trigger(bench, "a", "c")
    stop(bench, "cancel", "a", made[0])
    bench.run(SECOND)
    stop(bench, "suspend", "c", "")
    trigger(bench, "a", "b")
    bench.behaves = lambda order: QUICK
    bench.run(25 * SECOND)
    bench.request(a_request("resume", "c", backlog="all"))
    bench.run(30 * SECOND)


def counted_by_runs(bench: ActorHarness) -> dict[int, int]:
    """Returns how many runs say that they count until when, as far as that is still to come."""
    found: dict[int, int] = {}
    for run in bench.rows("R#"):
        came_to_nothing = (
            "started_at" not in run and run.get("outcome") in {None, "closed", "killed"} and "ended_at" in run
        )
        texts = run.get("limits", [])
        assert isinstance(texts, list)
        for until in (int(str(text).partition("|RATE#")[2]) for text in texts if "|RATE#" in str(text)):
            if until > bench.now and not came_to_nothing:
                found[until] = found.get(until, 0) + 1
    return found


@pytest.mark.parametrize("late_writes_after", [None, 700], ids=["", "late-writes"])
def test_given_a_crash_after_any_effect_then_a_rate_counts_what_its_runs_say_and_nothing_leaks(
    late_writes_after: int | None,
) -> None:
    def begun_bench() -> ActorHarness:
        bench = ActorHarness(behaviour=QUICK)
        bench.run(SECOND)
        return bench

    undisturbed = begun_bench()
    a_hard_day(undisturbed)
    for effects in crash_points(undisturbed, after=begun_bench().effects_outside):
        bench = begun_bench()
        bench.crash_after, bench.late_writes_after = effects, late_writes_after
        a_hard_day(bench)
        state = the_rate(bench)
        live = {until: count for until, count in state.counts.items() if until > bench.now}
        assert (live, state.in_use) == (counted_by_runs(bench), sum(state.counts.values())), effects
        instants = admitted(bench)
        assert all(later - first >= 20 * SECOND for first, later in spans(bench)), (effects, instants)
        assert sorted(started(bench)) == sorted(started(undisturbed)), effects
        assert bench.rows("IW#") == [], effects


def spans(bench: ActorHarness) -> list[tuple[int, int]]:
    """Returns the admissions that the rate has to keep apart: those that came to something."""
    runs = [run for run in bench.rows("R#") if "started_at" in run]
    instants = sorted(int(str(run["admitted_at"])) for run in runs)
    return list(zip(instants, instants[2:], strict=False))
