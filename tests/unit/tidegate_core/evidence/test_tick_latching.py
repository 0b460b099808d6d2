"""Time leaves of composites in rows: a tick latches once, in order with the events, whatever was late (SEMANTICS 6.5)."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import HOUR, MINUTE, NOW, a_match, all_of, an_inbox_row, every, on_data
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.evidence_bench import REF, a_desk, count, entries, evidence, jobs
from tests.support.harness.tick_bench import FIRST, a_ticking_desk, state_of, tick
from tidegate_core.evidence.expiry import ExpireEvidence, LatchTicks
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.evidence.tick_cursor import GROUPS_OF_TICKS_MAX
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.timer_rows import tick_row

HOURLY = every("1h")


def data(number: int, at: int, leaf: int = 1) -> InboxRow:
    return an_inbox_row(number, a_match(f"d{number}", leaf=leaf, dataset="a", at=at))


def next_rows(desk: DecisionHarness) -> list[int]:
    return [row.at for row in desk.records(TimerRow, "T#") if row == tick_row(state_of(desk))]


# -- one tick ----------------------------------------------------------------------------------------------------------


def test_given_a_tick_then_it_latches_and_the_next_one_is_armed_in_one_transaction() -> None:
    """CD-066: AND(time, partition), in any order."""
    desk = a_ticking_desk(all_of(HOURLY, on_data("a")))
    tick(desk)
    assert evidence(desk) == {"": (1, 0)}
    assert state_of(desk).next_tick == FIRST + HOUR
    assert next_rows(desk) == [FIRST + HOUR]
    count(desk, data(1, FIRST + 10 * MINUTE), now=FIRST + 10 * MINUTE)
    (job,) = jobs(desk)
    assert (job.nominal, job.satisfied_at) == (FIRST, FIRST + 10 * MINUTE)


def test_given_data_before_the_tick_then_the_tick_fires_and_the_job_is_told_of_it() -> None:
    """CD-055: what is told is the planned instant, not that of the look."""
    desk = a_ticking_desk(all_of(HOURLY, on_data("a")))
    count(desk, data(1, NOW), now=NOW)
    tick(desk, FIRST + MINUTE)
    (job,) = jobs(desk)
    assert (job.nominal, job.satisfied_at) == (FIRST, FIRST + MINUTE)
    assert entries(desk, job.id)[1] == {"leaf": 0, "key": "tick", "at": FIRST, "kind": "tick"}


def test_given_two_leaves_with_the_same_expression_then_one_instant_latches_both() -> None:
    """CD-067: CDAP makes one leaf of two with the same cron text; here they are two."""
    desk = a_ticking_desk(all_of(HOURLY, HOURLY, on_data("a")))
    tick(desk)
    assert evidence(desk) == {"": (1, 1, 0)}


def test_given_two_different_leaves_then_both_have_to_come() -> None:
    """CD-067: AND(cron A, cron B) needs both."""
    desk = a_ticking_desk(all_of(HOURLY, every("2h", phase="30m"), on_data("a"), timeout="5h"))
    count(desk, data(1, NOW, leaf=2), now=NOW)
    tick(desk)
    assert jobs(desk) == []
    while not jobs(desk):
        tick(desk)
    assert jobs(desk)[0].nominal % HOUR == HOUR // 2


def test_given_a_row_that_was_left_behind_then_nothing_latches() -> None:
    desk = a_ticking_desk(all_of(HOURLY, on_data("a")))
    row = tick_row(state_of(desk))
    assert row is not None
    for _ in range(2):
        desk.decide(LatchTicks(row, FIRST), FIRST)
    assert evidence(desk) == {"": (1, 0)}
    assert state_of(desk).next_tick == FIRST + HOUR


def test_given_a_latch_that_holds_then_a_further_tick_writes_no_evidence() -> None:
    desk = a_ticking_desk(all_of(HOURLY, on_data("a")))
    tick(desk)
    before = desk.records(Evidence, "E#")
    tick(desk)
    assert desk.records(Evidence, "E#") == before
    assert state_of(desk).next_tick == FIRST + 2 * HOUR
    assert [entry["at"] for entry in entries(desk, before[0].id)] == [FIRST]


def test_given_ticks_of_any_of_then_each_fires_and_what_waits_takes_the_next_one() -> None:
    desk = a_ticking_desk({"type": "any_of", "triggers": [HOURLY, on_data("a", 5)]})
    for _ in range(3):
        tick(desk)
    assert [job.nominal for job in jobs(desk)] == [FIRST]


def test_given_max_fires_then_it_latches_no_more() -> None:
    desk = a_ticking_desk(all_of({**HOURLY, "max_fires": 2, "ttl": "10m"}, on_data("a")))
    tick(desk)
    tick(desk)
    assert (state_of(desk).next_tick, state_of(desk).ticked) == (None, (2,))
    assert next_rows(desk) == []


# -- time-outs ---------------------------------------------------------------------------------------------------------


def test_given_nothing_else_comes_in_time_then_the_tick_expires_with_a_ledger_row() -> None:
    desk = a_ticking_desk(all_of({**HOURLY, "ttl": "20m"}, on_data("a")))
    tick(desk)
    (row,) = [each for each in desk.records(TimerRow, "T#") if each != tick_row(state_of(desk)) and each.kind == "E"]
    assert row.at == FIRST + 20 * MINUTE
    desk.decide(ExpireEvidence(row), row.at)
    (ledger,) = desk.records(LedgerRow, "L#")
    assert (ledger.reason, ledger.nominal) == ("evidence_expired", FIRST)
    assert ledger.detail == "1 of 1 data partitions of a"


def test_given_a_tick_at_the_very_end_of_the_one_before_then_that_one_ends_first_and_this_one_holds() -> None:
    desk = a_ticking_desk(all_of({**HOURLY, "ttl": "1h"}, on_data("a")))
    tick(desk)
    (row,) = [each for each in desk.records(TimerRow, "T#") if each != tick_row(state_of(desk)) and each.kind == "E"]
    assert row.at == FIRST + HOUR
    desk.decide(ExpireEvidence(row), row.at)
    assert [each.first_at for each in desk.records(Evidence, "E#")] == [FIRST + HOUR]
    assert state_of(desk).next_tick == FIRST + 2 * HOUR
    assert len(desk.ledger()) == 1


# -- late looks --------------------------------------------------------------------------------------------------------


def test_given_data_after_a_tick_that_nobody_has_taken_yet_then_the_tick_comes_before_it() -> None:
    """What was in an inbox through an outage must meet what it would have met: else the data would expire alone."""
    desk = a_ticking_desk(all_of({**HOURLY, "ttl": "50m"}, {**on_data("a"), "ttl": "20m"}))
    late = FIRST + 5 * HOUR
    count(desk, data(1, FIRST + 30 * MINUTE), data(2, FIRST + 3 * HOUR), now=late)
    assert [job.nominal for job in jobs(desk)] == [FIRST]
    assert state_of(desk).next_tick == FIRST + 4 * HOUR
    assert next_rows(desk) == [FIRST + 4 * HOUR]


def test_given_many_ticks_that_met_nothing_then_one_entry_of_the_ledger_stands_for_them() -> None:
    desk = a_ticking_desk(all_of({**HOURLY, "ttl": "50m"}, on_data("a")))
    tick(desk, FIRST + 100 * HOUR)
    (ledger,) = desk.records(LedgerRow, "L#")
    assert (ledger.reason, ledger.covered, ledger.covered_from) == ("evidence_expired", 100, FIRST)
    assert ledger.nominal == FIRST + 99 * HOUR
    assert [each.first_at for each in desk.records(Evidence, "E#")] == [FIRST + 100 * HOUR]


def test_given_ticks_of_many_days_then_a_decision_takes_those_of_some_and_the_next_one_goes_on() -> None:
    """A transaction takes 100 actions: evidence of each day has rows of its own."""
    first = NOW - NOW % (24 * HOUR) + 24 * HOUR
    desk = a_ticking_desk(all_of(every("12h"), on_data("a"), window={"every": "day", "zone": "UTC"}), next_tick=first)
    tick(desk, first + 20 * 24 * HOUR)
    assert len(evidence(desk)) == GROUPS_OF_TICKS_MAX
    assert state_of(desk).next_tick == first + GROUPS_OF_TICKS_MAX * 24 * HOUR


def a_desk_of_days() -> tuple[DecisionHarness, int]:
    """A tick in the middle of each day, more of them than one decision takes; returns the first one as well."""
    first = NOW - NOW % (24 * HOUR) + 36 * HOUR
    trigger = all_of(every("24h", phase="12h"), {**on_data("a"), "ttl": "2h"}, window={"every": "day", "zone": "UTC"})
    return a_ticking_desk(trigger, next_tick=first), first


def test_given_data_behind_more_ticks_than_fit_then_its_row_stays_until_they_are_taken() -> None:
    desk, first = a_desk_of_days()
    days = GROUPS_OF_TICKS_MAX * 24 * HOUR
    row = data(1, first + days + HOUR)
    count(desk, row, now=first + days + HOUR)
    assert (jobs(desk), desk.records(InboxRow, "I#")) == ([], [row])
    assert state_of(desk).next_tick == first + days
    desk.decide(MatchEvents(REF, (row.key(0),)), first + days + HOUR)
    assert [job.nominal for job in jobs(desk)] == [first + days]
    assert desk.records(InboxRow, "I#") == []


def test_given_a_row_with_data_on_both_sides_of_what_fits_then_only_the_later_is_left_in_it() -> None:
    desk, first = a_desk_of_days()
    later = first + GROUPS_OF_TICKS_MAX * 24 * HOUR + HOUR
    matches = [a_match(f"d{at}", leaf=1, dataset="a", at=at) for at in (first + HOUR, later)]
    count(desk, an_inbox_row(1, *matches), now=later)
    assert [job.nominal for job in jobs(desk)] == [first]
    (left,) = desk.records(InboxRow, "I#")
    assert [each["at"] for each in json.loads(left.body)] == [later]
    desk.decide(MatchEvents(REF, (left.key(0),)), later)
    assert sorted(job.nominal for job in jobs(desk)) == [first, later - HOUR]
    assert desk.records(InboxRow, "I#") == []


def test_given_a_deadline_behind_more_ticks_than_fit_then_its_row_stays_until_they_are_taken() -> None:
    desk, first = a_desk_of_days()
    deadline = first + (GROUPS_OF_TICKS_MAX + 1) * 24 * HOUR + HOUR
    count(desk, data(1, deadline - 2 * HOUR), now=first - HOUR)
    (row,) = [each for each in desk.records(TimerRow, "T#") if each.at == deadline]
    desk.decide(ExpireEvidence(row), deadline)
    assert row in desk.records(TimerRow, "T#")
    assert jobs(desk) == []
    desk.decide(ExpireEvidence(row), deadline)
    assert row not in desk.records(TimerRow, "T#")
    assert [job.nominal for job in jobs(desk)] == [deadline - HOUR]


@pytest.mark.parametrize("status", ["suspended", "deleted"])
def test_given_a_schedule_that_does_not_go_on_then_its_row_says_nothing(status: str) -> None:
    desk = a_ticking_desk(all_of(HOURLY, on_data("a")))
    row = tick_row(state_of(desk))
    assert row is not None
    stopped = a_desk(all_of(HOURLY, on_data("a")), status=status, next_tick=FIRST)
    stopped.decide(LatchTicks(row, FIRST), FIRST)
    assert evidence(stopped) == {}
