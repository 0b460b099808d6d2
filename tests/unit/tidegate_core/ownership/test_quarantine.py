"""What cannot be decided is told, set aside and tried again at a bounded pace; everything behind it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import (
    DAY,
    HOUR,
    MINUTE,
    RECEIPTS,
    RUNS,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.two_owners import BenchPair
from tidegate_core.engine import shard_writer
from tidegate_core.language.values.derived_ids import nominal_mark, run_id, schedule_shard
from tidegate_core.ownership.quarantine import TRY_AGAIN_MS
from tidegate_core.rows.effects import Commit, Effect, Invalid, LookedUp, Lookup, Produce, Read, Watch
from tidegate_core.rows.store_operations import Key, Put
from tidegate_core.runs.attempts import PROBE_GAP_MS
from tidegate_core.shard.schedule_state import spec_of
from tidegate_core.writes import read_cache
from tidegate_core.writes.unit_of_work import UnitOfWork

GOOD = next(
    name
    for name in (f"x{n}" for n in range(99))
    if schedule_shard("flights", name, 4) == schedule_shard("flights", "nightly", 4)
)
"""A neighbour of `nightly` in the same shard."""
INVALID = Invalid("Item size has exceeded the maximum allowed size")


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def refuse(bench: ActorHarness, touches: Callable[[str], bool], name: str | None = None) -> None:
    """The store takes no transaction that writes such a sort key."""

    def match(effect: Effect) -> bool:
        if not isinstance(effect, Commit):
            return False
        named = name in {None, effect.transaction.name} or effect.transaction.name == "mixed"
        return named and any(touches(action.key.sk) for action in effect.transaction.actions)

    bench.answer_with(match, INVALID, times=100_000)


def failed(bench: ActorHarness) -> set[str]:
    """Names of what was given up, and each time it was said about what and why."""
    notices = bench.notices("decision_failed")
    assert all(notice.fields["about"] and "exceeded" in str(notice.fields["error"]) for notice in notices)
    return {str(notice.fields["name"]) for notice in notices}


def of(bench: ActorHarness, name: str) -> list[str]:
    return [entry[0] for entry in bench.ledger() if entry[1] == name]


def test_given_a_poisoned_request_then_its_sender_is_told_its_row_goes_and_the_next_one_is_applied(
    bench: ActorHarness,
) -> None:
    refuse(bench, lambda sk: sk.startswith("S#flights/nightly"))
    bench.request(an_apply(a_spec()))
    bench.request(an_apply(a_spec(GOOD)))
    bench.run(SECOND)
    receipt = bench.receipts()["apply-nightly"]
    assert receipt["status"] == "rejected"
    assert "internal error" in receipt["errors"][0]["problem"]
    assert bench.status_of(f"apply-{GOOD}") == "accepted"
    assert bench.rows("I#") == []
    assert failed(bench) == {"request"}


@pytest.mark.parametrize("answer_only", [True, False], ids=["its answer is late", "it is late"])
def test_given_a_holder_that_freezes_as_it_refuses_a_request_then_nobody_is_told_otherwise_than_its_successor_tells(
    answer_only: bool,
) -> None:
    """Review: it said `rejected`, and removed the inbox row, of what its successor had applied and answered meanwhile."""
    pair = BenchPair(shards=1)
    pair.run(SECOND)
    refuse(pair.first, lambda sk: sk.startswith("S#"))

    def behind_the_failure(effect: Effect) -> bool:
        return isinstance(effect, Read | Commit | Produce) and bool(pair.first.notices("decision_failed"))

    pair.first.hold_back(behind_the_failure, answer_only=answer_only)
    pair.request(an_apply(a_spec()))
    assert pair.first.holds_something
    pair.take_over()
    pair.run(SECOND)
    pair.first.end_scripts()
    pair.thaw(pair.first)
    pair.first.release()
    pair.run(SECOND)
    told = {json.loads(each.value)["status"] for bench in (pair.first, pair.second) for each in bench.on(RECEIPTS)}
    assert told == ({"accepted"} if pair.second.state_of() else {"rejected"})
    assert pair.second.rows("I#") == []


def test_given_a_request_that_is_half_done_then_it_is_tried_again_and_answered_once_it_can_be_ended(
    bench: ActorHarness,
) -> None:
    """The state has moved already: to say `rejected` would be a lie, and what is pending has to end."""
    bench.request(
        an_apply(
            a_spec(trigger=every("10m"), constraints=[{"type": "time_window", "opens": "12:00", "closes": "13:00"}])
        )
    )
    bench.run(11 * MINUTE)
    refuse(bench, lambda sk: True, "end_pending")
    bench.request(a_request("delete"))
    bench.request(an_apply(a_spec(GOOD)))
    bench.run(SECOND)
    assert bench.status_of("delete-nightly") is None
    assert bench.status_of(f"apply-{GOOD}") == "accepted"
    bench.as_usual()
    bench.run(TRY_AGAIN_MS)
    assert bench.status_of("delete-nightly") == "accepted"
    assert of(bench, "nightly") == ["cancelled/schedule_deleted"]
    assert bench.rows("I#") == []


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(a_request("suspend", request_id="it"), id="suspend"),
        pytest.param(a_request("delete", request_id="it"), id="delete"),
        pytest.param(an_apply(a_spec(trigger=every("1h"), args=["mended"]), "it"), id="update"),
    ],
)
def test_given_a_schedule_that_cannot_fire_then_it_can_be_stopped_and_mended_all_the_same(
    bench: ActorHarness, request_: Doc
) -> None:
    """Review: each request on it made first what was due, failed with that, and was rejected: nobody could do anything about it."""
    bench.request(an_apply(a_spec(trigger=every("10m"))))
    refuse(bench, lambda sk: sk.startswith("S#"), "fire")
    bench.run(11 * MINUTE)
    bench.request(request_)
    bench.run(SECOND)
    assert bench.status_of("it") == "accepted"
    assert failed(bench) == {"fire"}
    bench.as_usual()
    bench.run(5 * MINUTE)
    assert (bench.started, bench.rows("J#")) == ([], [])


SHUT = [{"type": "time_window", "opens": "12:00", "closes": "13:00"}]


@pytest.mark.parametrize("most", [4, 2, 1])
def test_given_a_page_that_is_too_large_then_it_is_halved_until_it_fits(bench: ActorHarness, most: int) -> None:
    """It was tried again at the same size, every ten minutes, for ever."""
    bench.request(an_apply(a_spec(trigger=every("10m"), constraints=SHUT)))
    bench.run(71 * MINUTE)

    def too_large(effect: Effect) -> bool:
        if not isinstance(effect, Commit) or effect.transaction.name != "end_pending":
            return False
        return sum(action.key.sk.startswith("J#") for action in effect.transaction.actions) > most

    bench.answer_with(too_large, INVALID, times=1_000)
    bench.request(a_request("delete"))
    bench.run(SECOND)
    assert bench.status_of("delete-nightly") == "accepted"
    assert of(bench, "nightly") == ["cancelled/schedule_deleted"] * 7
    assert len(bench.receipts()["delete-nightly"]["discarded"]["jobs"]) == 7
    assert failed(bench) == set()


def test_given_one_job_that_cannot_be_ended_then_those_before_it_are_ended_all_the_same(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10m"), constraints=SHUT)))
    bench.run(71 * MINUTE)
    last = str(max(bench.rows("J#"), key=lambda row: str(row["nominal"]))["sk"])
    refuse(bench, lambda sk: sk == last, "end_pending")
    bench.request(a_request("delete"))
    bench.run(SECOND)
    assert [row["sk"] for row in bench.rows("J#")] == [last]
    assert bench.status_of("delete-nightly") is None
    assert failed(bench) == {"request"}
    bench.as_usual()
    bench.run(TRY_AGAIN_MS)
    assert len(bench.receipts()["delete-nightly"]["discarded"]["jobs"]) == 7


@pytest.mark.parametrize("mode", ["hold", "drop"])
def test_given_a_page_of_a_suspend_that_is_too_large_then_it_is_halved(bench: ActorHarness, mode: str) -> None:
    bench.request(an_apply(a_spec(trigger=every("10m"), constraints=SHUT)))
    bench.run(71 * MINUTE)
    name = {"hold": "park", "drop": "end_pending"}[mode]
    bench.answer_with(lambda effect: isinstance(effect, Commit) and effect.transaction.name == name, INVALID, times=2)
    bench.request(a_request("suspend", mode=mode))
    bench.run(SECOND)
    assert bench.status_of("suspend-nightly") == "accepted"


def test_given_one_poisoned_event_among_others_then_the_others_count_and_it_is_tried_again(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=1_000))))
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "I#", times=1_000)
    for day in ("d1", "d2", "d3"):
        bench.event(an_event(day))
    poisoned = str(bench.rows("I#")[1]["sk"])
    refuse(bench, lambda sk: sk == poisoned)
    bench._rules.pop(0)
    bench.release()
    bench.run(MINUTE)
    assert [row["counts"] for row in bench.rows("E#")] == [[2]]
    assert [row["sk"] for row in bench.rows("I#")] == [poisoned]
    assert failed(bench) == {"count"}
    bench.as_usual()
    bench.run(TRY_AGAIN_MS)
    assert [row["counts"] for row in bench.rows("E#")] == [[3]]
    assert bench.rows("I#") == []


def test_given_a_poisoned_event_then_a_time_out_does_not_wait_for_it(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="1m"))))
    bench.event(an_event("d1", "a"))
    bench.run(SECOND)
    refuse(bench, lambda sk: sk.startswith("I#"), "count")
    bench.event(an_event("d1", "b"))
    bench.run(2 * MINUTE)
    assert of(bench, "nightly") == ["expired/trigger_timeout"]


def test_given_a_poisoned_job_then_those_behind_it_run_and_it_does_later(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.request(an_apply(a_spec(GOOD, every("10s"))))
    poisoned = _next_job(bench)
    refuse(bench, lambda sk: sk == f"R#{poisoned}", "admit")
    bench.run(MINUTE)
    assert len(of(bench, "nightly")) >= 5
    assert len(of(bench, GOOD)) >= 5
    assert failed(bench) == {"admit"}
    assert [str(row["id"]) for row in bench.rows("J#") if row["state"] == "pending_constraint"] == [poisoned]
    bench.as_usual()
    bench.run(TRY_AGAIN_MS)
    assert poisoned in {str(row["job_id"]) for row in bench.rows("L#")}


def test_given_a_poisoned_job_behind_what_makes_up_for_the_past_then_it_alone_is_set_aside() -> None:
    """That goes one at a time, and lets those behind it pass: they are decided on before it."""
    bench = ActorHarness(behaviour=Behaviour(runs_for=20 * SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("5m"), overlap="allow", catchup={"mode": "all"})))
    bench.run(MINUTE)
    bench.away(21 * MINUTE)
    bench.run(SECOND)
    innocent = [str(row["id"]) for row in bench.rows("J#")]
    assert len(innocent) == 5
    refuse(bench, lambda sk: sk.startswith("R#") and sk[2:] not in innocent, "admit")
    bench.request(a_request("trigger"))
    poisoned = str(bench.receipts()["trigger-nightly"]["id"])
    bench.run(3 * MINUTE)
    assert [str(row["id"]) for row in bench.rows("J#")] == [poisoned]
    assert len(bench.notices("decision_failed")) == 1


def test_given_a_poisoned_job_that_overlap_ends_then_those_before_it_go_in_their_turn() -> None:
    bench = ActorHarness(behaviour=Behaviour(runs_for=210 * SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("1m"), max_pending=2, on_overflow="reject")))
    refuse(bench, lambda sk: sk.startswith("L#"), "admit")
    bench.run(8 * MINUTE)
    assert failed(bench) == {"admit"}
    nominals = [each.context["nominal"] for each in bench.started]
    assert nominals == ["2025-11-13T02:14:00Z", "2025-11-13T02:15:00Z", "2025-11-13T02:16:00Z"]


def test_given_a_job_of_a_former_version_that_cannot_be_ended_then_the_new_ones_run(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10m"), constraints=SHUT)))
    bench.run(11 * MINUTE)
    refuse(bench, lambda sk: sk.startswith("J#"), "end_pending")
    bench.request(an_apply(a_spec(trigger=every("1m")), "apply-2", on_update="restart"))
    bench.run(5 * MINUTE)
    assert failed(bench) == {"request"}
    assert len(of(bench, "nightly")) >= 4
    assert len(bench.rows("J#")) == 1
    bench.as_usual()
    bench.run(TRY_AGAIN_MS)
    assert bench.status_of("apply-2") == "accepted"
    assert of(bench, "nightly").count("cancelled/superseded") == 1


def _next_job(bench: ActorHarness) -> str:
    state = bench.state_of()
    assert state is not None
    assert state.next_nominal is not None
    shard = schedule_shard("flights", "nightly", 4)
    return run_id(shard, state.incarnation, "every", nominal_mark(state.next_nominal))


@pytest.mark.parametrize("name", ["look", "gone", "submitted", "distribute", "fire", "expire"])
def test_given_anything_poisoned_for_a_while_then_the_neighbour_runs_and_in_the_end_all_is_done(name: str) -> None:
    bench = ActorHarness(behaviour=Behaviour(outputs={"rows": 1}, reports=False))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10m"))))
    bench.request(an_apply(a_spec("down", on_run_of("nightly", "failed"))))
    bench.request(an_apply(a_spec("pair", all_of(on_data("a"), on_data("b"), timeout="1m"))))
    bench.event(an_event("d1", "a"))
    bench.run(SECOND)
    refuse(bench, lambda sk: GOOD not in sk, name)
    bench.run(11 * MINUTE)
    bench.request(an_apply(a_spec(GOOD, every("10s"))))
    bench.run(30 * SECOND)
    assert bench.status_of(f"apply-{GOOD}") == "accepted"
    bench.as_usual()
    bench.run(3 * TRY_AGAIN_MS)
    assert of(bench, "nightly")[:2] == ["launched", "launched"]
    assert of(bench, "down")[:2] == ["launched", "launched"]
    assert of(bench, "pair") == ["expired/trigger_timeout"]
    assert len(of(bench, GOOD)) > 10


def test_given_poison_for_hours_then_it_is_said_at_a_bounded_pace(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=1_000))))
    bench.request(an_apply(a_spec(GOOD, every("1m"))))
    refuse(bench, lambda sk: sk.startswith("E#flights/nightly"))
    for number in range(20):
        bench.event(an_event(f"d{number}"))
    hours = tier.at_night(3, else_=1)
    bench.run(hours * HOUR)
    said = len(bench.notices("decision_failed"))
    assert 20 <= said <= 20 * (hours * HOUR // TRY_AGAIN_MS + 1)
    assert len(of(bench, GOOD)) >= 60 * hours - 5


def a_run(bench: ActorHarness) -> str:
    """A program that runs for ever, of a schedule whose next job ends it."""
    bench.behaves = lambda order: Behaviour(runs_for=None)
    bench.request(an_apply(a_spec(trigger=every("9h"), overlap="cancel_running")))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    return str(bench.receipts()["trigger-nightly"]["id"])


def test_given_a_submission_that_cannot_be_written_down_for_hours_then_its_program_is_watched_once_and_never_lost(
    bench: ActorHarness,
) -> None:
    """Each time that it was asked for anew one more waited for its end."""
    refuse(bench, lambda sk: sk.startswith("R#"), "submitted")
    a_run(bench)
    hours = tier.at_night(3, else_=1)
    bench.run(hours * HOUR)
    assert len(bench.notices("decision_failed")) >= hours * HOUR // TRY_AGAIN_MS - 1
    assert len([effect for effect in bench.asked if isinstance(effect, Watch)]) == 1
    # Ten minutes behind its start it was lost, found, lost and found again with each look, and each loss was told.
    assert [str(each.document["state"]) for each in bench.on(RUNS)] == ["running"]


def test_given_a_loss_that_cannot_be_written_and_a_program_that_is_found_then_it_is_not_told_as_lost(
    bench: ActorHarness,
) -> None:
    """It was written ten minutes later, when its host had long answered, and whoever waits for a loss was fired."""
    run = a_run(bench)
    bench.crash()
    bench.answer_with(lambda each: isinstance(each, Lookup), LookedUp("unknown"), times=65)
    refuse(bench, lambda sk: sk == f"R#{run}", "lost")
    bench.run(PROBE_GAP_MS + 30 * SECOND)
    assert failed(bench) == {"lost"}
    bench.as_usual()
    bench.run(2 * TRY_AGAIN_MS)
    assert [str(each.document["state"]) for each in bench.on(RUNS)] == ["running"]


def test_given_a_run_that_cannot_be_asked_to_end_for_a_job_then_it_is_not_once_that_job_is_gone(
    bench: ActorHarness,
) -> None:
    """It was asked for ten minutes later, when nobody wanted its place any more."""
    run = a_run(bench)
    refuse(bench, lambda sk: sk == f"R#{run}", "cancel_run")
    bench.request(a_request("trigger", request_id="second"))
    bench.run(SECOND)
    assert failed(bench) == {"cancel_run"}
    job = str(bench.receipts()["second"]["id"])
    bench.request({"id": "gone", "type": "job.cancel", "namespace": "flights", "job_id": job})
    assert bench.status_of("gone") == "cancelled"
    bench.as_usual()
    bench.run(2 * TRY_AGAIN_MS)
    assert of(bench, "nightly") == ["cancelled/by_request"]
    assert [row["state"] for row in bench.rows("R#") if "ended_at" not in row] == ["running"]


def test_given_a_run_that_cannot_be_asked_to_end_for_hours_then_that_is_said_at_a_steady_pace(
    bench: ActorHarness,
) -> None:
    """Each time that it was asked for, every ten seconds, came again every ten minutes."""
    run = a_run(bench)
    refuse(bench, lambda sk: sk == f"R#{run}", "cancel_run")
    bench.request(a_request("trigger", request_id="second"))
    said = []
    for _ in range(4):
        before = len(bench.notices("decision_failed"))
        bench.run(TRY_AGAIN_MS)
        said.append(len(bench.notices("decision_failed")) - before)
    assert max(said) <= said[0] + 1
    bench.as_usual()
    bench.run(MINUTE)
    assert "launched" in of(bench, "nightly")


@pytest.mark.parametrize("raised", [KeyError("x"), AssertionError()], ids=["key", "assertion"])
def test_given_a_bug_in_a_decision_then_no_shard_stops(
    bench: ActorHarness, raised: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate_core.firing.fire import FireSchedule

    decide = FireSchedule.decide

    def buggy(self: FireSchedule, *args: Any) -> None:
        if self.row.ref.endswith("/nightly"):
            raise raised
        decide(self, *args)

    monkeypatch.setattr(FireSchedule, "decide", buggy)
    bench.request(an_apply(a_spec(trigger=every("10s"))))
    bench.request(an_apply(a_spec(GOOD, every("10s"))))
    bench.run(MINUTE)
    assert of(bench, "nightly") == []
    assert len(of(bench, GOOD)) >= 5
    assert {str(notice.fields["about"]) for notice in bench.notices("decision_failed")} == {"flights/nightly"}
    monkeypatch.undo()
    bench.run(5 * MINUTE)
    assert len(of(bench, "nightly")) >= 30


def test_given_a_poisoned_record_then_it_is_a_dead_letter_and_those_around_it_count(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=1_000))))
    bench.run(SECOND)
    bodies: list[str] = []

    def too_large(effect: Effect) -> bool:
        if not isinstance(effect, Commit) or effect.transaction.name != "cursor":
            return False
        bodies[:] = [str(getattr(action, "item", {}).get("body", "")) for action in effect.transaction.actions]
        return any("poison" in body for body in bodies)

    bench.answer_with(too_large, INVALID, times=1_000)
    bench.append("tidegate.events", 0, an_event("d1"), an_event("poison"), an_event("d3"))
    bench.run(2 * SECOND)
    assert [row["counts"] for row in bench.rows("E#")] == [[2]]
    (letter,) = bench.on("tidegate.events.dlq")
    assert letter.headers["tidegate.error.offset"] == "1"
    assert failed(bench) == {"cursor"}


def test_given_a_job_that_cannot_be_read_behind_one_that_is_admitted_then_that_one_runs(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is decided on alone is not held against whoever stands behind it (review)."""
    bench.request(an_apply(a_spec(trigger=every("100h"), overlap="allow", constraints=SHUT)))
    bench.request(a_request("trigger", request_id="t1"))
    bench.run(SECOND)
    changed = a_spec(trigger=every("100h"), overlap="allow", priority="high", constraints=SHUT)
    bench.request(an_apply(changed, "apply-2", on_update="finish_old"))
    bench.request(a_request("trigger", request_id="t2"))
    bench.run(SECOND)
    first = bench.receipts()["t1"]["id"]

    def unreadable(unit: UnitOfWork, namespace: str, name: str, version: int) -> object:
        if version == 2:
            raise ValueError("cannot be read")
        return spec_of(unit, namespace, name, version)

    monkeypatch.setattr("tidegate_core.admission.admit.spec_of", unreadable)
    bench.passes_over_routine = True
    bench.run((DAY // 2 - bench.now) % DAY + 2 * MINUTE)  # The window opens, and nobody is taken back yet.
    assert [each.run_id for each in bench.started] == [first]


def test_given_a_fall_amid_the_pages_of_an_update_then_jobs_of_the_former_version_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There may be more than the view holds: read one by one, a look at them never ended (review)."""
    monkeypatch.setattr(read_cache, "ITEMS_MAX", 100)
    monkeypatch.setattr(shard_writer, "READS_PER_DECISION_MAX", 50)
    bench = ActorHarness(behaviour=Behaviour(runs_for=SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("100h"), constraints=SHUT)))
    bench.request(a_request("trigger"))
    (row,) = bench.rows("J#")
    for number in range(200):
        job_id = f"{str(row['id'])[:-3]}{number:03d}"
        more = {**row, "sk": f"J#{job_id}", "id": job_id, "satisfied_at": bench.now + number}
        bench.store.write([Put(Key(str(row["pk"]), f"J#{job_id}"), more)])
    bench.crash()
    bench.run(SECOND)
    bench.crash_after = bench.effects_outside + 4
    bench.request(an_apply(a_spec(trigger=every("100h")), "apply-2"))
    bench.run(MINUTE)
    assert bench.notices("decision_failed") == []
    assert bench.status_of("apply-2") == "accepted"
