"""Several copies of one attempt, each on a host of its own: the end of the one that passed the gate is the run's (I2, I4)."""

from __future__ import annotations

import pytest

from tests.support.builders import NOW, SECOND, a_run
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.run_bench import (
    ID,
    SHARED,
    STATES,
    a_desk,
    cancelled,
    look,
    outcome,
    run_of,
)
from tests.support.harness.shard_bench import a_bench, triggered
from tidegate_core.rows.effects import DUPLICATE, Cancel, Notice, ProgramEnded, Submitted
from tidegate_core.rows.run import Run
from tidegate_core.runs.run_lifecycle import UNKNOWN_HOST_MS, AttemptEnded, CheckRun, MarkSubmitted
from tidegate_core.writes.start_gate import finish_run, start_run

NOTHING_FOUND = ProgramEnded(None, message="nothing of it is left")


@pytest.mark.parametrize(
    ("run", "end"),
    [
        pytest.param(
            a_run(state="running", external_id="ext", host="b"), ProgramEnded(79, DUPLICATE), id="refused at the gate"
        ),
        pytest.param(
            a_run(state="lost", external_id="ext", host="b"), ProgramEnded(79, DUPLICATE), id="the same, lost"
        ),
        pytest.param(a_run(state="running"), NOTHING_FOUND, id="started, and nobody wrote down where"),
    ],
)
def test_given_the_end_of_what_is_not_the_driver_then_the_run_goes_on_until_the_driver_reports(
    run: Run, end: ProgramEnded
) -> None:
    """I4: the program runs on a host that this node cannot see, so its permits are held."""
    desk = a_desk(run)
    desk.decide(AttemptEnded(0, ID, 1, end), NOW + 10)
    found = run_of(desk)
    assert found is not None
    assert (found.state, found.ended_at, found.external_id, found.host) == (run.state, None, None, None)
    assert (desk.store.peek(SHARED) or {})["in_use"] == 1
    desk.store.transact(finish_run(ID, 1, "driver-1", "succeeded", 0, None, None, None, NOW + 30, "t"))
    look(desk)
    assert outcome(desk) == "launched/succeeded"
    assert (desk.store.peek(SHARED) or {})["in_use"] == 0


def a_driver_and_another_copy(driver_host: str | None) -> DecisionHarness:
    """The launcher of host `a` did not come to say that it had started the attempt, so that of host `b` was asked."""
    desk = a_desk(STATES["submitting"])
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("tg@b", "b", "boot"), "node-b"), NOW + 1)
    desk.store.transact(start_run(ID, 1, "driver-1", NOW + 2, "t", host=driver_host))
    return desk


@pytest.mark.parametrize("host", [None, "b"])
@pytest.mark.parametrize(
    "end",
    [
        ProgramEnded(79, DUPLICATE),
        ProgramEnded(1, "transient"),
        ProgramEnded(75, "transient"),
        ProgramEnded(78, "config"),
        ProgramEnded(None),
        ProgramEnded(0),
    ],
)
def test_given_the_end_of_another_hosts_copy_then_the_run_goes_on_however_that_ended(
    end: ProgramEnded, host: str | None
) -> None:
    """I4. It waited for the gate, and died there without having been answered."""
    desk = a_driver_and_another_copy("a")
    for _ in range(2):
        desk.decide(AttemptEnded(0, ID, 1, end, host=host), NOW + 3)
        found = run_of(desk)
        assert found is not None
        assert (found.state, found.ended_at, found.external_id, found.host) == ("running", None, None, "a")
        assert (desk.store.peek(SHARED) or {})["in_use"] == 1


@pytest.mark.parametrize("end", [ProgramEnded(79, DUPLICATE), ProgramEnded(1, "transient"), ProgramEnded(None)])
def test_given_the_end_of_the_copy_that_passed_the_gate_then_the_run_has_ended_whatever_its_code(
    end: ProgramEnded,
) -> None:
    """A user's program may exit with the wrapper's code for a duplicate."""
    desk = a_driver_and_another_copy("b")
    desk.decide(AttemptEnded(0, ID, 1, end), NOW + 3)
    assert outcome(desk) == "launched/failed"
    assert (desk.store.peek(SHARED) or {})["in_use"] == 0


def test_given_the_owner_on_the_drivers_host_then_that_copy_is_the_runs_and_its_end_counts() -> None:
    desk = a_driver_and_another_copy("a")
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("tg@a", "a", "boot"), "node-a"), NOW + 3)
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("tg@b", "b", "boot"), "node-b"), NOW + 4)
    run = run_of(desk)
    assert run is not None
    assert (run.external_id, run.host, run.node) == ("tg@a", "a", "node-a")
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(1), host="a"), NOW + 5)
    assert outcome(desk) == "launched/failed"


def test_given_a_start_before_another_hosts_copy_is_known_then_that_copy_is_not_the_runs() -> None:
    desk = a_desk(STATES["submitting"])
    desk.store.transact(start_run(ID, 1, "driver-1", NOW + 2, "t", host="a"))
    desk.decide(MarkSubmitted(0, ID, 1, Submitted("tg@b", "b", "boot"), "node-b"), NOW + 3)
    run = run_of(desk)
    assert run is not None
    assert (run.external_id, run.program_host) == (None, "a")


def test_given_a_cancel_where_the_driver_is_on_another_host_then_only_its_end_there_ends_the_run() -> None:
    desk = a_driver_and_another_copy("a")
    cancelled(desk)
    out_of_reach = Notice("cancel_out_of_reach", {"run_id": ID, "attempt": 1, "host": "a"})
    assert desk.told == [Cancel(ID, 1), out_of_reach]
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(143, "transient"), host="b"), NOW + 11)
    assert outcome(desk) == "running"
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(143, "transient"), host="a"), NOW + 12)
    assert outcome(desk) == "launched/killed"


def test_given_a_driver_that_nobody_can_ask_then_it_is_lost_after_the_probe_gap() -> None:
    desk = a_desk(a_run(state="running", external_id="ext", host="b"))
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(79, DUPLICATE)), NOW + 10)
    desk.decide(CheckRun(0, ID, lambda run: None), NOW + UNKNOWN_HOST_MS)
    assert outcome(desk) == "running"
    desk.decide(CheckRun(0, ID, lambda run: None), NOW + 1 + UNKNOWN_HOST_MS)
    assert outcome(desk) == "lost"
    assert (desk.store.peek(SHARED) or {})["in_use"] == 1


def test_given_a_look_that_stood_in_its_lane_while_the_driver_was_found_then_it_is_not_lost() -> None:
    """What the look was queued with said that nobody watches it."""
    desk = a_desk(a_run(state="running", external_id="ext", host="b"))
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(79, DUPLICATE)), NOW + 10)
    watched: list[str] = []
    look = CheckRun(0, ID, lambda run: None, is_watched=lambda run: run.id in watched)
    watched.append(ID)
    desk.decide(look, NOW + 1 + UNKNOWN_HOST_MS)
    assert outcome(desk) == "running"
    watched.clear()
    desk.decide(look, NOW + 1 + UNKNOWN_HOST_MS)
    assert outcome(desk) == "lost"


def test_given_a_refusal_at_the_gate_of_an_attempt_that_has_not_passed_it_then_it_is_tried_again() -> None:
    """Cannot be, and is safe: the transaction that makes the next attempt closes this one."""
    desk = a_desk(STATES["submitted"])
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(79, DUPLICATE)), NOW + 10)
    run = run_of(desk)
    assert run is not None
    assert (run.attempt, run.state) == (2, "submitting")


def test_given_a_platforms_word_from_before_the_driver_was_known_then_it_is_asked_again_and_that_word_counts() -> None:
    """I4, seeds 20040666, 20041398, 20042222: the copy before was gone, and the platform had started the artefact again."""
    desk = a_driver_and_another_copy(None)
    asked: list[Run] = []
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(137), ask_again=asked.append), NOW + 3)
    assert outcome(desk) == "running"
    assert (desk.store.peek(SHARED) or {})["in_use"] == 1
    assert [run.driver for run in asked] == ["driver-1"]
    desk.decide(AttemptEnded(0, ID, 1, ProgramEnded(137), driver="driver-1", ask_again=asked.append), NOW + 4)
    assert outcome(desk) == "launched/failed"
    assert len(asked) == 1


@pytest.mark.parametrize("reports", [True, False])
def test_given_a_platform_that_told_of_the_copy_before_then_the_driver_runs_to_its_own_end(reports: bool) -> None:
    bench = a_bench(
        Behaviour(starts_after=50, runs_for=5 * SECOND, reports=reports, gone=ProgramEnded(0 if reports else 1))
    )
    bench.tells_host = False
    triggered(bench)
    bench.run(SECOND)
    (order,) = bench.started
    bench.tell_of_the_copy_before(order.run_id)
    bench.run(2 * SECOND)
    assert [run["state"] for run in bench.rows("R#")] == ["running"]
    bench.run(4 * SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded" if reports else "failed"]
    assert len(bench.started) == 1
