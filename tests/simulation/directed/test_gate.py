"""Processes that come to the start gate although nobody asked for them: restarts by the platform, copies, the late (I2, H9)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, Refused
from tidegate_core.writes.start_gate import finish_run, start_run

RESTARTED = "driver of the restarted container"


def a_run(behaviour: Behaviour) -> tuple[ActorHarness, str]:
    """A schedule that is run by hand, past the gate."""
    bench = ActorHarness(behaviour=behaviour)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    return bench, bench.started[0].run_id


def starts(bench: ActorHarness, run_id: str, driver: str = RESTARTED, attempt: int = 1) -> bool:
    verdict = bench.transact(start_run(run_id, attempt, driver, bench.now, f"start {driver} {bench.now}"))
    assert isinstance(verdict, Committed | Refused)
    return isinstance(verdict, Committed)


def reports(bench: ActorHarness, run_id: str, driver: str = RESTARTED) -> bool:
    told = ("succeeded", 0, None, None, None, bench.now, f"end {driver} {bench.now}")
    return isinstance(bench.transact(finish_run(run_id, 1, driver, *told)), Committed)


def test_given_a_container_that_is_restarted_in_its_pod_then_the_program_does_not_run_again() -> None:
    """DESIGN 6: same pod, same name, same token; but the driver's id was in the first process's memory only."""
    bench, run_id = a_run(Behaviour(runs_for=None))
    assert not starts(bench, run_id)
    assert not reports(bench, run_id)
    bench.run(MINUTE)
    assert [row["state"] for row in bench.rows("R#")] == ["running"]

    bench.vanish(run_id)
    bench.run(SECOND)
    assert [(entry[0], entry[3]) for entry in bench.ledger()] == [("launched", "failed")]
    assert not starts(bench, run_id), "nor after the run has ended"
    assert len(bench.started) == 1


def test_given_a_container_that_is_restarted_before_the_gate_then_one_of_them_runs() -> None:
    """The first process fell before it came to the gate: the second one is the attempt, a third one is too late."""
    bench, run_id = _before_the_gate()
    assert starts(bench, run_id)
    assert not starts(bench, run_id, "driver of the third container")
    assert reports(bench, run_id)
    bench.run(MINUTE)
    assert [(entry[0], entry[3]) for entry in bench.ledger()] == [("launched", "succeeded")]


def test_given_a_restart_that_comes_after_the_next_attempt_was_made_then_it_is_refused() -> None:
    """H9: the platform's own retry would be one more run under the same id; attempts are ours."""
    bench, run_id = _before_the_gate()
    bench.vanish(run_id)
    bench.run(MINUTE)
    assert [row["attempt"] for row in bench.rows("R#")] == [2]
    assert not starts(bench, run_id, attempt=1)
    assert starts(bench, run_id, attempt=2)


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_given_a_start_and_the_owners_end_of_the_run_at_one_time_then_one_of_them_counts(crash: bool) -> None:
    """H11: the gate and the suspend meet on the run's item; whichever comes second finds its condition false."""
    bench, run_id = _before_the_gate()
    bench.hold_back(lambda effect: getattr(getattr(effect, "transaction", None), "name", "") == "end_pending")
    bench.request(a_request("suspend"))
    assert bench.holds_something, "the end of the run is decided and on its way"
    assert starts(bench, run_id)
    if crash:
        bench.crash()
    bench.release()
    bench.run(SECOND)
    assert bench.status_of("suspend-nightly") == "accepted"
    assert bench.receipts()["suspend-nightly"]["running"] == [run_id]
    item = bench.store.peek(keys.run(shard_of_run(run_id), run_id))
    assert item is not None
    assert item["driver"] == RESTARTED


def _before_the_gate() -> tuple[ActorHarness, str]:
    bench = ActorHarness(behaviour=Behaviour(starts_after=None))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    return bench, str(bench.receipts()["trigger-nightly"]["id"])
