"""A lost run that somebody releases, from the request on: what its end brings about, and what it leaves alone."""

from __future__ import annotations

import json
from itertools import count
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.builders import (
    MINUTE,
    RUNS,
    RUNS_DLQ,
    SECOND,
    Doc,
    a_position,
    a_request,
    a_spec,
    an_apply,
    every,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.request_bench import answer
from tests.support.harness.shard_bench import FOR_EVER, a_bench, a_lookup, states, the_run
from tidegate_core.language.requests.requests import REQUEST_TYPES
from tidegate_core.rows.effects import LookedUp, Lookup
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Put
from tidegate_core.runs.attempts import PROBE_GAP_MS
from tidegate_core.writes.start_gate import finish_run

WHY = "released by ana: its host was scrapped"


def lost(*beside: Doc, **spec: Any) -> tuple[ActorHarness, str]:
    """A schedule's run whose program was started, and whose host nobody can ask any more; other schedules beside it."""
    bench = a_bench(FOR_EVER)
    for each in beside:
        bench.request(an_apply(each))
    bench.request(an_apply(a_spec(trigger=every("10h"), **spec)))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(PROBE_GAP_MS + MINUTE)
    found = the_run(bench)
    assert found is not None
    assert found.state == "lost"
    return bench, found.id


def a_release(run_id: str, request_id: str = "it") -> Doc:
    return {
        "id": request_id,
        "type": "run.release",
        "namespace": "flights",
        "run_id": run_id,
        "actor": "ana",
        "reason": "its host was scrapped",
    }


def test_given_a_release_then_the_run_ends_as_behind_any_other_end() -> None:
    bench, run_id = lost(a_spec("after", on_run_of("nightly", "failed")))
    receipt = answer(bench, a_release(run_id), run=15 * SECOND)
    assert (receipt["status"], receipt["name"], receipt["id"]) == ("accepted", "nightly", run_id)
    assert [row["state"] for row in bench.rows("L#") if row["name"] == "nightly"] == ["failed"]
    assert bench.rows("LIM#")[0].get("holders") is None
    told = [each.document for each in bench.on(RUNS) if each.document["run_id"] == run_id]
    assert [each["state"] for each in told] == ["running", "lost", "failed"]
    assert told[-1]["reason"] == WHY
    assert bench.started[-1].context["schedule"]["name"] == "after"  # type: ignore[call-overload,index]
    assert bench.on(RUNS_DLQ) == []


def test_given_a_repeat_of_a_release_then_it_gets_the_same_answer_and_ends_nothing_more() -> None:
    bench, run_id = lost()
    first = answer(bench, a_release(run_id), run=SECOND)
    assert answer(bench, a_release(run_id), run=SECOND) == first
    assert answer(bench, a_release(run_id, "another"), run=SECOND)["status"] == "too_late"
    assert len(bench.rows("L#")) == 1


@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param({"type": "concurrency", "max": 1, "scope": "program"}, id="shared limit"),
        pytest.param(None, id="overlap queue"),
    ],
)
def test_given_a_job_that_waits_for_the_lost_runs_place_then_it_starts_once_that_is_released(
    constraint: Doc | None,
) -> None:
    bench, run_id = lost(overlap="queue", **({} if constraint is None else {"constraints": [constraint]}))
    answer(bench, a_request("trigger", request_id="next"), run=MINUTE)
    assert [order.run_id for order in bench.started] == [run_id]
    answer(bench, a_release(run_id), run=15 * SECOND)
    assert [order.run_id for order in bench.started] == [run_id, bench.receipts()["next"]["id"]]


# -- retry -------------------------------------------------------------------------------------------------------------


def test_given_tries_that_are_left_then_a_further_attempt_starts_and_the_former_driver_is_refused() -> None:
    bench, run_id = lost(retry={"tries": 1, "backoff": "1m"})
    former = the_run(bench)
    assert former is not None
    receipt = answer(bench, a_release(run_id), run=SECOND)
    assert receipt["status"] == "accepted"
    run = the_run(bench)
    assert run is not None
    failure = json.loads(run.failure or "{}")
    assert (run.attempt, run.state, failure["reason"], failure["error_class"]) == (2, "submitting", WHY, "lost")
    assert bench.rows("LIM#")[0]["holders"] == [run_id]
    bench.transact(finish_run(run_id, 1, str(former.driver), "succeeded", 0, None, None, None, bench.now, "late"))
    bench.run(2 * MINUTE)
    assert [order.attempt for order in bench.started] == [1, 2]
    assert bench.rows("L#") == []


def test_given_an_attempt_that_waits_then_a_second_release_is_rejected_with_its_state() -> None:
    bench, run_id = lost(retry={"tries": 1, "backoff": "1h"})
    answer(bench, a_release(run_id), run=SECOND)
    again = answer(bench, a_release(run_id, "again"), run=SECOND)
    assert (again["status"], again["errors"][0]["problem"]) == ("rejected", "the run is submitting")


def test_given_tries_that_are_used_up_then_the_run_has_its_dead_letter() -> None:
    bench, run_id = lost(retry={"tries": 1, "backoff": "1s"})
    answer(bench, a_release(run_id), run=5 * SECOND)
    bench.crash()
    bench.run(PROBE_GAP_MS + MINUTE)
    run = the_run(bench)
    assert run is not None
    assert (run.attempt, run.state) == (2, "lost")
    answer(bench, a_release(run_id, "again"), run=SECOND)
    assert [row["state"] for row in bench.rows("L#")] == ["failed"]
    (letter,) = bench.on(RUNS_DLQ)
    assert letter.key == run_id.encode()
    (told,) = bench.notices("retries_exhausted")
    assert (told.fields["error_class"], told.fields["why"]) == ("lost", "tries: 1 are used up")


@pytest.mark.parametrize(
    ("cancelled", "errors", "end"),
    [
        pytest.param(False, ["oom"], "failed", id="not after this error"),
        pytest.param(True, ["lost"], "killed", id="cancelled before"),
    ],
)
def test_given_no_wish_for_a_further_attempt_then_none_follows(cancelled: bool, errors: list[str], end: str) -> None:
    bench, run_id = lost(retry={"tries": 3, "backoff": "1s", "errors": errors})
    if cancelled:
        answer(bench, {"id": "c", "type": "run.cancel", "run_id": run_id}, run=SECOND)
        assert the_run(bench) is not None
    answer(bench, a_release(run_id), run=MINUTE)
    assert [order.attempt for order in bench.started] == [1]
    assert [row["state"] for row in bench.rows("L#")] == [end]
    assert bench.on(RUNS_DLQ) == []


# -- a rolling upgrade -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_inbox", [False, True], ids=["it reads the request", "a newer node has read it"])
def test_given_an_owner_of_an_older_release_then_it_says_that_it_does_not_know_the_request(by_inbox: bool) -> None:
    bench, run_id = lost()
    with patch.dict(REQUEST_TYPES):
        del REQUEST_TYPES["run.release"]
        if by_inbox:
            body = json.dumps(a_release(run_id))
            row = InboxRow(namespace="flights", name=run_id, kind="Q", origin=a_position(99).text(), body=body)
            bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
        else:
            bench.request(a_release(run_id))
        bench.run(30 * SECOND)
    told = bench.receipts()["it"]
    assert (told["status"], told["errors"][0]["problem"]) == ("rejected", '"run.release" is unknown')
    run = the_run(bench)
    assert run is not None
    assert run.state == "lost"


# -- what comes at the same time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tries", [0, 1])
def test_given_a_look_that_finds_the_program_after_its_release_then_nothing_changes(tries: int) -> None:
    bench, run_id = lost(retry={"tries": tries, "backoff": "1h"})
    bench.end_scripts()
    bench.hold_back(a_lookup, answer_only=True)
    bench.run(20 * SECOND)
    assert bench.all_asked(Lookup)
    answer(bench, a_release(run_id), run=SECOND)
    before = bench.rows("R#"), bench.rows("L#")
    bench.release()
    bench.run(MINUTE)
    assert (bench.rows("R#"), bench.rows("L#")) == before
    assert states(bench) == ["running", "lost", *(["failed"] if tries == 0 else [])]


def test_given_a_program_that_is_found_before_the_release_is_applied_then_it_runs_on_and_the_answer_says_so() -> None:
    bench, run_id = lost()
    bench.as_usual()
    bench.run(20 * SECOND)
    receipt = answer(bench, a_release(run_id), run=SECOND)
    assert (receipt["status"], receipt["errors"][0]["problem"]) == ("rejected", "the run is running")
    assert bench.rows("LIM#")[0]["holders"] == [run_id]


@pytest.mark.parametrize("tries", [0, 1])
def test_given_an_owner_that_falls_at_any_effect_of_a_release_then_the_attempt_ends_once_and_the_answer_is_given(
    tries: int,
) -> None:
    for crash_after in count(1):
        bench, run_id = lost(retry={"tries": tries, "backoff": "1h"})
        falls_at = bench.effects_outside + crash_after
        bench.crash_after = falls_at
        bench.request(a_release(run_id))
        bench.run(MINUTE)
        if bench.effects_outside < falls_at:
            assert crash_after > 4
            break  # It was over before.
        assert bench.status_of("it") == "accepted", crash_after
        assert [row["state"] for row in bench.rows("L#")] == ["failed"] * (1 - tries), crash_after
        assert [row["attempt"] for row in bench.rows("R#") if "ended_at" not in row] == [2] * tries, crash_after
        assert bench.rows("LIM#")[0].get("holders") == ([run_id] if tries else None), crash_after
        assert ("failed" in states(bench)) == (tries == 0), crash_after


def test_given_a_release_whose_write_gets_no_answer_then_the_run_ends_once_and_the_answer_is_given() -> None:
    bench, run_id = lost()
    bench.lose_answer_of(a_commit("release_run"))
    bench.request(a_release(run_id))
    bench.run(MINUTE)
    assert bench.status_of("it") == "accepted"
    assert [row["state"] for row in bench.rows("L#")] == ["failed"]
