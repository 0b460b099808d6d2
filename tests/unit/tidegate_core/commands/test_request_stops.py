"""Requests that end what a schedule has begun: jobs, runs before the gate and evidence are closed before the answer."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.request_bench import CLOSED, answer
from tidegate_core.ownership.quarantine import TRY_AGAIN_MS
from tidegate_core.rows.effects import Invalid


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(a_request("delete", request_id="it"), "schedule_deleted", id="delete"),
        pytest.param(a_request("suspend", request_id="it"), "suspended", id="suspend"),
        pytest.param(an_apply(a_spec(args=["new"]), "it", on_update="restart"), "superseded", id="update"),
    ],
)
@pytest.mark.parametrize("minutes", [1, 6, 7, 20])
def test_given_pending_jobs_then_all_are_cancelled_before_the_answer(
    bench: ActorHarness, request_: Doc, reason: str, minutes: int
) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(minutes * MINUTE)
    waiting = {str(row["id"]) for row in bench.rows("J#")}
    assert len(waiting) == minutes
    receipt = answer(bench, request_)
    assert set(receipt["discarded"]["jobs"]) == waiting
    assert [entry[0] for entry in bench.ledger()] == [f"cancelled/{reason}"] * minutes
    assert bench.rows("J#") == []


@pytest.mark.parametrize("kind", ["delete", "suspend"])
def test_given_runs_before_and_past_the_gate_then_the_former_are_closed_and_the_latter_listed(kind: str) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    behaviours = iter([Behaviour(runs_for=None), Behaviour(starts_after=None), Behaviour(starts_after=None)])
    bench.behaves = lambda order: next(behaviours)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.run(25 * SECOND)
    ids = sorted((int(str(row["nominal"])), str(row["id"])) for row in bench.rows("R#"))
    receipt = answer(bench, a_request(kind))
    assert receipt["running"] == [ids[0][1]]
    assert set(receipt["discarded"]["jobs"]) == {run for _, run in ids[1:]}
    assert [str(row["id"]) for row in bench.rows("R#") if "ended_at" not in row] == [ids[0][1]]


@pytest.mark.parametrize("kind", ["delete", "suspend"])
def test_given_an_acknowledged_end_then_nothing_of_it_ever_starts(kind: str) -> None:
    """I7, with a program that comes to the gate just after the acknowledgement."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=5 * SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.run(28 * SECOND)
    started = len(bench.started)
    assert answer(bench, a_request(kind))["status"] == "accepted"
    bench.run(HOUR)
    assert len(bench.started) == started


@pytest.mark.parametrize(
    ("kind", "more", "page", "status"),
    [
        pytest.param("delete", {}, "end_pending", "not_found", id="delete"),
        pytest.param("suspend", {}, "end_pending", "unchanged", id="drop"),
        pytest.param("suspend", {"mode": "hold"}, "park", "unchanged", id="hold"),
    ],
)
def test_given_an_end_that_is_not_through_then_another_one_is_not_acknowledged_before_it_either(
    kind: str, more: Doc, page: str, status: str
) -> None:
    """I7 (review): it found the schedule deleted, or suspended, and was answered at once; a run of before came to the gate after that."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=30 * SECOND, runs_for=None))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow", constraints=[at_most(1)])))
    bench.run(15 * SECOND)
    bench.answer_with(a_commit(page), Invalid("scripted"), times=100)
    bench.request(a_request(kind, request_id="first", **more))
    bench.request(a_request(kind, request_id="second"))
    bench.run(MINUTE)
    assert len(bench.started) == 1
    assert bench.status_of("first") is bench.status_of("second") is None
    bench.as_usual()
    bench.run(TRY_AGAIN_MS)
    first, second = bench.receipts()["first"], bench.receipts()["second"]
    assert (first["status"], second["status"]) == ("accepted", status)
    assert first["running"] == second["running"] == [run.run_id for run in bench.started]
    bench.run(HOUR)
    assert len(bench.started) == 1


def test_given_discarded_evidence_then_the_answer_says_how_much_and_counting_starts_anew(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=3))))
    for day in ("a", "b"):
        bench.event(an_event(day))
    bench.run(SECOND)
    receipt = answer(bench, an_apply(a_spec(trigger=on_data(count=3), args=["new"]), "it"))
    assert receipt["discarded"]["evidence"] == {"": 2}
    bench.event(an_event("c"))
    bench.run(SECOND)
    assert bench.started == []
    for day in ("d", "e"):
        bench.event(an_event(day))
    bench.run(SECOND)
    assert len(bench.started) == 1


def test_given_evidence_under_many_keys_then_all_of_it_is_discarded_before_the_answer(bench: ActorHarness) -> None:
    trigger = all_of(on_data("a"), on_data("b"), correlate="data_partition")
    bench.request(an_apply(a_spec(trigger=trigger)))
    for number in range(15):
        bench.event(an_event(f"d{number:02d}", "a"))
    bench.run(SECOND)
    receipt = answer(bench, a_request("suspend"))
    assert receipt["discarded"]["evidence"] == {f"d{number:02d}": 1 for number in range(15)}
    assert bench.rows("E#") == []
    assert [row for row in bench.rows("T#") if row["kind"] == "E"] == []


def test_given_evidence_under_more_long_keys_than_an_item_holds_then_all_of_it_ends_and_the_first_ones_are_listed(
    bench: ActorHarness,
) -> None:
    """Found in review: the answer outgrew its item behind some hundreds, no further one was ended, and a suspend was never answered."""
    trigger = all_of(on_data("a"), on_data("b"), correlate="data_partition")
    bench.request(an_apply(a_spec(trigger=trigger)))
    for number in range(560):
        bench.event(an_event(f"{number:03d}{'月' * 250}", "a", event_id=f"e-{number}"))
    bench.run(30 * SECOND)
    assert len(bench.rows("E#")) == 560
    bench.request(a_request("delete"))
    bench.run(30 * SECOND)
    assert bench.rows("E#") == []
    listed = bench.receipts()["delete-nightly"]["discarded"]["evidence"]
    assert 100 < len(listed) < 200


def test_given_runs_under_a_shared_limit_then_a_suspend_returns_all_their_permits() -> None:
    bench = ActorHarness(behaviour=Behaviour(starts_after=None))
    bench.run(SECOND)
    limits = [at_most(4, "program")]
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow", constraints=limits)))
    bench.run(35 * SECOND)
    assert answer(bench, a_request("suspend"))["status"] == "accepted"
    (limit,) = bench.rows("LIMIT")
    assert limit["in_use"] == 0


def test_given_thousands_of_missed_instants_before_a_request_then_others_fire_meanwhile() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    never = {"type": "time_window", "opens": "02:00", "closes": "02:01"}
    many = {"max_runs": 10_000}
    for name in ("much", "other"):
        bench.request(an_apply(a_spec(name, every("1s"), overlap="allow", constraints=[never], catchup=many)))
    bench.run(SECOND)
    bench.store_answers_after = 50
    bench.away(20 * MINUTE)
    bench.run(2 * SECOND)
    bench.request(a_request("suspend", "much"))
    bench.run(SECOND)

    def made() -> int:
        return len([row for row in bench.rows("J#") if row["name"] == "other"])

    before = made()
    bench.run(2 * SECOND)
    assert bench.status_of("suspend-much") is None
    assert made() > before + 50
    bench.store_answers_after = 0
    bench.run(10 * SECOND)
    assert bench.status_of("suspend-much") == "accepted"
    assert len([entry for entry in bench.ledger() if entry[1] == "much"]) >= 1_200
