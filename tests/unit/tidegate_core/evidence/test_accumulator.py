"""What composites, latches, exact counts and waits become as rows (SEMANTICS 5 and 6; rows CD-064, CD-066, US-08, US-09)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import HOUR, MINUTE, NOW, SECOND, Doc, a_match, all_of, an_inbox_row, on_data
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.evidence_bench import a_desk, count, count_all, entries, evidence, jobs
from tidegate_core.evidence.expiry import ExpireEvidence
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.events.evidence_log import merged

A, B, C = on_data("a"), on_data("b"), on_data("c")


def came(number: int, leaf: int, day: str, after: int = 0, **event: Any) -> InboxRow:
    """One event of the leaf's dataset, `after` ms after NOW."""
    fact = {"type": "data.partition", "namespace": "flights", "dataset": "abc"[leaf], "partition": day, **event}
    return an_inbox_row(number, a_match(day, leaf=leaf, at=NOW + after, fact=json.dumps(fact)))


def expire(desk: DecisionHarness) -> int:
    """Lets the first deadline pass; returns when that was, after NOW."""
    row = min(desk.records(TimerRow, "T#"), key=lambda row: row.at if row.kind == "E" else NOW * 9)
    desk.decide(ExpireEvidence(row), row.at)
    return row.at - NOW


def told(desk: DecisionHarness) -> list[str]:
    return [f"{row.disposition}/{row.reason}" for row in desk.records(LedgerRow, "L#")]


def days(desk: DecisionHarness) -> list[str]:
    """What each job has in its manifest."""
    return ["".join(entry["partition"] for entry in merged(entries(desk, job.id))) for job in jobs(desk)]


# -- take --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
def test_given_exactly_n_then_the_first_n_are_sealed_and_the_surplus_is_the_nexts(together: bool) -> None:
    """SEMANTICS 5.4: 12 events with N = 5 are 2 jobs, 2 left. (Row CD-064 drops the surplus; `take: all` absorbs it.)"""
    desk = a_desk({**on_data("a", 5), "take": "exactly_n"})
    rows = [came(number, 0, f"{number:x}", number) for number in range(12)]
    if together:
        count_all(desk, *rows)
    else:
        for row in rows:
            count(desk, row)
    assert sorted(days(desk)) == ["01234", "56789"]
    assert all(job.chunks is not None for job in jobs(desk))
    assert evidence(desk) == {"": (2,)}


def test_given_exactly_n_and_max_wait_then_fewer_are_sealed_when_it_ends() -> None:
    desk = a_desk({**on_data("a", 5), "take": "exactly_n", "max_wait": "1h"})
    count(desk, came(1, 0, "x"), came(2, 0, "y", 5))
    assert expire(desk) == HOUR
    (job,) = jobs(desk)
    assert (job.chunks, job.missing) == (1, ("3 of 5 data partitions of a",))
    assert evidence(desk) == {}
    assert desk.records(TimerRow, "T#") == []


# -- waits -------------------------------------------------------------------------------------------------------------


def test_given_settle_then_it_fires_when_nothing_has_come_for_so_long() -> None:
    """Row US-09: 5 chunks in 50 s, quiet 30 s: a single run 30 s after the last."""
    desk = a_desk({**A, "settle": "30s"})
    for number in range(5):
        count(desk, came(number, 0, f"d{number}", number * 10 * SECOND))
        assert jobs(desk) == []
    assert expire(desk) == 70 * SECOND
    (job,) = jobs(desk)
    assert len(entries(desk, job.id)) == 5


def test_given_an_endless_trickle_then_max_settle_ends_it() -> None:
    """Row US-09: an endless trickle runs at the longest wait."""
    desk = a_desk({**A, "settle": "30s", "max_settle": "2m"})
    for number in range(5):
        count(desk, came(number, 0, f"d{number}", number * 25 * SECOND))
    assert expire(desk) == 2 * MINUTE
    assert len(jobs(desk)) == 1


def test_given_max_wait_then_it_fires_with_what_is_there_and_absorbs() -> None:
    desk = a_desk({**on_data("a", 3), "max_wait": "1h"})
    count(desk, came(1, 0, "x"))
    assert expire(desk) == HOUR
    assert [job.missing for job in jobs(desk)] == [("2 of 3 data partitions of a",)]
    count(desk, came(2, 0, "y", 2 * HOUR))
    assert evidence(desk) == {"": (2,)}
    assert len(jobs(desk)) == 1


# -- composites --------------------------------------------------------------------------------------------------------


def test_given_partial_then_it_fires_with_what_is_there_and_says_what_is_missing() -> None:
    """Row US-08: 2 of 3 arrive, time-out 1 h: a run at 1 h that is told which were missing."""
    desk = a_desk(all_of(A, B, C, timeout="1h", on_timeout="partial"))
    count(desk, came(1, 0, "x"), came(2, 1, "y", MINUTE))
    assert expire(desk) == HOUR
    (job,) = jobs(desk)
    assert job.missing == ("1 of 1 data partitions of c",)
    assert told(desk) == []


def test_given_events_read_late_that_fire_then_what_came_after_them_waits_on_with_what_is_there() -> None:
    """Seed 237: what followed on the late job was given up, 6 s after it came, with a time-out of 8 s."""
    desk = a_desk({"type": "at_least", "k": 2, "triggers": [A, on_data("b", 2), C], "timeout": "8s"})
    count(desk, came(1, 2, "x", 10 * SECOND))
    count_all(desk, came(2, 0, "y", SECOND), came(3, 2, "z", 2 * SECOND), came(4, 1, "w", 8 * SECOND))
    assert told(desk) == []
    assert sorted(days(desk)) == ["yz"]
    assert evidence(desk) == {"": (0, 1, 1)}
    assert expire(desk) == 16 * SECOND


def test_given_an_event_that_was_read_late_and_came_first_then_the_time_out_counts_from_it_and_tells_so() -> None:
    """Seed 430155."""
    desk = a_desk({**all_of(A, B, C, timeout="1h"), "type": "at_least", "k": 3})
    count(desk, came(1, 1, "x", 30 * MINUTE))
    count(desk, came(2, 0, "x"))
    assert expire(desk) == HOUR
    (row,) = desk.records(LedgerRow, "L#")
    assert (row.reason, row.nominal) == ("trigger_timeout", NOW)


def test_given_a_latch_that_expired_then_a_stale_pair_does_not_fire() -> None:
    desk = a_desk(all_of({**A, "ttl": "1h"}, B))
    count(desk, came(1, 0, "x"))
    count(desk, came(2, 1, "y", HOUR))
    assert jobs(desk) == []
    assert told(desk) == ["expired/evidence_expired"]
    assert evidence(desk) == {"": (0, 1)}
    count(desk, came(3, 0, "z", 2 * HOUR))
    assert len(jobs(desk)) == 1


def test_given_one_latch_of_several_that_expires_then_the_others_hold_and_it_is_no_manifests() -> None:
    desk = a_desk(all_of({**A, "ttl": "1h"}, B, C))
    count(desk, came(1, 0, "x"), came(2, 1, "y", MINUTE))
    assert expire(desk) == HOUR
    assert evidence(desk) == {"": (0, 1, 0)}
    assert told(desk) == []
    count(desk, came(3, 2, "z", 2 * HOUR), came(4, 0, "w", 2 * HOUR))
    (job,) = jobs(desk)
    assert sorted(entry["partition"] for entry in merged(entries(desk, job.id))) == ["w", "y", "z"]


def test_given_wait_then_no_time_out_ends_it_but_each_latch_does() -> None:
    desk = a_desk(all_of(A, {**B, "ttl": "3h"}, timeout="1h", on_timeout="wait"))
    count(desk, came(1, 1, "y"))
    assert expire(desk) == 3 * HOUR
    assert (told(desk), evidence(desk)) == (["expired/evidence_expired"], {})


def test_given_any_of_then_what_is_satisfied_before_the_seal_shares_one_job() -> None:
    """SEMANTICS 6.3; row CD-066: OR is satisfied by any."""
    desk = a_desk({"type": "any_of", "triggers": [on_data("a", 2), B]})
    count(desk, came(1, 0, "x"))
    assert jobs(desk) == []
    count(desk, came(2, 1, "y"), came(3, 0, "z"))
    assert len(jobs(desk)) == 1
    assert evidence(desk) == {"": (2, 1)}


def test_given_each_then_every_branch_makes_its_own_job() -> None:
    desk = a_desk({"type": "any_of", "or_mode": "each", "triggers": [on_data("a", 2), B]})
    count(desk, came(1, 0, "x"), came(2, 1, "y"), came(3, 0, "z"))
    assert sorted(days(desk)) == ["xz", "y"]


def test_given_at_least_k_then_any_k_of_them_fire() -> None:
    desk = a_desk({"type": "at_least", "k": 2, "triggers": [A, B, C]})
    count(desk, came(1, 2, "x"), came(2, 2, "y"))
    assert jobs(desk) == []
    count(desk, came(3, 0, "z"))
    assert len(jobs(desk)) == 1


def test_given_a_window_of_a_day_then_evidence_never_crosses_midnight() -> None:
    desk = a_desk(all_of(A, B, window={"every": "day", "zone": "UTC"}))
    midnight = 86_400_000 - NOW % 86_400_000
    count(desk, came(1, 0, "x", midnight - 1))
    count(desk, came(2, 1, "y", midnight))
    assert jobs(desk) == []
    assert expire(desk) == midnight
    assert told(desk) == ["expired/trigger_timeout"]
    count(desk, came(3, 0, "z", midnight + HOUR))
    assert len(jobs(desk)) == 1


# -- kinds -------------------------------------------------------------------------------------------------------------

SIZED: Doc = {
    "type": "data_size",
    "dataset": "a",
    "bytes": 100,
    "kinds": ["created", "appended", "replaced", "deleted"],
}


def test_given_sizes_then_what_was_replaced_or_deleted_is_not_summed() -> None:
    desk = a_desk(SIZED)
    count(desk, came(1, 0, "x", 1, bytes=60), came(2, 0, "x", 2, bytes=30, kind="appended", id="e2"))
    assert evidence(desk) == {"": (90,)}
    count(desk, came(3, 0, "x", 3, bytes=50, kind="replaced"))
    assert evidence(desk) == {"": (50,)}
    count(desk, came(4, 0, "y", 4, bytes=40), came(5, 0, "x", 5, kind="deleted"))
    assert evidence(desk) == {"": (40,)}
    assert jobs(desk) == []
    count(desk, came(6, 0, "z", 6, bytes=60))
    assert len(jobs(desk)) == 1


def test_given_all_taken_back_then_nothing_is_left_open() -> None:
    desk = a_desk(SIZED)
    count(desk, came(1, 0, "x", 1, bytes=60))
    count(desk, came(2, 0, "x", 2, kind="deleted"), came(3, 0, "y", 3, kind="deleted"))
    assert (evidence(desk), told(desk), jobs(desk)) == ({}, [], [])
    assert [row.kind for row in desk.records(TimerRow, "T#")] == ["C"]


def test_given_an_id_that_is_used_for_two_data_partitions_then_it_counts_for_the_later_one_alone() -> None:
    """Ids are remembered for a day. Both were taken back at the second `deleted`, and the row's other events never counted."""
    desk = a_desk({**on_data("a", 9), "unit": "events", "kinds": ["created", "deleted"]})
    count(desk, came(1, 0, "p1", id="e-1"), came(2, 0, "p2", 25 * HOUR, id="e-1"), came(3, 0, "q", 25 * HOUR, id="e-2"))
    count(desk, came(4, 0, "p1", 26 * HOUR, id="e-3", kind="deleted"))
    assert evidence(desk) == {"": (2,)}
    count(desk, came(5, 0, "p2", 26 * HOUR, id="e-4", kind="deleted"), came(6, 0, "r", 26 * HOUR, id="e-5"))
    assert evidence(desk) == {"": (2,)}
    (held,) = desk.records(Evidence, "E#")
    assert [entry["partition"] for entry in merged(entries(desk, held.id))] == ["q", "r"]


# -- the same, in any cut ----------------------------------------------------------------------------------------------

TRIGGERS: dict[str, Doc] = {
    "all_of": all_of({**A, "ttl": "1h"}, B, C, timeout="3h"),
    "partial": all_of(A, B, C, timeout="1h", on_timeout="partial"),
    "at_least": {"type": "at_least", "k": 2, "triggers": [{**A, "ttl": "30m"}, B, C], "on_timeout": "wait"},
    "nested": all_of({"type": "any_of", "triggers": [A, on_data("b", 2)]}, {**C, "ttl": "40m"}, timeout="2h"),
    "each": {"type": "any_of", "or_mode": "each", "triggers": [on_data("a", 2), B, C]},
    "window": all_of(A, B, C, window={"every": "day", "zone": "Asia/Kolkata"}),
}


@given(
    kind=st.sampled_from(sorted(TRIGGERS)),
    events=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 400)), min_size=1, max_size=9),
    cuts=st.sets(st.integers(1, 8), max_size=4),
)
def test_given_events_in_order_then_any_cut_of_them_gives_the_same(
    kind: str, events: list[tuple[int, int]], cuts: set[int]
) -> None:
    """Whether an owner counts them one by one, or finds them after a while, must not change what comes of them."""
    ordered = sorted(events, key=lambda event: event[1])
    rows = [came(n, leaf, f"d{n}", minutes * MINUTE) for n, (leaf, minutes) in enumerate(ordered)]
    one_by_one, cut = a_desk(TRIGGERS[kind]), a_desk(TRIGGERS[kind])
    for row in rows:
        count(one_by_one, row)
    ends = [*sorted(each for each in cuts if each < len(rows)), len(rows)]
    for start, end in zip([0, *ends], ends, strict=False):
        count(cut, *rows[start:end])
    assert outcome(cut) == outcome(one_by_one)


def outcome(desk: DecisionHarness) -> tuple[object, ...]:
    """Ledger, open evidence, manifests and deadlines."""
    return (
        sorted((row.reason, row.nominal) for row in desk.records(LedgerRow, "L#")),
        sorted((each.correlation, each.counts, each.deadline or 0) for each in desk.records(Evidence, "E#")),
        sorted(days(desk)),
        sorted((row.kind, row.at) for row in desk.records(TimerRow, "T#") if row.kind == "E"),
    )
