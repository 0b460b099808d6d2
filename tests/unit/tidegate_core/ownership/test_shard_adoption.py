"""Runs of a predecessor: found, adopted, submitted anew, or lost and heard of after all (DESIGN 6)."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import HOUR, MINUTE, RUNS, SECOND, a_request, a_spec, an_apply, every, on_run_of
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import (
    FOR_EVER,
    a_bench,
    a_lookup,
    a_submit,
    states,
    the_run,
    triggered,
)
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.rows.effects import Cancel, Commit, LookedUp, Lookup, NotSubmitted, Submit, Watch
from tidegate_core.runs.attempts import LOOKUP_AGAIN_MS, PROBE_GAP_MS
from tidegate_core.writes.start_gate import start_run

# -- adoption ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["submitting", "submitted", "running"])
def test_given_a_predecessors_run_that_is_found_then_it_is_adopted_and_ends_as_it_would_have(moment: str) -> None:
    bench = a_bench(Behaviour(starts_after=500))
    if moment == "submitting":
        bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "submitted")
    triggered(bench)
    bench.run(600 if moment == "running" else 100)
    run = the_run(bench)
    assert run is not None
    assert run.state == moment
    bench.crash()
    bench.run(5 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]
    assert len(bench.started) == 1
    assert len(bench.all_asked(Submit)) == 1


def test_given_an_adopted_run_then_its_host_is_known() -> None:
    """Else the next successor, on another host, would take what it cannot see for absent."""
    bench = a_bench(FOR_EVER)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "submitted")
    triggered(bench)
    bench.crash()
    bench.run(SECOND)
    run = the_run(bench)
    assert run is not None
    assert (run.host, run.boot_id) == ("host-1", "boot-1")


def test_given_a_run_that_was_never_submitted_then_the_successor_submits_it() -> None:
    bench = a_bench()
    bench.hold_back(a_submit)
    triggered(bench)
    bench.crash()
    bench.run(5 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]
    assert len(bench.started) == 1


def test_given_a_submitted_run_of_which_nothing_is_left_then_it_is_tried_again_or_failed() -> None:
    bench = a_bench(Behaviour(starts_after=None))
    triggered(bench)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("absent"))
    bench.run(SECOND)
    run = the_run(bench)
    assert run is not None
    assert run.attempt == 2


@pytest.mark.parametrize("where", ["elsewhere", "unknown"])
def test_given_a_started_run_that_nobody_can_ask_then_it_is_lost_after_the_gap_and_keeps_its_permit(where: str) -> None:
    bench = a_bench(FOR_EVER)
    run = triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp(where), times=1_000)
    bench.run(PROBE_GAP_MS - MINUTE)
    found = the_run(bench)
    assert found is not None
    assert found.state == "running"
    bench.run(2 * MINUTE)
    found = the_run(bench)
    assert found is not None
    assert found.state == "lost"
    assert bench.rows("LIM#")[0]["holders"] == [run]


def test_given_a_lost_run_that_reports_after_all_then_its_end_counts() -> None:
    bench = a_bench(Behaviour(runs_for=30 * MINUTE))
    triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(35 * MINUTE)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]
    assert bench.rows("LIM#")[0].get("holders") is None


def test_given_a_cancel_that_was_asked_before_a_crash_then_the_successor_ends_the_program() -> None:
    bench = a_bench(FOR_EVER)
    run = triggered(bench)
    bench.run(SECOND)
    bench.answer_with(lambda effect: isinstance(effect, Cancel), NotSubmitted("crashed before it was carried out"))
    bench.request({"id": "c", "type": "run.cancel", "run_id": run})
    bench.crash()
    bench.run(5 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["killed"]


# -- lost --------------------------------------------------------------------------------------------------------------


def test_given_a_submission_that_is_answered_when_its_program_is_lost_then_that_is_found() -> None:
    bench = a_bench(Behaviour(runs_for=5 * HOUR))
    bench.hold_back(a_submit, answer_only=True)
    triggered(bench)
    bench.run(PROBE_GAP_MS + MINUTE)
    lost = the_run(bench)
    assert lost is not None
    assert lost.state == "lost"
    bench.release()
    bench.run(SECOND)
    found = the_run(bench)
    assert found is not None
    assert (found.state, found.reason) == ("running", None)


def test_given_a_submission_that_is_answered_when_a_driver_of_another_host_is_lost_then_that_stays_lost() -> None:
    bench = a_bench(Behaviour(runs_for=5 * HOUR))
    bench.hold_back(a_submit, answer_only=True)
    triggered(bench)
    bench.host = "host-2"  # Of the copy that passes the gate.
    bench.run(PROBE_GAP_MS + MINUTE)
    bench.release()
    run = the_run(bench)
    assert run is not None
    assert (run.state, run.driver_host) == ("lost", "host-2")


@pytest.mark.parametrize("adopted", [True, False])
def test_given_a_launcher_that_answers_while_the_loss_is_written_then_the_program_is_found(adopted: bool) -> None:
    """Found in review: it was watched, and shown as lost until its end."""
    bench = a_bench(Behaviour(runs_for=5 * HOUR))
    if not adopted:
        bench.hold_back(a_submit, answer_only=True)
    triggered(bench)
    bench.run(SECOND)
    if adopted:
        bench.crash()
        bench.answer_with(a_lookup, LookedUp("unknown"), times=PROBE_GAP_MS // LOOKUP_AGAIN_MS + 1)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name in {"lost", "look"})
    bench.run(PROBE_GAP_MS + 30 * SECOND)
    run = the_run(bench)
    assert run is not None
    assert run.state == "running"
    bench.release()  # The answer first.
    bench.run(SECOND)
    found = the_run(bench)
    assert found is not None
    assert (found.state, found.reason, states(bench)) == ("running", None, ["running", "lost"])


def about_to_be_lost(bench: ActorHarness) -> str:
    """A predecessor's run before the gate whose host does not answer; half a second before that is its end."""
    bench.behaves = lambda order: Behaviour(starts_after=None)
    run = triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(PROBE_GAP_MS - 500)
    return run


def test_given_a_start_that_is_seen_in_the_transaction_that_takes_it_for_lost_then_the_program_is_found_again() -> None:
    """Found in review: it was remembered as one that runs, and shown as lost until its end."""
    bench = a_bench()
    run = about_to_be_lost(bench)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "trigger")
    bench.request(a_request("trigger", request_id="again"))
    bench.transact(start_run(run, 1, "driver-1", bench.now, "t", host="host-1"))
    bench.give(Woken(0, run))
    bench.run(SECOND)
    bench.as_usual()
    lost = the_run(bench)
    assert lost is not None
    assert (lost.state, states(bench)) == ("lost", ["running", "lost"])
    bench.run(MINUTE)
    found = the_run(bench)
    assert found is not None
    assert (found.state, found.reason) == ("running", None)


def test_given_a_start_that_nobody_has_told_of_when_its_program_is_lost_then_it_is_told() -> None:
    """Found in review: who waits for it, and `tidegate.runs`, heard of it at its end."""
    bench = a_bench()
    bench.request(an_apply(a_spec("down", trigger=on_run_of("nightly", "started"))))
    run = about_to_be_lost(bench)
    bench.transact(start_run(run, 1, "driver-1", bench.now, "t", host="host-1"))
    bench.run(SECOND)
    assert states(bench) == ["running", "lost"]
    assert len(bench.rows("J#")) == 2


def test_given_a_start_that_is_seen_when_the_copy_before_is_gone_then_it_is_told() -> None:
    """Found in review: on a platform without hosts `tidegate.runs` heard of it at its end."""
    bench = a_bench()
    bench.behaves = lambda order: Behaviour(starts_after=None)
    run = triggered(bench)
    bench.run(SECOND)
    bench.answer_with(a_lookup, LookedUp("found", "another", "host-1", "boot"))
    bench.transact(start_run(run, 1, "driver-1", bench.now, "t"))
    bench.vanish(run)
    bench.run(500)
    assert states(bench)[0] == "running"


def test_given_a_run_that_is_lost_and_reports_then_both_are_told_and_the_loss_is_no_reason_any_more() -> None:
    bench = a_bench(Behaviour(runs_for=30 * MINUTE))
    triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(35 * MINUTE)
    assert states(bench) == ["running", "lost", "succeeded"]
    assert bench.on(RUNS)[-1].document["reason"] is None
    (row,) = bench.rows("L#")
    assert "detail" not in row


def test_given_a_run_that_is_lost_and_reports_a_failure_then_the_loss_is_not_why_it_failed() -> None:
    """Found in review: what its next attempt was told of the failure, and its entry when there was none, said so."""
    bench = a_bench(Behaviour(runs_for=30 * MINUTE, outcome="failed"))
    bench.request(an_apply(a_spec(trigger=every("10h"), retry={"tries": 1, "backoff": "1h"})))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(35 * MINUTE)
    run = the_run(bench)
    assert run is not None
    assert (run.attempt, json.loads(run.failure or "{}")["reason"]) == (2, None)
    bench.request(a_request("suspend"))
    bench.run(SECOND)
    (row,) = bench.rows("L#")
    assert row["detail"] == "failed; not tried again: suspended"


def test_given_a_program_whose_submission_got_no_answer_and_that_nobody_finds_then_its_run_is_lost_after_the_gap() -> (
    None
):
    """It passed the gate, nobody wrote down where it runs, and its name is forgotten: only its report could end it."""
    bench = a_bench(FOR_EVER)
    bench.tells_host = False
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "submitted")
    triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("absent"), times=1_000)
    bench.run(PROBE_GAP_MS + MINUTE)
    run = the_run(bench)
    assert run is not None
    assert (run.state, run.ended_at) == ("lost", None)


# -- copies on several hosts -------------------------------------------------------------------------------------------


def test_given_a_program_of_which_nothing_is_left_on_its_own_host_then_its_run_ends_although_its_submission_got_no_answer() -> (
    None
):
    bench = a_bench(FOR_EVER)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "submitted")
    triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("absent"))
    bench.run(SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["failed"]


def test_given_a_driver_on_another_host_than_the_copy_that_is_known_then_it_is_looked_up_and_adopted_there() -> None:
    bench = a_bench(FOR_EVER)
    bench.host = "host-2"
    bench.behaves = lambda order: Behaviour(starts_after=None)
    run_id = triggered(bench)
    bench.run(SECOND)
    bench.transact(start_run(run_id, 1, "driver-1", bench.now, "t", host="host-1"))
    bench.host = "host-1"
    bench.crash()
    bench.run(SECOND)
    (lookup,) = bench.all_asked(Lookup)
    assert isinstance(lookup, Lookup)
    assert lookup.host == "host-1"
    run = the_run(bench)
    assert run is not None
    assert (run.state, run.host) == ("running", "host-1")
    bench.vanish(run_id)
    bench.run(SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["failed"]


def test_given_a_driver_that_passes_the_gate_while_its_launcher_cannot_be_asked_then_it_is_looked_up_on_its_host() -> (
    None
):
    """Found in review: it was looked for as one that nobody had started, handed over once more, and then never looked for again."""
    bench = a_bench()
    bench.hold_back(a_submit)
    run = triggered(bench)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=2)
    bench.run(SECOND)
    bench.transact(start_run(run, 1, "driver-1", bench.now, "t", host="host-2"))
    bench.give(Woken(0, run))
    bench.answer_with(a_lookup, LookedUp("elsewhere"), times=6)
    bench.run(MINUTE)
    hosts = [each.host for each in bench.all_asked(Lookup)]
    assert hosts == [None, *["host-2"] * (len(hosts) - 1)]
    assert len(bench.all_asked(Submit)) == 1
    bench.run(MINUTE)
    assert [entry[3] for entry in bench.ledger()] == ["failed"]  # By then that host says that nothing of it is left.


@pytest.mark.parametrize("where", ["elsewhere", "unknown"])
def test_given_a_run_before_the_gate_that_nobody_can_ask_then_it_is_closed_and_submitted_again(where: str) -> None:
    """Found in review: it had failed, without any further try, when its host went down while its program was on its way to the gate."""
    bench = a_bench()
    bench.behaves = lambda order: Behaviour(starts_after=20 * MINUTE if order.attempt == 1 else SECOND, runs_for=HOUR)
    run = triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp(where), times=1_000)
    bench.run(PROBE_GAP_MS - MINUTE)
    found = the_run(bench)
    assert found is not None
    assert (found.attempt, found.state) == (1, "submitted")
    bench.run(2 * MINUTE)
    assert [(order.run_id, order.attempt) for order in bench.started if order.run_id == run] == [(run, 2)]
    bench.passes_over_routine = True
    bench.run(2 * HOUR)
    assert [(order.run_id, order.attempt) for order in bench.started if order.run_id == run] == [(run, 2)]
    assert bench.ledger()[0][3] == "succeeded"


def test_given_a_try_whose_time_has_not_come_then_a_successor_that_can_ask_nobody_waits_for_it_all_the_same() -> None:
    """Found in review: it was looked for, found nowhere for ten minutes, and its run had failed for a lost host."""
    bench = a_bench()
    bench.behaves = lambda order: Behaviour(runs_for=100, outcome="failed" if order.attempt == 1 else "succeeded")
    bench.request(an_apply(a_spec(trigger=every("10h"), retry={"tries": 1, "backoff": "1h"})))
    bench.request(a_request("trigger"))
    bench.run(MINUTE)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(50 * MINUTE)
    assert (bench.ledger(), len(bench.started)) == ([], 1)
    bench.end_scripts()
    bench.run(20 * MINUTE)
    assert [order.attempt for order in bench.started] == [1, 2]
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]


@pytest.mark.parametrize("away", [30 * SECOND, PROBE_GAP_MS + MINUTE], ids=["for a while", "beyond the gap"])
def test_given_a_launcher_that_cannot_tell_any_more_of_what_it_has_started_then_its_run_is_lost_after_the_gap(
    away: int,
) -> None:
    """It was asked for as long as the program might live: with an owner that stays, a run was never lost."""
    bench = a_bench(Behaviour(runs_for=5 * HOUR))
    bench.answer_with(lambda effect: isinstance(effect, Watch), LookedUp("unknown"))
    bench.answer_with(a_lookup, LookedUp("unknown"), times=10_000)
    triggered(bench)
    bench.run(away)
    run = the_run(bench)
    assert run is not None
    assert run.state == ("lost" if away > PROBE_GAP_MS else "running")
    bench.end_scripts()
    bench.run(MINUTE)
    run = the_run(bench)
    assert run is not None
    assert (run.state, run.attempt) == ("running", 1)
    bench.passes_over_routine = True
    bench.run(5 * HOUR)
    assert bench.ledger()[0][3] == "succeeded"


def test_given_a_launcher_that_cannot_tell_any_more_of_what_has_not_begun_then_it_is_submitted_again() -> None:
    bench = a_bench(Behaviour(starts_after=None))
    bench.answer_with(lambda effect: isinstance(effect, Watch), LookedUp("unknown"))
    bench.answer_with(a_lookup, LookedUp("unknown"), times=10_000)
    triggered(bench)
    bench.run(PROBE_GAP_MS + MINUTE)
    run = the_run(bench)
    assert run is not None
    assert (run.state, run.attempt) == ("submitted", 2)


@pytest.mark.parametrize("away", [False, True])
def test_given_a_lost_run_that_is_found_again_then_it_is_running_and_ends_as_it_would_have(away: bool) -> None:
    """Found in review: it stayed `lost`, and `why` said that its host does not answer, for as long as it went on."""
    bench = a_bench(Behaviour(runs_for=5 * HOUR))
    triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=10_000)
    bench.run(PROBE_GAP_MS + MINUTE)
    found = the_run(bench)
    assert found is not None
    assert found.state == "lost"
    bench.end_scripts()
    if away:
        bench.away(HOUR)
    bench.run(MINUTE)
    found = the_run(bench)
    assert found is not None
    assert (found.state, found.reason) == ("running", None)
    bench.passes_over_routine = True
    bench.run(5 * HOUR)
    assert bench.ledger()[0][3] == "succeeded"
    assert states(bench)[:2] == ["running", "lost"]
    assert all(order.attempt == 1 for order in bench.started)
