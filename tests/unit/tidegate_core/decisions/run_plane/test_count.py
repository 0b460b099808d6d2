"""Events become evidence, enough of it a job: each counted row is gone in the same transaction (I3, SEMANTICS 5 and 6)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.decisions.event_ingest import ROW_EVENTS_MAX
from tidegate_core.decisions.run_plane.count import CountEvents, in_decisions
from tidegate_core.decisions.run_plane.entries import CHUNK_BYTES_MAX
from tidegate_core.decisions.run_plane.expire import ExpireEvidence
from tidegate_core.records.run_plane import Evidence, EvidenceChunk, InboxRow, Job, LedgerRow, ScheduleState, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import ACTIONS_PER_TRANSACTION_MAX
from tidegate_testkit.builders import (
    HOUR,
    NOW,
    Doc,
    a_definition,
    a_match,
    a_schedule,
    a_spec,
    all_of,
    an_inbox_row,
    on_data,
    on_run_of,
)
from tidegate_testkit.desk import Desk

REF = "flights/nightly"
BOTH = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="6h")

RUN_FACT = {
    "type": "run",
    "namespace": "flights",
    "schedule": "up",
    "run_id": "0001-" + "a" * 26,
    "attempt": 1,
    "state": "succeeded",
    "args": ["x"],
    "outputs": {"rows": 3},
    "correlation": "d7",
    "admitted_at": "2025-11-13T02:13:00Z",
}


def a_desk(trigger: Doc, **state: Any) -> Desk:
    return Desk(a_definition(a_spec(trigger=trigger)), a_schedule(**state))


def count(desk: Desk, *rows: InboxRow, now: int = NOW) -> None:
    """Lays the rows and counts them, in one decision."""
    desk.lay(*rows)
    desk.decide(CountEvents(REF, tuple(row.key(0) for row in rows)), now)


def count_all(desk: Desk, *rows: InboxRow, now: int = NOW) -> None:
    """Lays the rows and counts them as an owner does that finds them all at once."""
    desk.lay(*rows)
    for group in in_decisions((row.key(0), row) for row in rows):
        desk.decide(CountEvents(REF, group), now)


def evidence(desk: Desk) -> dict[str, tuple[int, ...]]:
    return {each.correlation: each.counts for each in desk.records(Evidence, "E#")}


def entries(desk: Desk, evidence_id: str) -> list[Doc]:
    chunks = [each for each in desk.records(EvidenceChunk, "EC#") if each.evidence_id == evidence_id]
    return [entry for chunk in chunks for entry in json.loads(chunk.entries)]


def jobs(desk: Desk) -> list[Job]:
    return desk.records(Job, "J#")


def test_given_a_matched_event_then_it_is_counted_and_its_row_is_gone() -> None:
    desk = a_desk(on_data(count=3))
    count(desk, an_inbox_row(1, a_match("d1")))
    assert evidence(desk) == {"": (1,)}
    assert desk.records(InboxRow, "I#") == []
    (opened,) = desk.records(Evidence, "E#")
    assert [entry["partition"] for entry in entries(desk, opened.id)] == ["d1"]
    assert jobs(desk) == []


def test_given_the_same_rows_again_then_nothing_is_counted() -> None:
    desk = a_desk(on_data(count=3))
    row = an_inbox_row(1, a_match("d1"))
    count(desk, row)
    assert desk.decide(CountEvents(REF, (row.key(0),))) is None
    assert evidence(desk) == {"": (1,)}


@pytest.mark.parametrize(
    ("partitions", "counts"),
    [
        pytest.param(["a", "b"], 2, id="two"),
        pytest.param(["a", "a", "a"], 1, id="one thrice"),
        pytest.param(["a", "b", "a"], 2, id="one again later"),
    ],
)
@pytest.mark.parametrize("together", [True, False], ids=["one row", "a row each"])
def test_given_the_same_data_partition_again_then_the_count_stays(
    partitions: list[str], counts: int, together: bool
) -> None:
    desk = a_desk(on_data(count=5))
    matches = [a_match(each) for each in partitions]
    if together:
        count(desk, an_inbox_row(1, *matches))
    else:
        for number, match in enumerate(matches):
            count(desk, an_inbox_row(number, match))
    assert evidence(desk) == {"": (counts,)}


def test_given_enough_then_the_job_exists_and_absorbs_what_comes_later() -> None:
    desk = a_desk(on_data(count=2))
    count(desk, an_inbox_row(1, a_match("a"), a_match("b")), now=NOW + 5)
    (job,) = jobs(desk)
    (held,) = desk.records(Evidence, "E#")
    assert (job.id, job.evidence_id, job.chunks, job.trigger) == (held.id, held.id, None, "events")
    assert (job.nominal, job.satisfied_at, job.deadline) == (NOW + 5, NOW + 5, NOW + 5 + 24 * HOUR)
    count(desk, an_inbox_row(2, a_match("c")))
    assert evidence(desk) == {"": (3,)}
    assert len(jobs(desk)) == 1


def test_given_a_seal_then_the_next_event_opens_the_next_job() -> None:
    desk = a_desk(on_data(count=1))
    count(desk, an_inbox_row(1, a_match("a")))
    first = jobs(desk)[0]
    (held,) = desk.records(Evidence, "E#")
    from tidegate_core.store.values import Delete

    desk.store.write([Delete(held.key(0))])  # As admission does.
    count(desk, an_inbox_row(2, a_match("a")))
    assert len(jobs(desk)) == 2
    assert {job.id for job in jobs(desk)} > {first.id}


@pytest.mark.parametrize(
    "match",
    [
        pytest.param(a_match("d", generation=2), id="newer generation"),
        pytest.param(a_match("d", generation=0), id="older generation"),
        pytest.param(a_match("d", incarnation="I0"), id="another incarnation"),
        pytest.param(a_match("d", dataset="other"), id="another dataset"),
    ],
)
def test_given_a_match_that_is_not_for_this_activation_then_its_row_goes_uncounted(match: Doc) -> None:
    desk = a_desk(on_data())
    count(desk, an_inbox_row(1, match))
    assert evidence(desk) == {}
    assert desk.records(InboxRow, "I#") == []


@pytest.mark.parametrize("status", ["suspended", "deleted"])
def test_given_a_schedule_that_is_not_active_then_events_are_ignored(status: str) -> None:
    desk = a_desk(on_data(), status=status)
    count(desk, an_inbox_row(1, a_match("d")))
    assert evidence(desk) == {}
    assert desk.records(InboxRow, "I#") == []


def test_given_an_event_that_says_more_than_created_then_only_created_counts() -> None:
    desk = a_desk(on_data())
    fact = {"type": "data.partition", "namespace": "flights", "dataset": "raw", "partition": "d", "kind": "deleted"}
    count(desk, an_inbox_row(1, a_match("d", fact=json.dumps(fact))))
    assert evidence(desk) == {}


# -- composites -------------------------------------------------------------------------------------------------------------


def test_given_all_of_then_each_leaf_has_its_count_and_all_have_to_hold() -> None:
    desk = a_desk(all_of(on_data("a", 2), on_data("b", 1)))
    count(desk, an_inbox_row(1, a_match("x", leaf=0, dataset="a"), a_match("y", leaf=1, dataset="b")))
    assert evidence(desk) == {"": (1, 1)}
    assert jobs(desk) == []
    count(desk, an_inbox_row(2, a_match("z", leaf=0, dataset="a")))
    assert len(jobs(desk)) == 1


def test_given_correlation_then_evidence_of_one_key_never_meets_anothers() -> None:
    desk = a_desk(BOTH)
    count(desk, an_inbox_row(1, a_match("d1", leaf=0, dataset="a"), a_match("d2", leaf=1, dataset="b")))
    assert evidence(desk) == {"d1": (1, 0), "d2": (0, 1)}
    assert jobs(desk) == []
    count(desk, an_inbox_row(2, a_match("d1", leaf=1, dataset="b")))
    (job,) = jobs(desk)
    assert job.correlation == "d1"
    state = desk.record(ScheduleState, keys.schedule_state(0, "flights", "nightly"))
    assert state is not None
    assert state.seals == 2


def test_given_an_upstream_run_then_the_job_takes_its_correlation_and_facts() -> None:
    desk = a_desk(on_run_of("up"))
    count(desk, an_inbox_row(1, a_match("-", fact=json.dumps(RUN_FACT))))
    (job,) = jobs(desk)
    assert job.correlation == "d7"
    assert json.loads(job.upstream or "{}")["outputs"] == {"rows": 3}


# -- time-outs ----------------------------------------------------------------------------------------------------------------


def test_given_the_first_latch_then_the_time_out_is_armed_from_its_append_time() -> None:
    desk = a_desk(BOTH)
    count(desk, an_inbox_row(1, a_match("d1", leaf=0, dataset="a", at=NOW - HOUR)), now=NOW)
    (row,) = desk.records(TimerRow, "T#")
    assert (row.at, row.kind, row.detail) == (NOW + 5 * HOUR, "E", "d1")


def test_given_satisfaction_then_the_time_out_is_gone() -> None:
    desk = a_desk(BOTH)
    count(desk, an_inbox_row(1, a_match("d1", leaf=0, dataset="a"), a_match("d1", leaf=1, dataset="b")))
    assert desk.records(TimerRow, "T#") == []
    assert jobs(desk) != []


def expire(desk: Desk, row: TimerRow | None = None) -> None:
    row = row or desk.records(TimerRow, "T#")[0]
    desk.decide(ExpireEvidence(row), row.at)


def test_given_a_time_out_then_the_evidence_is_given_up_with_a_ledger_row() -> None:
    desk = a_desk(BOTH)
    count(desk, an_inbox_row(1, a_match("d1", leaf=0, dataset="a"), a_match("d2", leaf=0, dataset="a")))
    held = {each.correlation: each.id for each in desk.records(Evidence, "E#")}
    first = next(row for row in desk.records(TimerRow, "T#") if row.detail == "d1")
    expire(desk, first)
    assert desk.ledger() == [(held["d1"], "expired", "trigger_timeout")]
    assert evidence(desk) == {"d2": (1, 0)}


def test_given_a_time_out_row_left_behind_then_it_goes_and_nothing_ends() -> None:
    desk = a_desk(BOTH)
    count(desk, an_inbox_row(1, a_match("d1", leaf=0, dataset="a")))
    (row,) = desk.records(TimerRow, "T#")
    count(desk, an_inbox_row(2, a_match("d1", leaf=1, dataset="b")))
    expire(desk, row)
    assert desk.ledger() == []
    assert len(jobs(desk)) == 1


def test_given_the_same_time_out_twice_then_one_ledger_row_is_written() -> None:
    desk = a_desk(BOTH)
    count(desk, an_inbox_row(1, a_match("d1", leaf=0, dataset="a")))
    (row,) = desk.records(TimerRow, "T#")
    expire(desk, row)
    expire(desk, row)
    assert len(desk.ledger()) == 1


# -- sizes --------------------------------------------------------------------------------------------------------------------


def test_given_more_than_a_transaction_holds_then_it_is_cut_into_decisions_by_append_time() -> None:
    desk = a_desk(BOTH)
    rows = [
        an_inbox_row(number, *(a_match(f"d{number}-{each}", dataset="a", at=NOW - number) for each in range(6)))
        for number in range(8)
    ]
    groups = in_decisions((row.key(0), row) for row in rows)
    assert len(groups) > 1
    assert [key for group in groups for key in group] == [row.key(0) for row in reversed(rows)]
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
    for group in in_decisions((row.key(0), row) for row in rows):
        transaction = desk.decide(CountEvents(REF, group), NOW + 7 * HOUR)
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


# -- deadlines --------------------------------------------------------------------------------------------------------------

PAIR = all_of(on_data("a"), on_data("b"), timeout="1h")


def a_pair_row(number: int, leaf: int, at: int, day: str = "d1") -> InboxRow:
    return an_inbox_row(number, a_match(day, leaf=leaf, dataset="ab"[leaf], at=NOW + at))


def outcome(desk: Desk) -> tuple[list[tuple[str, int, int]], list[tuple[int, tuple[int, ...]]], list[int]]:
    """What became of it: ledger by first append time, open evidence, and how many jobs wait."""
    rows = desk.records(LedgerRow, "L#")
    ledger = sorted((row.reason, row.nominal, int(row.job_id != "")) for row in rows)
    held = [(each.first_at, each.counts) for each in desk.records(Evidence, "E#")]
    return ledger, held, [len(jobs(desk))]


def test_given_two_events_further_apart_than_the_time_out_then_they_are_no_pair_though_counted_together() -> None:
    desk = a_desk(PAIR)
    count(desk, a_pair_row(1, 0, 0), a_pair_row(2, 1, 3 * HOUR), now=NOW + 3 * HOUR)
    assert jobs(desk) == []
    assert [(row.reason, row.nominal) for row in desk.records(LedgerRow, "L#")] == [("trigger_timeout", NOW)]
    (held,) = desk.records(Evidence, "E#")
    assert (held.first_at, held.counts) == (NOW + 3 * HOUR, (0, 1))
    assert [(row.kind, row.at) for row in desk.records(TimerRow, "T#") if row.kind == "E"] == [("E", NOW + 4 * HOUR)]


def test_given_rows_out_of_order_then_the_time_out_counts_from_the_earliest() -> None:
    desk = a_desk(PAIR)
    count(desk, an_inbox_row(1, a_match("y", dataset="a", at=NOW + 50), a_match("x", dataset="a", at=NOW)))
    (held,) = desk.records(Evidence, "E#")
    assert (held.first_at, held.deadline) == (NOW, NOW + HOUR)


def test_given_an_event_of_long_before_that_is_read_late_then_it_is_not_paired_with_what_waits() -> None:
    """From a topic partition that nobody had read for a while."""
    desk = a_desk(PAIR)
    count(desk, a_pair_row(1, 1, 3 * HOUR))
    (waiting,) = desk.records(Evidence, "E#")
    count(desk, a_pair_row(2, 0, 0))
    assert jobs(desk) == []
    assert [(row.reason, row.nominal) for row in desk.records(LedgerRow, "L#")] == [("trigger_timeout", NOW)]
    assert desk.records(Evidence, "E#") == [waiting]
    count(desk, a_pair_row(3, 0, 3 * HOUR + 5, "d2"))
    assert [job.evidence_id for job in jobs(desk)] == [waiting.id]


def test_given_a_whole_pair_of_long_before_then_it_is_a_job_of_its_own_beside_what_waits() -> None:
    desk = a_desk(PAIR)
    count(desk, a_pair_row(1, 1, 3 * HOUR))
    (waiting,) = desk.records(Evidence, "E#")
    count(desk, a_pair_row(2, 0, 0), a_pair_row(3, 1, 5))
    (job,) = jobs(desk)
    assert (job.chunks, job.evidence_id != waiting.id) == (1, True)
    assert [entry["at"] for entry in entries(desk, job.id)] == [NOW, NOW + 5]
    assert desk.records(Evidence, "E#") == [waiting]
    assert desk.ledger() == []


EVENTS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 300)), min_size=1, max_size=8)


@given(events=EVENTS, cuts=st.sets(st.integers(1, 7), max_size=4), correlated=st.booleans())
def test_given_events_in_order_then_any_cut_of_them_gives_the_same_ledger_evidence_and_jobs(
    events: list[tuple[int, int]], cuts: set[int], correlated: bool
) -> None:
    """Whether an owner counts them one by one, or finds them after a while, must not change what comes of them."""
    trigger = all_of(
        on_data("a"), on_data("b"), timeout="1h", **({"correlate": "data_partition"} if correlated else {})
    )
    ordered = sorted(events, key=lambda event: event[1])
    rows = [
        a_pair_row(number, leaf, minutes * 60_000, f"d{minutes % 3}") for number, (leaf, minutes) in enumerate(ordered)
    ]
    one_by_one, cut = a_desk(trigger), a_desk(trigger)
    for row in rows:
        count(one_by_one, row)
    ends = [*sorted(each for each in cuts if each < len(rows)), len(rows)]
    for start, end in zip([0, *ends], ends, strict=False):
        count(cut, *rows[start:end])
    assert outcome(cut) == outcome(one_by_one)


# -- the upstream run -----------------------------------------------------------------------------------------------------------


def a_run_row(number: int, leaf: int, run: str = "a", at: int = NOW) -> InboxRow:
    fact = {**RUN_FACT, "run_id": f"0001-{run * 26}"}
    return an_inbox_row(number, a_match("-", leaf=leaf, at=at, fact=json.dumps(fact)))


@pytest.mark.parametrize("run_first", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_given_a_run_among_the_leaves_then_the_job_names_it_whichever_came_last(
    run_first: bool, together: bool
) -> None:
    desk = a_desk(all_of(on_run_of("up"), on_data("a")))
    rows = [a_run_row(1, 0), an_inbox_row(2, a_match("d1", leaf=1, dataset="a"))]
    rows = rows if run_first else rows[::-1]
    if together:
        count(desk, *rows)
    else:
        for row in rows:
            count(desk, row)
    (job,) = jobs(desk)
    assert json.loads(job.upstream or "{}")["run_id"] == "0001-" + "a" * 26


def test_given_several_runs_of_a_leaf_then_the_latest_is_named() -> None:
    desk = a_desk(all_of(on_run_of("up"), on_data("a")))
    count(desk, a_run_row(1, 0, "b", at=NOW + 9), a_run_row(2, 0, "a", at=NOW + 3))
    count(desk, an_inbox_row(3, a_match("d1", leaf=1, dataset="a")))
    assert json.loads(jobs(desk)[0].upstream or "{}")["run_id"] == "0001-" + "b" * 26


def test_given_a_match_of_a_leaf_that_is_not_there_then_it_is_passed() -> None:
    """From an index row of a request that came to nothing."""
    desk = a_desk(on_data())
    count(desk, an_inbox_row(1, a_match("d", leaf=3), a_match("d")))
    assert len(jobs(desk)) == 1


# -- what is left -----------------------------------------------------------------------------------------------------------------


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
