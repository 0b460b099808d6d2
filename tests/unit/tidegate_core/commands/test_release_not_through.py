"""What comes before a resume's release is through: the store has refused its page, and it is tried again after ten minutes (SEMANTICS 10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.request_bench import CLOSED, answer
from tests.support.harness.suspend_bench import a_bench, suspend, waiting
from tidegate_core.ownership.quarantine import TRY_AGAIN_MS
from tidegate_core.rows.effects import Commit, Invalid
from tidegate_core.rows.evidence import EvidenceChunk
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleState

# -- a state that moves again before the release is through --------------------------------------------------------------

ONE_EACH = {**on_data(), "take": "exactly_n"}
"""What waits takes nothing up that comes later."""


def refuse_releases(bench: ActorHarness) -> None:
    bench.answer_with(
        lambda each: isinstance(each, Commit) and each.transaction.name == "release", Invalid("too large"), times=100
    )


def state(bench: ActorHarness) -> ScheduleState:
    (item,) = bench.rows("S#")
    return from_item(ScheduleState, item)


def unreleased(bench: ActorHarness, backlog: str, **more: Any) -> tuple[str, str]:
    """A resume whose release the store does not take, with a job of before and one that was made since; returns both."""
    bench.request(an_apply(a_spec(trigger=ONE_EACH, overlap="allow", **more)))
    suspend(bench, "hold")
    bench.event(an_event("d1"))
    bench.run(5 * SECOND)
    refuse_releases(bench)
    bench.request(a_request("resume", backlog=backlog))
    bench.run(SECOND)
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    parked, made_since = waiting(bench)
    return parked.id, made_since.id


@pytest.mark.parametrize("on_update", ["carry", "finish_old"])
@pytest.mark.parametrize("crashes", [False, True])
def test_given_an_update_before_the_release_is_through_then_what_was_made_since_the_resume_is_no_backlog(
    on_update: str, crashes: bool
) -> None:
    """Review finding: the update moved the instant by which the release told the backlog."""
    bench = a_bench()
    parked, made_since = unreleased(bench, "none")
    update = an_apply(a_spec(trigger=ONE_EACH, overlap="allow", priority="high"), "update", on_update=on_update)
    assert answer(bench, update, run=SECOND)["status"] == "accepted"
    if crashes:
        bench.crash()
        bench.now -= 400
        bench.run(SECOND)
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    assert bench.started == []
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert bench.receipts()["resume-nightly"]["discarded"]["jobs"] == [parked]
    assert sorted(entry[0] for entry in bench.ledger()) == ["cancelled/suspended", "launched", "launched"]
    assert made_since in {each.run_id for each in bench.started}


def test_given_another_hold_before_the_release_is_through_then_what_was_made_since_the_resume_is_parked() -> None:
    bench = a_bench()
    parked, made_since = unreleased(bench, "none")
    answer(bench, a_request("suspend", mode="hold", request_id="again"), run=SECOND)
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    receipt = bench.receipts()["resume-nightly"]
    assert (receipt["discarded"]["jobs"], receipt["backlog"]) == ([parked], 0)
    left = {job.id for job in waiting(bench)}
    assert (made_since in left, len(left), bench.started) == (True, 2, [])
    receipt = answer(bench, a_request("resume", request_id="at last"), run=MINUTE)
    assert (receipt["backlog"], {each.run_id for each in bench.started}) == (2, left)


def test_given_another_resume_before_the_release_is_through_then_its_word_is_about_all_that_waits() -> None:
    bench = a_bench()
    parked, made_since = unreleased(bench, "none")
    answer(bench, a_request("suspend", mode="hold", request_id="again"), run=SECOND)
    bench.request(a_request("resume", backlog="none", request_id="at last"))
    bench.run(SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    receipts = [bench.receipts()[each] for each in ("resume-nightly", "at last")]
    ended = [job for receipt in receipts for job in receipt["discarded"]["jobs"]]
    assert sorted(ended) == sorted([parked, made_since])
    assert bench.started == []


@pytest.mark.parametrize("request_type", ["restart", "delete", "drop"])
def test_given_what_ends_all_that_waits_before_the_release_is_through_then_the_release_ends_nothing_of_what_comes_then(
    request_type: str,
) -> None:
    bench = a_bench()
    parked, made_since = unreleased(bench, "none")
    applied = an_apply(a_spec(trigger=ONE_EACH, overlap="allow", priority="high"), "again")
    stopped = a_request("suspend", mode="drop", request_id="stopped")
    before: dict[str, list[Any]] = {
        "restart": [applied],
        "delete": [a_request("delete", request_id="gone"), applied],
        "drop": [stopped, a_request("resume", request_id="again")],
    }
    for each in before[request_type]:
        assert answer(bench, each, run=SECOND)["status"] == "accepted"
    bench.request(a_request("trigger", request_id="then"))
    bench.run(SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    ended = sorted(entry[0].split("/")[0] for entry in bench.ledger())
    assert ended == ["cancelled", "cancelled", "launched"]
    assert bench.started[0].run_id not in {parked, made_since}
    assert bench.receipts()["resume-nightly"]["discarded"]["jobs"] == []


def test_given_a_carried_update_before_the_release_is_through_then_the_answer_counts_what_waited_at_the_resume() -> (
    None
):
    bench = a_bench()
    unreleased(bench, "all", constraints=[CLOSED])
    update = an_apply(a_spec(trigger=ONE_EACH, priority="high", constraints=[CLOSED]), "update", on_update="carry")
    answer(bench, update, run=SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert (bench.receipts()["resume-nightly"]["backlog"], len(waiting(bench))) == (1, 2)


# -- a cut that is not through: nothing is lost with it, and nothing takes it back -----------------------------------------


@pytest.mark.parametrize("crashes", [False, True])
def test_given_an_event_before_the_release_is_through_then_what_is_cut_does_not_take_it_up(crashes: bool) -> None:
    """Review finding: it was absorbed by a job that was to end, and ended with it."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(), overlap="allow")))
    suspend(bench, "hold")
    bench.event(an_event("d1"))
    bench.run(5 * SECOND)
    (parked,) = waiting(bench)
    refuse_releases(bench)
    bench.request(a_request("resume", backlog="none"))
    bench.run(SECOND)
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    if crashes:
        bench.crash()
        bench.now -= 400
        bench.run(SECOND)
    bench.event(an_event("d3"))
    bench.run(5 * SECOND)
    assert bench.started == []
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert bench.receipts()["resume-nightly"]["discarded"]["jobs"] == [parked.id]
    assert sorted(entry[0] for entry in bench.ledger()) == ["cancelled/suspended", "launched"]
    (started,) = bench.started
    chunks = [from_item(EvidenceChunk, row) for row in bench.rows("EC#")]
    told = [entry["key"] for each in chunks if each.evidence_id == started.run_id for entry in json.loads(each.entries)]
    assert told == ["d2", "d3"]
    assert bench.rows("E#") == []


@pytest.mark.parametrize("effect", range(1, 7))
def test_given_a_crash_as_an_event_is_counted_beside_what_is_cut_then_it_is_taken_up_once(effect: int) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(), overlap="allow")))
    suspend(bench, "hold")
    bench.event(an_event("d1"))
    bench.run(5 * SECOND)
    refuse_releases(bench)
    bench.request(a_request("resume", backlog="none"))
    bench.run(SECOND)
    bench.crash_after = bench.effects_outside + effect
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert sorted(entry[0] for entry in bench.ledger()) == ["cancelled/suspended", "launched"]


def test_given_a_restart_before_the_release_is_through_then_the_new_version_waits_for_nothing_of_it() -> None:
    """Review finding: none of its jobs was admitted until the release was tried again."""
    bench = a_bench()
    unreleased(bench, "none")
    update = an_apply(a_spec(trigger=ONE_EACH, overlap="allow", priority="high"), "update")
    assert answer(bench, update, run=SECOND)["status"] == "accepted"
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    assert len(bench.started) == 1
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    receipt = bench.receipts()["resume-nightly"]
    assert (receipt["discarded"]["jobs"], receipt["backlog"]) == ([], 0)
    ended = sorted(entry[0] for entry in bench.ledger())
    assert ended == ["cancelled/superseded", "cancelled/superseded", "launched"]


@pytest.mark.parametrize("mode", ["hold", "freeze", "drain"])
@pytest.mark.parametrize("crashes", [False, True])
def test_given_another_suspend_and_a_resume_of_all_before_the_release_is_through_then_what_was_cut_ends_all_the_same(
    mode: str, crashes: bool
) -> None:
    """Review finding: the cut was forgotten, and its jobs started."""
    bench = a_bench()
    parked, made_since = unreleased(bench, "none")
    answer(bench, a_request("suspend", mode=mode, request_id="again"), run=SECOND)
    if crashes:
        bench.crash()
        bench.now -= 400
        bench.run(SECOND)
    assert bench.started == []
    bench.request(a_request("resume", request_id="at last", **({"backlog": "all"} if mode == "hold" else {})))
    bench.run(SECOND)
    assert bench.started == []
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert [each.run_id for each in bench.started] == [made_since]
    assert sorted(entry[0] for entry in bench.ledger()) == ["cancelled/suspended", "launched"]
    receipts = [bench.receipts()[each] for each in ("resume-nightly", "at last")]
    assert [job for receipt in receipts for job in receipt["discarded"]["jobs"]] == [parked]
    assert receipts[1]["backlog"] == (0 if mode == "drain" else 1)
    assert (state(bench).shedding, state(bench).cut_through) == (None, None)


@pytest.mark.parametrize("mode", ["freeze", "drain"])
def test_given_another_suspend_before_the_release_is_through_then_it_lets_go_on_what_was_not_cut(mode: str) -> None:
    bench = a_bench()
    parked, made_since = unreleased(bench, "none")
    answer(bench, a_request("suspend", mode=mode, request_id="again"), run=SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    receipt = bench.receipts()["resume-nightly"]
    assert (receipt["discarded"]["jobs"], receipt["backlog"]) == ([parked], 0)
    drained = [made_since] if mode == "drain" else []
    assert [each.run_id for each in bench.started] == drained
    assert [job.id for job in waiting(bench)] == ([] if drained else [made_since])
    assert state(bench).shedding is None


@pytest.mark.parametrize(
    ("first", "then", "started", "coalesced"),
    [
        ("none", "last", 1, 0),
        ("none", "coalesce", 1, 3),
        ("last", "coalesce", 1, 7),
        ("last", "all", 5, 0),
        ("coalesce", "all", 5, 3),
        ("last", "none", 0, 0),
    ],
)
@pytest.mark.parametrize("is_refused", [False, True])
def test_given_two_resumes_of_a_backlog_of_four_each_then_the_later_word_is_about_what_the_earlier_one_leaves(
    first: str, then: str, started: int, coalesced: int, is_refused: bool
) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger={**every("1m"), "max_fires": 8}, overlap="allow")))
    suspend(bench, "hold")
    bench.run(4 * MINUTE)
    refuse_releases(bench)
    bench.request(a_request("resume", backlog=first))
    bench.run(SECOND)
    cut = {job.id for job in waiting(bench)}
    answer(bench, a_request("suspend", mode="hold", request_id="again"), run=4 * MINUTE)
    since = {job.id for job in waiting(bench)} - cut
    assert (len(cut), len(since)) == (4, 4)
    if is_refused:
        bench.crash()
        bench.now -= 400
    else:
        bench.as_usual()
    bench.request(a_request("resume", backlog=then, request_id="at last"))
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE if is_refused else 30 * SECOND)
    assert len(bench.started) == started
    assert is_refused or bench.receipts()["at last"]["backlog"] == started
    assert first != "none" or {each.run_id for each in bench.started} <= since
    ended = [entry[0] for entry in bench.ledger()]
    assert (len(ended), sum(each.startswith("coalesced") for each in ended)) == (8, coalesced)
    covered = [row["covered"] for row in bench.rows("L#") if "covered" in row and row["disposition"] == "launched"]
    assert covered == ([coalesced + 1] if coalesced else [])


def test_given_another_hold_before_the_release_is_through_then_what_is_cut_is_merged_into_nothing_that_goes_on() -> (
    None
):
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="coalesce")))
    suspend(bench, "hold")
    bench.run(MINUTE)
    refuse_releases(bench)
    bench.request(a_request("resume", backlog="none"))
    bench.run(SECOND)
    (parked,) = waiting(bench)
    answer(bench, a_request("suspend", mode="hold", request_id="again"), run=3 * MINUTE)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS)
    (job,) = waiting(bench)
    assert (job.covered_from or 0) > parked.nominal
    assert bench.receipts()["resume-nightly"]["discarded"]["jobs"] == [parked.id]


def test_given_a_run_that_fails_before_the_release_is_through_then_it_is_tried_again() -> None:
    """The cut is about what waits: what was launched before is nothing to it."""
    bench = a_bench(Behaviour(runs_for=30 * SECOND, outcome="failed"))
    bench.request(an_apply(a_spec(trigger=ONE_EACH, overlap="allow", retry={"tries": 2})))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    suspend(bench, "hold")
    bench.event(an_event("d1"))
    bench.run(5 * SECOND)
    refuse_releases(bench)
    bench.request(a_request("resume", backlog="none"))
    bench.run(2 * MINUTE)
    assert state(bench).shedding == "none"
    assert len(bench.started) == 2


def test_given_a_suspend_that_drops_before_its_page_is_through_then_its_job_takes_up_no_event_of_behind_the_resume() -> (
    None
):
    """It did, and the event ended with it (review)."""
    bench = a_bench()
    delayed = [{"type": "delay", "after": "15m"}]
    bench.request(an_apply(a_spec(trigger=on_data(), overlap="allow", constraints=delayed)))
    bench.event(an_event("d1"))
    bench.run(SECOND)
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "end_pending",
        Invalid("too large"),
        times=100,
    )
    bench.request(a_request("suspend", mode="drop"))
    bench.run(SECOND)
    bench.request(a_request("resume"))
    bench.run(SECOND)
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + 20 * MINUTE)
    assert sorted(entry[0] for entry in bench.ledger()) == ["cancelled/suspended", "launched"]
    (run,) = bench.started
    chunks = [from_item(EvidenceChunk, item) for item in bench.rows("EC#") if item["evidence_id"] == run.run_id]
    assert [entry["partition"] for chunk in chunks for entry in json.loads(chunk.entries)] == ["d2"]


def test_given_a_release_that_is_not_through_then_what_it_has_cut_fills_no_queue() -> None:
    """A run by hand was refused for ten minutes (review)."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=ONE_EACH, overlap="queue", max_pending=2)))
    suspend(bench, "hold")
    bench.event(an_event("d1"))
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    assert len(waiting(bench)) == 2
    refuse_releases(bench)
    bench.request(a_request("resume", backlog="none"))
    bench.run(SECOND)
    assert answer(bench, a_request("trigger"), run=SECOND)["status"] == "accepted"
