"""Requests on one occurrence: a run by hand, and the cancel of a job or a run."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.request_bench import CLOSED, answer, brought_to


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def test_given_a_trigger_by_hand_then_a_run_comes_of_it_under_the_answered_id(bench: ActorHarness) -> None:
    brought_to(bench, "active")
    receipt = answer(bench, a_request("trigger"), run=2 * SECOND)
    assert [order.run_id for order in bench.started] == [receipt["id"]]
    assert [entry[0] for entry in bench.ledger()] == ["launched"]


def test_given_a_trigger_by_hand_then_limits_and_windows_hold(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1h"), constraints=[CLOSED])))
    answer(bench, a_request("trigger"), run=5 * SECOND)
    assert bench.started == []
    assert len(bench.rows("J#")) == 1


@pytest.mark.parametrize(
    ("which", "status"),
    [
        pytest.param({}, "cancelled", id="waiting"),
        pytest.param({"namespace": "flights"}, "cancelled", id="own namespace"),
        pytest.param({"namespace": "others"}, "not_found", id="another namespace"),
        pytest.param({"job_id": "0000-" + "a" * 26}, "not_found", id="unknown"),
    ],
)
def test_given_a_job_cancel_then_its_answer(bench: ActorHarness, which: Doc, status: str) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(MINUTE)
    (job,) = bench.rows("J#")
    request = {"id": "it", "type": "job.cancel", "job_id": str(job["id"]), **which}
    assert answer(bench, request)["status"] == status
    assert (bench.rows("J#") == []) == (status == "cancelled")


def test_given_a_job_that_was_cancelled_before_then_a_second_cancel_is_too_late_and_only_in_its_namespace(
    bench: ActorHarness,
) -> None:
    """It was `not_found`, where the documents say `too_late` and `why` knew it well."""
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(MINUTE)
    (job,) = bench.rows("J#")
    asked = {"type": "job.cancel", "job_id": str(job["id"])}
    assert answer(bench, {"id": "1", **asked})["status"] == "cancelled"
    again = answer(bench, {"id": "2", **asked})
    assert (again["status"], again["namespace"], again["name"]) == ("too_late", job["namespace"], job["name"])
    assert answer(bench, {"id": "3", **asked, "namespace": "others"})["status"] == "not_found"


def test_given_a_job_that_became_a_run_then_its_cancel_is_too_late() -> None:
    bench = ActorHarness(behaviour=Behaviour(runs_for=None))
    bench.run(SECOND)
    brought_to(bench, "active")
    run = answer(bench, a_request("trigger"), run=SECOND)["id"]
    assert answer(bench, {"id": "it", "type": "job.cancel", "job_id": run})["status"] == "too_late"


@pytest.mark.parametrize(
    ("behaviour", "status", "running", "state"),
    [
        pytest.param(Behaviour(starts_after=None), "cancelled", 0, "closed", id="before the gate"),
        pytest.param(Behaviour(runs_for=None), "cancelled", 1, "killed", id="past the gate"),
        pytest.param(Behaviour(runs_for=10), "too_late", 0, "succeeded", id="over"),
    ],
)
def test_given_a_run_cancel_then_its_answer_and_the_runs_end(
    behaviour: Behaviour, status: str, running: int, state: str
) -> None:
    bench = ActorHarness(behaviour=behaviour)
    bench.run(SECOND)
    brought_to(bench, "active")
    run = answer(bench, a_request("trigger"), run=SECOND)["id"]
    receipt = answer(bench, {"id": "it", "type": "run.cancel", "run_id": run}, run=SECOND)
    assert receipt["status"] == status
    assert len(receipt["running"]) == running
    assert [entry[3] for entry in bench.ledger()] == [state]


def test_given_a_job_cancel_of_a_run_that_is_over_then_it_is_too_late(bench: ActorHarness) -> None:
    brought_to(bench, "active")
    run = answer(bench, a_request("trigger"), run=5 * SECOND)["id"]
    assert answer(bench, {"id": "it", "type": "job.cancel", "job_id": run})["status"] == "too_late"
    other = {"id": "it2", "type": "run.cancel", "run_id": run, "namespace": "elsewhere"}
    assert answer(bench, other)["status"] == "not_found"


def test_given_a_job_that_gathers_evidence_then_its_cancel_says_what_ends_it(bench: ActorHarness) -> None:
    """Found in review: `job list` shows it with its id, and its cancel answered `not_found` without a word; the job ran later."""
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    bench.event(an_event("p1"))
    bench.run(SECOND)
    (evidence,) = bench.rows("E#")
    receipt = answer(bench, {"id": "it", "type": "job.cancel", "job_id": evidence["id"]})
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("not_found", "job_id")
    assert "pending_trigger" in receipt["errors"][0]["hint"]


def test_given_a_job_that_waits_then_a_cancel_of_its_run_says_what_ends_it(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(MINUTE)
    (job,) = bench.rows("J#")
    receipt = answer(bench, {"id": "it", "type": "run.cancel", "run_id": job["id"]})
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("not_found", "run_id")
    assert "job.cancel" in receipt["errors"][0]["hint"]


@pytest.mark.parametrize("kind", ["job", "run"])
def test_given_a_cancel_of_what_is_another_namespaces_then_its_receipt_names_nothing_of_it(
    bench: ActorHarness, kind: str
) -> None:
    """Found in review: `not_found` had the name of the other namespace's schedule beside the namespace that was asked in."""
    bench.request(an_apply(a_spec(constraints=[{"type": "delay", "after": "1h"}] if kind == "job" else [])))
    made = answer(bench, {"id": "go", "type": "schedule.trigger", "namespace": "flights", "name": "nightly"})["id"]
    told = answer(bench, {"id": "it", "type": f"{kind}.cancel", f"{kind}_id": made, "namespace": "others"})
    assert (told["status"], told["namespace"], told["name"], told["id"]) == ("not_found", "others", None, made)
