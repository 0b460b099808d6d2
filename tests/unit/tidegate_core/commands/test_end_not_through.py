"""What comes before the pages that end what was counted are through: the store has refused one, and it is tried again after ten minutes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, a_request, a_spec, all_of, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.request_bench import answer
from tests.support.harness.suspend_bench import a_bench
from tidegate_core.ownership.quarantine import TRY_AGAIN_MS
from tidegate_core.rows.effects import Commit, Invalid
from tidegate_core.rows.evidence import Evidence, EvidenceChunk
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.store_operations import Key, Put

THREE = on_data(count=3)
ENDS: dict[str, list[Any]] = {
    "drop": [a_request("suspend", mode="drop"), a_request("resume")],
    "restart": [an_apply(a_spec(trigger=THREE, overlap="allow"), "update")],
    "finish_old": [an_apply(a_spec(trigger=THREE, overlap="allow"), "update", on_update="finish_old")],
    "delete": [a_request("delete"), an_apply(a_spec(trigger=THREE), "again")],
}
"""Requests that end what was counted, each with the one behind it by which events count again."""
REASONS = {
    "drop": "cancelled/suspended",
    "restart": "cancelled/superseded",
    "finish_old": "cancelled/superseded",
    "delete": "cancelled/schedule_deleted",
}


def counted(*partitions: str, trigger: dict[str, Any] | None = None) -> ActorHarness:
    """A schedule whose evidence waits for more, in a store that takes no page which ends something."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=trigger or THREE)))
    for partition in partitions:
        bench.event(an_event(partition))
    bench.run(SECOND)
    assert len(bench.rows("E#")) == 1
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "end_pending",
        Invalid("too large"),
        times=100,
    )
    return bench


def ask(bench: ActorHarness, requests: list[Any]) -> None:
    for each in requests:
        bench.request(each)
        bench.run(SECOND)


def ended(bench: ActorHarness) -> list[tuple[str, str]]:
    rows = [from_item(LedgerRow, row) for row in bench.rows("L#")]
    return [(f"{row.disposition}/{row.reason}", row.job_id) for row in rows]


def written_by_an_older_release(bench: ActorHarness) -> None:
    (row,) = bench.rows("E#")
    row = {name: value for name, value in row.items() if name != "generation"}
    bench.store.write([Put(Key(str(row["pk"]), str(row["sk"])), row)])
    bench.crash()


def partitions_of(bench: ActorHarness, evidence_id: str) -> list[str]:
    chunks = [from_item(EvidenceChunk, item) for item in bench.rows("EC#") if item["evidence_id"] == evidence_id]
    return [entry["partition"] for chunk in chunks for entry in json.loads(chunk.entries)]


@pytest.mark.parametrize("ends", list(ENDS))
@pytest.mark.parametrize("crashes", [False, True])
def test_given_evidence_of_before_then_what_comes_behind_the_end_counts_by_itself(ends: str, crashes: bool) -> None:
    """I7 (review): behind a drop and a resume what had been dropped counted on; a restart's was overwritten, and its chunks stayed for ever."""
    bench = counted("d1", "d2")
    (old,) = (from_item(Evidence, row) for row in bench.rows("E#"))
    ask(bench, ENDS[ends])
    if crashes:
        bench.crash()
        bench.run(SECOND)
    bench.event(an_event("d3"))
    bench.run(5 * SECOND)
    assert bench.started == []
    assert ended(bench) == [(REASONS[ends], old.id)]
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert ended(bench) == [(REASONS[ends], old.id)]
    for partition in ("d4", "d5"):
        bench.event(an_event(partition))
    bench.run(5 * SECOND)
    (run,) = bench.started
    assert partitions_of(bench, run.run_id) == ["d3", "d4", "d5"]
    assert old.id in {row["ref"] for row in bench.rows("T#") if row["kind"] == "C"}


@pytest.mark.parametrize("mode", ["drop", None])
def test_given_another_suspend_before_the_page_of_a_drop_is_through_then_it_ends_what_was_dropped_all_the_same(
    mode: str | None,
) -> None:
    """Review: the mode by which the page went was that of the suspend which had come since; so it ended nothing, and nobody else did."""
    bench = counted("d1", "d2")
    again = a_request("suspend", mode="hold", request_id="again")
    dropped = a_request("suspend") if mode is None else a_request("suspend", mode=mode)
    ask(bench, [dropped, a_request("resume"), again])
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert bench.receipts()["suspend-nightly"]["discarded"]["evidence"] == {"": 2}
    assert bench.rows("E#") == []


@pytest.mark.parametrize("mode", ["hold", "freeze"])
def test_given_a_suspend_whose_mode_is_the_definitions_then_it_parks_what_waits(mode: str) -> None:
    """It is looked for what is of before first; nothing is."""
    bench = a_bench()
    delayed = [{"type": "delay", "after": "1m"}]
    bench.request(an_apply(a_spec(trigger=on_data(), constraints=delayed, suspend_mode=mode)))
    bench.event(an_event("d1"))
    bench.run(SECOND)
    assert answer(bench, a_request("suspend"), run=SECOND)["status"] == "accepted"
    bench.run(10 * MINUTE)
    assert (bench.started, len(bench.rows("J#"))) == ([], 1)
    bench.request(a_request("resume"))
    bench.run(2 * MINUTE)
    assert len(bench.started) == 1


def test_given_nothing_comes_before_the_page_is_through_then_the_answer_lists_what_it_has_ended() -> None:
    bench = counted("d1", "d2")
    ask(bench, ENDS["drop"])
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert bench.receipts()["suspend-nightly"]["discarded"]["evidence"] == {"": 2}
    assert (bench.rows("E#"), bench.ledger()) == ([], [])


@pytest.mark.parametrize("mode", ["hold", "freeze"])
def test_given_a_suspend_that_keeps_it_then_evidence_of_before_counts_on(mode: str) -> None:
    bench = counted("d1", "d2")
    ask(bench, [a_request("suspend", mode=mode), a_request("resume")])
    bench.event(an_event("d3"))
    bench.run(5 * SECOND)
    (run,) = bench.started
    assert partitions_of(bench, run.run_id) == ["d1", "d2", "d3"]


def test_given_evidence_of_before_whose_time_is_over_then_it_does_not_fire_behind_the_resume() -> None:
    """I7: it would start with what was dropped."""
    trigger = all_of(on_data(), on_data("b"), timeout="5m", on_timeout="partial")
    bench = counted("d1", trigger=trigger)
    ask(bench, [a_request("suspend", mode="drop"), a_request("resume")])
    bench.run(6 * MINUTE)
    assert bench.started == []
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert (bench.started, bench.rows("E#")) == ([], [])
    assert list(bench.receipts()["suspend-nightly"]["discarded"]["evidence"].values()) == [1]


def test_given_evidence_that_an_older_release_has_written_then_it_counts_on() -> None:
    """It names no generation: nobody can tell whether a page is still to end it."""
    bench = counted("d1", "d2")
    written_by_an_older_release(bench)
    bench.event(an_event("d3"))
    bench.run(5 * SECOND)
    assert len(bench.started) == 1


def test_given_evidence_that_an_older_release_has_written_then_it_names_a_generation_once_it_is_counted_for() -> None:
    bench = counted("d1")
    written_by_an_older_release(bench)
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    ask(bench, [a_request("suspend", mode="drop"), a_request("resume")])
    bench.event(an_event("d3"))
    bench.run(5 * SECOND)
    assert bench.started == []
