"""Definitions that a request brings: what is refused, with what to do, and what the receipt of the others tells."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, SECOND, Doc, a_request, a_spec, an_apply, every, on_run_of
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.request_bench import answer, brought_to
from tidegate_core.language.definitions.quotas import Quota


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def test_given_a_bad_schedule_then_it_is_rejected_with_all_problems_and_nothing_is_made(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("500ms"), overlap="perhaps")))
    receipt = bench.receipts()["apply-nightly"]
    assert receipt["status"] == "rejected"
    assert [error["field"] for error in receipt["errors"]] != []
    assert bench.state_of() is None


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(a_spec(file="/jobs/missing.py"), "target.program.file", id="file"),
        pytest.param(a_spec(trigger=every("1h", end="2020-01-01T00:00:00Z")), "trigger.end", id="over"),
    ],
)
def test_given_a_schedule_that_could_never_run_then_it_is_rejected_when_applied(
    bench: ActorHarness, spec: Doc, field: str
) -> None:
    receipt = answer(bench, an_apply(spec))
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", field)
    assert bench.state_of() is None
    assert bench.rows("DEF#") == []


def test_given_a_time_trigger_then_the_receipt_names_the_next_three_instants(bench: ActorHarness) -> None:
    receipt = answer(bench, an_apply(a_spec(trigger=every("1h"))))
    assert receipt["next"] == ["2025-11-13T03:00:00Z", "2025-11-13T04:00:00Z", "2025-11-13T05:00:00Z"]


@pytest.mark.parametrize("letter", ["x", "é", "日"])
@pytest.mark.parametrize("kilobytes", [60, 70])
def test_given_a_large_program_then_it_is_refused_when_applied_or_it_runs(
    bench: ActorHarness, letter: str, kilobytes: int
) -> None:
    """What is accepted has to fit where it is kept, in every form in which it is kept."""
    letters = kilobytes * 1_000 // len(letter.encode()) // 25
    receipt = answer(bench, an_apply(a_spec(trigger=every("10h"), args=[letter * letters] * 25)))
    assert receipt["status"] == ("accepted" if kilobytes == 60 else "rejected")
    if receipt["status"] == "accepted":
        answer(bench, a_request("trigger"), run=5 * SECOND)
        assert [entry[0] for entry in bench.ledger()] == ["launched"]
    assert bench.notices("decision_failed") == []


@pytest.mark.parametrize("letter", ["x", "é", "日", "\U0001f600"])
@pytest.mark.parametrize("times", [1, 2, 6])
def test_given_large_outputs_then_the_run_they_fire_is_told_of_them_or_skipped_and_blocks_nobody(
    letter: str, times: int
) -> None:
    outputs = {"x": letter * (63_000 // len(letter.encode()))}
    bench = ActorHarness(behaviour=Behaviour(outputs=outputs))
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10h"), args=["y" * 1_000] * 20)))
    bench.request(an_apply(a_spec("down", on_run_of("up"), args=["${upstream.outputs.x}"] * times)))
    bench.request(an_apply(a_spec("next", on_run_of("up"))))
    answer(bench, a_request("trigger", "up"), run=5 * SECOND)
    ended = {entry[1]: entry[0] for entry in bench.ledger()}
    assert ended["down"] in {"launched", "skipped/unresolved_template"}
    assert ended["down"] == "launched" or times > 1
    assert (ended["up"], ended["next"]) == ("launched", "launched")
    assert bench.notices("decision_failed") == []


def test_given_an_active_schedule_then_an_update_that_begins_suspended_is_refused_with_what_to_do(
    bench: ActorHarness,
) -> None:
    brought_to(bench, "active")
    receipt = answer(bench, an_apply(a_spec(trigger=every("2h"), suspended=True), "it"))
    assert receipt["status"] == "rejected"
    (error,) = receipt["errors"]
    assert (error["field"], error["hint"]) == ("suspended", "leave it out, and suspend the schedule")
    assert bench.status_of("it") == "rejected"


def test_given_a_schedule_that_began_suspended_and_was_resumed_then_its_document_need_not_change(
    bench: ActorHarness,
) -> None:
    answer(bench, an_apply(a_spec(trigger=every("1h"), suspended=True), "1"))
    answer(bench, a_request("resume"))
    assert answer(bench, an_apply(a_spec(trigger=every("2h"), suspended=True), "2"))["status"] == "accepted"
    state = bench.state_of()
    assert state is not None
    assert state.status == "active"


def test_given_a_namespaces_quota_then_the_owner_refuses_what_is_beyond_it_and_keeps_what_there_is() -> None:
    spec = a_spec(trigger=every("1h"))
    bench = ActorHarness()
    bench.run(SECOND)
    assert answer(bench, an_apply(spec, "before"))["status"] == "accepted"
    strict = ActorHarness(
        beside=bench, owner="strict", quotas={str(spec["namespace"]): Quota(minimum_period_ms=2 * HOUR)}
    )
    strict.run(SECOND)
    assert answer(strict, an_apply(spec, "the-same"))["status"] == "unchanged"
    refused = answer(strict, an_apply(a_spec(trigger=every("90m")), "shorter"))
    assert (refused["status"], refused["errors"][0]["field"]) == ("rejected", "trigger.period")


def test_given_a_carried_update_then_a_quota_bounds_what_it_changes_and_its_trigger_stays() -> None:
    """A carried update was looked at by no quota at all: max_pending and max_runs could be raised to whatever somebody wanted."""
    spec = a_spec(trigger=every("1h"), max_pending=5, overlap="queue")
    bench = ActorHarness()
    bench.run(SECOND)
    assert answer(bench, an_apply(spec, "before"))["status"] == "accepted"
    quota = Quota(minimum_period_ms=2 * HOUR, pending_max=5, catch_up_runs_max=24)
    strict = ActorHarness(beside=bench, owner="strict", quotas={str(spec["namespace"]): quota})
    strict.run(SECOND)
    wider: list[dict[str, object]] = [{"max_pending": 6}, {"catchup": {"max_runs": 25}}]
    for number, more in enumerate(wider):
        refused = answer(strict, {**an_apply({**spec, **more}, f"more-{number}"), "on_update": "carry"})
        assert (refused["status"], len(refused["errors"])) == ("rejected", 1)
    fewer = {**an_apply({**spec, "max_pending": 4}, "fewer"), "on_update": "carry"}
    assert answer(strict, fewer)["status"] == "accepted"
