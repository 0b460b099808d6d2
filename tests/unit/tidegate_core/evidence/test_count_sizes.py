"""However much is counted at once: transactions and chunks stay below the store's limits, and no entry is lost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import HOUR, NOW, Doc, a_match, all_of, an_inbox_row, on_data
from tests.support.harness.evidence_bench import BOTH, REF, a_desk, count, count_all, entries, evidence
from tidegate_core.evidence.inbox_batches import batch_decisions
from tidegate_core.ingest.event_ingest import ROW_EVENTS_MAX
from tidegate_core.rows.evidence import EvidenceChunk
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.store_operations import ACTIONS_PER_TRANSACTION_MAX
from tidegate_core.shard.events.evidence_log import CHUNK_BYTES_MAX

# -- sizes -------------------------------------------------------------------------------------------------------------


def test_given_more_than_a_transaction_holds_then_it_is_cut_into_decisions_by_append_time() -> None:
    desk = a_desk(BOTH)
    rows = [
        an_inbox_row(number, *(a_match(f"d{number}-{each}", dataset="a", at=NOW - number) for each in range(6)))
        for number in range(8)
    ]
    decisions = batch_decisions(REF, ((row.key(0), row) for row in rows))
    assert len(decisions) > 1
    assert [key for each in decisions for key in each.rows] == [row.key(0) for row in reversed(rows)]
    count_all(desk, *rows)
    assert desk.records(InboxRow, "I#") == []
    assert len(evidence(desk)) == 48


@pytest.mark.parametrize("trigger", [on_data("a", 1_000), BOTH], ids=["single", "correlated"])
@pytest.mark.parametrize("events_per_row", [1, ROW_EVENTS_MAX])
@pytest.mark.parametrize("late", [False, True], ids=["timely", "each behind a time-out"])
def test_given_full_inboxes_then_no_transaction_exceeds_the_stores_limits(
    trigger: Doc, events_per_row: int, late: bool
) -> None:
    desk = a_desk(trigger)
    long = "x" * 200
    rows = [
        an_inbox_row(number, *(a_match(f"{long}{number}-{each}", dataset="a") for each in range(events_per_row)))
        for number in range(20)
    ]
    if late:
        count_all(desk, *rows)
        rows = [
            replace(row, origin=f"later.{row.origin}", body=row.body.replace(str(NOW), str(NOW + 7 * HOUR)))
            for row in rows
        ]
    desk.lay(*rows)
    for decision in batch_decisions(REF, ((row.key(0), row) for row in rows)):
        transaction = desk.decide(decision, NOW + 7 * HOUR)
        assert transaction is not None
        assert desk.refused == []
        assert len(transaction.actions) <= ACTIONS_PER_TRANSACTION_MAX
    assert desk.records(InboxRow, "I#") == []
    assert all(len(chunk.entries) <= 64_000 for chunk in desk.records(EvidenceChunk, "EC#"))
    assert CHUNK_BYTES_MAX < 64_000


def test_given_large_entries_then_chunks_stay_below_their_limit_and_none_is_lost() -> None:
    desk = a_desk(on_data("a", 100_000))
    version = "v" * 1_000
    fact = {"type": "data.partition", "namespace": "flights", "dataset": "a", "version": version}
    facts = [json.dumps({**fact, "partition": f"d{number}"}) for number in range(150)]
    count(desk, an_inbox_row(1, *(a_match("-", dataset="a", fact=each) for each in facts)))
    chunks = desk.records(EvidenceChunk, "EC#")
    assert len(chunks) > 1
    assert all(len(chunk.entries.encode()) <= 64_000 for chunk in chunks)
    assert len(entries(desk, chunks[0].evidence_id)) == 150
    assert evidence(desk) == {"": (150,)}


@given(
    rows=st.lists(
        st.lists(st.tuples(st.sampled_from(["d1", "d2", "d3"]), st.integers(0, 1)), min_size=1, max_size=4), max_size=6
    ),
    together=st.booleans(),
)
def test_given_any_rows_then_counts_are_the_distinct_entries_however_they_are_cut(
    rows: list[list[tuple[str, int]]], together: bool
) -> None:
    desk = a_desk(all_of(on_data("a", 50), on_data("b", 50)))
    made = [
        an_inbox_row(number, *(a_match(day, leaf=leaf, dataset="ab"[leaf]) for day, leaf in row))
        for number, row in enumerate(rows)
    ]
    if together:
        count_all(desk, *made)
    else:
        for row in made:
            count_all(desk, row)
    distinct = {each for row in rows for each in row}
    counts = tuple(len([day for day, leaf in distinct if leaf == wanted]) for wanted in (0, 1))
    assert evidence(desk) == ({"": counts} if rows else {})


# -- what is left ------------------------------------------------------------------------------------------------------


def test_given_evidence_then_its_chunks_have_no_time_to_live() -> None:
    desk = a_desk(on_data(count=3))
    count(desk, an_inbox_row(1, a_match("d1")))
    assert [row for row in desk.store.items() if str(row["sk"]).startswith("EC#") and "expires_at" in row] == []


@pytest.mark.parametrize("text", ["x", "é", "日", "\U0001f600"])
def test_given_entries_in_any_script_then_a_chunk_is_bounded_in_bytes(text: str) -> None:
    desk = a_desk(on_data("a", 100_000))
    fact = {"type": "data.partition", "namespace": "flights", "dataset": "a", "version": text * 250}
    facts = [json.dumps({**fact, "partition": f"d{number}"}, ensure_ascii=False) for number in range(120)]
    count(desk, an_inbox_row(1, *(a_match("-", dataset="a", fact=each) for each in facts)))
    chunks = desk.records(EvidenceChunk, "EC#")
    assert all(len(chunk.entries.encode()) <= 64_000 for chunk in chunks)
    assert len(entries(desk, chunks[0].evidence_id)) == 120
