"""Time-outs of evidence: armed by the first event, and the same outcome however late or in how many cuts it is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import HOUR, NOW, a_match, all_of, an_inbox_row, on_data
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.evidence_bench import BOTH, a_desk, count, entries, evidence, jobs
from tidegate_core.evidence.expiry import ExpireEvidence
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.trigger_rows import TimerRow

# -- time-outs ---------------------------------------------------------------------------------------------------------


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


def expire(desk: DecisionHarness, row: TimerRow | None = None) -> None:
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


# -- deadlines ---------------------------------------------------------------------------------------------------------

PAIR = all_of(on_data("a"), on_data("b"), timeout="1h")


def a_pair_row(number: int, leaf: int, at: int, day: str = "d1") -> InboxRow:
    return an_inbox_row(number, a_match(day, leaf=leaf, dataset="ab"[leaf], at=NOW + at))


def outcome(desk: DecisionHarness) -> tuple[list[tuple[str, int, int]], list[tuple[int, tuple[int, ...]]], list[int]]:
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
