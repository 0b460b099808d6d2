"""Jobs that wait for a window or a limit: each is launched in its time, and waiting costs little however many wait."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.shard_bench import CLOSED, FOR_EVER, OPENS, a_bench
from tidegate_core.rows.effects import Commit, Read, Submit

# -- waiting -----------------------------------------------------------------------------------------------------------


def test_given_a_closed_window_then_the_job_is_launched_when_it_opens() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h"), constraints=[CLOSED])))
    bench.request(a_request("trigger"))
    bench.run(OPENS - bench.now - 1)
    assert bench.all_asked(Submit) == []
    bench.run(1)
    assert len(bench.all_asked(Submit)) == 1


def test_given_a_permit_that_another_shard_returned_then_the_waiting_job_follows_within_its_retry() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=3 * SECOND))
    limits = [at_most(1, "program")]
    for name in ("one", "two", "three"):
        bench.request(an_apply(a_spec(name, every("1h"), file="/jobs/same.py", constraints=limits)))
        bench.request(a_request("trigger", name))
    bench.run(15 * SECOND)
    assert [entry[0] for entry in bench.ledger()] == ["launched"] * 3


def test_given_a_shared_limit_then_its_programs_never_overlap() -> None:
    """I4."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=2 * SECOND))
    limits = [at_most(2, "program")]
    for name in ("one", "two", "three", "four"):
        spec = a_spec(name, every("5s"), file="/jobs/same.py", constraints=limits, overlap="allow")
        bench.request(an_apply(spec))
    most = 0
    for _ in range(300):
        bench.run(100)
        most = max(most, len([row for row in bench.rows("R#") if row["state"] == "running" and "ended_at" not in row]))
    assert most == 2


def test_given_many_jobs_that_expire_together_then_all_of_them_do() -> None:
    bench = a_bench()
    window = {"type": "time_window", "opens": "12:00", "closes": "13:00"}
    spec = a_spec(trigger=every("1s", end="2025-11-13T02:14:10Z"), constraints=[window], pending_timeout="2m")
    bench.request(an_apply({**spec, "catchup": {"max_runs": 100}}))
    bench.now += MINUTE  # Away: all instants are made at once, with one deadline.
    bench.run(5 * MINUTE)
    assert {entry[0] for entry in bench.ledger()} == {"expired/constraint_timeout"}
    assert len(bench.ledger()) == 49
    assert bench.rows("J#") == []


def test_given_many_jobs_that_wait_for_a_window_then_all_of_them_run_one_after_another() -> None:
    bench = a_bench(Behaviour(starts_after=1, runs_for=5))
    bench.request(an_apply(a_spec(trigger=every("1m", end="2025-11-13T02:45:00Z"), constraints=[CLOSED])))
    bench.run(HOUR)
    assert [entry[0] for entry in bench.ledger()] == ["launched"] * 31


# -- what it costs to wait ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["program", "schedule"])
def test_given_schedules_that_wait_for_a_limit_then_it_costs_a_look_a_second_however_many_wait(scope: str) -> None:
    bench = a_bench(FOR_EVER)
    bench.store_answers_after = 4
    limits = [at_most(1, scope)]
    bench.request(an_apply(a_spec("holder", every("10h"), file="/jobs/same.py", constraints=limits)))
    bench.run(SECOND)
    bench.request(a_request("trigger", "holder"))
    bench.request(an_apply(a_spec("waits", every("10s"), file="/jobs/same.py", constraints=limits)))
    bench.run(10 * MINUTE)
    assert len(bench.rows("J#")) >= 58
    bench.asked.clear()
    bench.run(MINUTE)
    reads = [each for each in bench.all_asked(Read) if any(key.pk.startswith("LIMIT") for key in each.keys)]
    # The home looks once a second; a job when it comes to be, and after its place every ten seconds.
    assert len(reads) <= (85 if scope == "program" else 0)
    assert len(bench.all_asked(Commit)) <= 60
    memory = [shard.memory for shard in bench.actor.shards.values()]
    assert sum(len(each._hold_order) for each in memory) <= 4


def test_given_a_backlog_that_may_run_at_once_then_few_decisions_admit_all_of_it() -> None:
    bench = a_bench(FOR_EVER)
    trigger = every("1s", end="2025-11-13T02:20:00Z")
    bench.request(an_apply(a_spec(trigger=trigger, overlap="allow", constraints=[CLOSED])))
    bench.run(OPENS - bench.now - 1)
    waiting = len(bench.rows("J#"))
    assert waiting >= 390
    bench.asked.clear()
    bench.run(SECOND)
    assert len(bench.all_asked(Submit)) == waiting
    admitting = [
        each
        for each in bench.all_asked(Commit)
        if any(getattr(action, "item", {}).get("state") == "pending_launch" for action in each.transaction.actions)
    ]
    assert len(admitting) <= waiting // 8 + 2


def test_given_runs_that_ended_then_nothing_of_them_is_remembered() -> None:
    bench = a_bench(Behaviour(starts_after=1, runs_for=5))
    bench.request(an_apply(a_spec(trigger=every("1s"))))
    bench.run(2 * MINUTE)
    assert len(bench.started) > 100
    assert sum(len(shard._attempts._launching) for shard in bench.actor.shards.values()) <= 1
    assert len(bench.actor._host.operations._live) < 60
