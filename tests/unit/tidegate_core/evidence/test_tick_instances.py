"""`driver: time`: each tick opens an instance of its own, with its own evidence and its own time-out (SEMANTICS 6.5, 6.6)."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, NOW, a_match, all_of, an_inbox_row, every, on_data
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.evidence_bench import REF, count, entries, evidence, jobs
from tests.support.harness.tick_bench import FIRST, a_ticking_desk, state_of, tick
from tidegate_core.evidence.expiry import ExpireEvidence
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.evidence.tick_cursor import GROUPS_OF_TICKS_MAX
from tidegate_core.evidence.tick_instances import OPEN_MAX, RANGES_BESIDE
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.evidence import EvidenceChunk
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.timer_rows import NEXT_TICK
from tidegate_core.writes.read_cache import RANGES_MAX

HOURLY = {**every("1h"), "driver": "time"}
ONE = all_of(HOURLY, on_data("a"))
BOTH = all_of(HOURLY, on_data("a"), on_data("b"), timeout="6h")


def data(number: int, at: int, leaf: int = 1) -> InboxRow:
    return an_inbox_row(number, a_match(f"d{number}", leaf=leaf, dataset=" ab"[leaf], at=at))


def told(desk: DecisionHarness, number: int = 0) -> list[str]:
    """Returns what the n-th job was made of, by their nominals."""
    job = sorted(jobs(desk), key=lambda job: job.nominal)[number]
    return [str(entry.get("partition", "tick")) for entry in entries(desk, job.id)]


def deadlines(desk: DecisionHarness) -> list[TimerRow]:
    rows = desk.records(TimerRow, "T#")
    return sorted((row for row in rows if row.kind == "E" and not row.ref.endswith(NEXT_TICK)), key=lambda row: row.at)


def hours(*places: int) -> list[str]:
    return [format_instant(FIRST + place * HOUR) for place in places]


def test_given_ticks_without_data_then_each_opens_an_instance_of_its_own() -> None:
    desk = a_ticking_desk(ONE)
    for _ in range(3):
        tick(desk)
    assert evidence(desk) == dict.fromkeys(hours(0, 1, 2), (1, 0))
    assert [row.at for row in deadlines(desk)] == [FIRST + (24 + place) * HOUR for place in range(3)]


def test_given_one_event_then_it_is_the_oldest_instances_and_the_others_go_on_waiting() -> None:
    """I3: an event counts once."""
    desk = a_ticking_desk(ONE)
    tick(desk)
    tick(desk)
    late = FIRST + HOUR + MINUTE
    count(desk, data(1, late), now=late)
    (job,) = jobs(desk)
    assert (job.nominal, job.satisfied_at, job.correlation) == (FIRST, late, None)
    assert told(desk) == ["tick", "d1"]
    assert list(evidence(desk)) == hours(1)


def test_given_what_the_oldest_has_already_then_the_next_one_takes_it() -> None:
    """Tomorrow's half may come before today's other half; each day meets its own."""
    desk = a_ticking_desk(BOTH)
    tick(desk)
    tick(desk)
    at = FIRST + HOUR + MINUTE
    count(desk, data(1, at), data(2, at + 1), data(3, at + 2, leaf=2), now=at + 2)
    assert told(desk) == ["tick", "d1", "d3"]
    assert evidence(desk) == {hours(1)[0]: (1, 1, 0)}
    count(desk, data(4, at + 3, leaf=2), now=at + 3)
    assert told(desk, 1) == ["tick", "d2", "d4"]


def test_given_what_nothing_lacks_then_it_waits_and_all_of_it_is_the_next_ticks() -> None:
    desk = a_ticking_desk(ONE)
    count(desk, data(1, NOW), data(2, NOW + 1), now=NOW + 1)
    assert evidence(desk) == {"": (0, 2)}
    tick(desk)
    (job,) = jobs(desk)
    assert (job.nominal, told(desk)) == (FIRST, ["d1", "d2", "tick"])
    assert evidence(desk) == {}
    tick(desk)
    assert evidence(desk) == {hours(1)[0]: (1, 0)}


def test_given_what_waits_for_longer_than_its_ttl_then_no_tick_takes_it() -> None:
    desk = a_ticking_desk(all_of(HOURLY, {**on_data("a"), "ttl": "10m"}))
    count(desk, data(1, FIRST - 11 * MINUTE), now=FIRST - 11 * MINUTE)
    tick(desk)
    assert (evidence(desk), jobs(desk)) == ({hours(0)[0]: (1, 0)}, [])
    (row,) = desk.records(LedgerRow, "L#")
    assert row.reason == "evidence_expired"


def test_given_the_time_out_then_it_counts_from_the_tick_and_ends_one_instance() -> None:
    """6.6: from the tick, whenever the data came."""
    desk = a_ticking_desk(BOTH)
    count(desk, data(1, FIRST - MINUTE), now=FIRST - MINUTE)
    tick(desk)
    tick(desk)
    first, second = deadlines(desk)
    assert (first.at, second.at) == (FIRST + 6 * HOUR, FIRST + 7 * HOUR)
    desk.decide(ExpireEvidence(first), first.at)
    (row,) = desk.records(LedgerRow, "L#")
    assert (row.disposition, row.reason, row.nominal) == ("expired", "trigger_timeout", FIRST)
    assert row.detail == "1 of 1 data partitions of b"
    assert hours(0)[0] not in evidence(desk)
    assert hours(1)[0] in evidence(desk)


def test_given_partial_then_the_time_out_fires_with_what_is_there() -> None:
    desk = a_ticking_desk({**BOTH, "on_timeout": "partial"})
    tick(desk)
    count(desk, data(1, FIRST + MINUTE), now=FIRST + MINUTE)
    (row,) = deadlines(desk)
    desk.decide(ExpireEvidence(row), row.at)
    job = min(jobs(desk), key=lambda job: job.nominal)
    assert (job.nominal, job.missing) == (FIRST, ("1 of 1 data partitions of b",))


def test_given_data_after_an_instances_time_out_then_it_does_not_take_it_though_nobody_has_ended_it() -> None:
    """Downtime does not change what meets."""
    desk = a_ticking_desk(all_of(HOURLY, on_data("a"), timeout="90m"))
    tick(desk)
    late = FIRST + 95 * MINUTE
    count(desk, data(1, late), now=late)
    (job,) = jobs(desk)
    assert (job.nominal, told(desk)) == (FIRST + HOUR, ["tick", "d1"])
    (row,) = deadlines(desk)
    desk.decide(ExpireEvidence(row), late)
    assert [row.nominal for row in desk.records(LedgerRow, "L#")] == [FIRST]


def test_given_wait_then_an_instance_waits_without_an_end() -> None:
    desk = a_ticking_desk({**ONE, "on_timeout": "wait"})
    tick(desk)
    assert deadlines(desk) == []


def test_given_the_same_data_partition_again_then_it_replaces_and_counts_for_no_other_instance() -> None:
    desk = a_ticking_desk(BOTH)
    tick(desk)
    tick(desk)
    at = FIRST + HOUR + MINUTE
    again = an_inbox_row(2, a_match("d1", leaf=1, dataset="a", at=at + 1))
    count(desk, data(1, at), again, now=at + 1)
    assert evidence(desk) == {hours(0)[0]: (1, 1, 0), hours(1)[0]: (1, 0, 0)}


def test_given_more_open_instances_than_may_be_then_a_tick_opens_none_and_the_ledger_says_so() -> None:
    desk = a_ticking_desk({**ONE, "timeout": "30d"})
    for _ in range(OPEN_MAX + 1):
        tick(desk)
    assert sorted(evidence(desk)) == hours(*range(OPEN_MAX))
    (row,) = desk.records(LedgerRow, "L#")
    assert (row.disposition, row.reason, row.nominal) == ("skipped", "open_instances", FIRST + OPEN_MAX * HOUR)
    assert state_of(desk).next_tick == FIRST + (OPEN_MAX + 1) * HOUR


@pytest.mark.parametrize("is_late", [False, True])
def test_given_as_many_open_instances_as_may_be_then_what_none_lacks_is_the_next_ticks_however_late_it_is_read(
    is_late: bool,
) -> None:
    """Seed 20041210: read behind the tick that it would have waited for, it was nobody's (SEMANTICS 6.2)."""
    desk = a_ticking_desk({**BOTH, "timeout": f"{OPEN_MAX}h"})
    for place in range(OPEN_MAX):
        tick(desk)
        at = FIRST + place * HOUR + MINUTE
        count(desk, data(place, at), now=at)
    assert evidence(desk) == dict.fromkeys(hours(*range(OPEN_MAX)), (1, 1, 0))
    at = FIRST + (OPEN_MAX - 1) * HOUR + 30 * MINUTE
    if is_late:
        tick(desk)
    count(desk, data(OPEN_MAX, at), now=at)
    if not is_late:
        tick(desk)
    assert evidence(desk)[hours(OPEN_MAX)[0]] == (1, 1, 0)
    assert "" not in evidence(desk)


def test_given_as_many_open_instances_as_may_be_then_the_view_holds_all_that_one_decision_reads() -> None:
    """Else what it reads next pushes out what it read before, and it never ends."""
    assert OPEN_MAX + 1 + RANGES_BESIDE < RANGES_MAX


def test_given_data_behind_more_ticks_than_one_decision_takes_then_its_row_stays_until_they_are_taken() -> None:
    """Else what came for different instants of an outage would meet in one."""
    desk = a_ticking_desk(ONE)
    late = FIRST + (GROUPS_OF_TICKS_MAX + 1) * HOUR + MINUTE
    row = an_inbox_row(1, *(a_match(f"d{at}", leaf=1, dataset="a", at=at) for at in (NOW, late)))
    desk.lay(row)
    desk.decide(MatchEvents(REF, (row.key(0),)), late)
    assert len(evidence(desk)) == GROUPS_OF_TICKS_MAX - 1
    assert state_of(desk).next_tick == FIRST + GROUPS_OF_TICKS_MAX * HOUR
    assert told(desk) == [f"d{NOW}", "tick"]
    (left,) = desk.records(InboxRow, "I#")
    assert f"d{NOW}" not in left.body
    desk.decide(MatchEvents(REF, (left.key(0),)), late)
    assert [job.nominal for job in jobs(desk)] == [FIRST, FIRST + HOUR]
    assert desk.records(InboxRow, "I#") == []


def test_given_ticks_of_an_outage_then_what_their_instances_need_is_read_at_once() -> None:
    """Seed 20000085: one by one, hours of ticks held a shard up for minutes."""
    reads = []
    for ticks in (1, GROUPS_OF_TICKS_MAX):
        desk = a_ticking_desk(ONE)
        tick(desk, FIRST + (ticks - 1) * HOUR)
        assert len(evidence(desk)) == ticks
        reads.append(desk.reads)
    assert reads[0] == reads[1]


def test_given_a_job_then_its_entries_are_its_own() -> None:
    desk = a_ticking_desk(ONE)
    count(desk, data(1, NOW), now=NOW)
    tick(desk)
    (job,) = jobs(desk)
    chunks = [each for each in desk.records(EvidenceChunk, "EC#") if each.evidence_id == job.id]
    assert job.chunks == len(chunks) == 2
    assert deadlines(desk) == []


def test_given_what_waits_for_a_tick_then_nothing_that_is_read_late_makes_it_older() -> None:
    """Seed 20706011: a tick that had passed would have taken the late one; by its time all that waited was given up before the next."""
    desk = a_ticking_desk(all_of(HOURLY, on_data("a"), timeout="90m"))
    count(desk, data(1, FIRST - MINUTE), now=FIRST - MINUTE)
    tick(desk)
    assert len(jobs(desk)) == 1
    at = FIRST + 50 * MINUTE
    count(desk, data(2, at), now=at)
    count(desk, data(3, FIRST - 35 * MINUTE), now=at + MINUTE)
    tick(desk)
    assert "d2" in told(desk, 1)
