"""How an inbox is cut into decisions: in the order of append times, whatever rows hold what."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW, a_match, an_inbox_row
from tests.support.harness.evidence_bench import REF
from tidegate_core.evidence.inbox_batches import ACTIONS_PER_DECISION, ACTIONS_PER_EVENT, batch_decisions
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.ingest.event_ingest import ROW_EVENTS_MAX
from tidegate_core.rows.inbox import InboxRow


def a_row(number: int, *times: int) -> InboxRow:
    return an_inbox_row(number, *(a_match(f"d{number}", at=NOW + at) for at in times))


def cut(*rows: InboxRow) -> list[MatchEvents]:
    return batch_decisions(REF, ((row.key(0), row) for row in rows))


def counted(rows: list[InboxRow], decisions: list[MatchEvents]) -> list[list[tuple[int, int]]]:
    """Returns what each decision counts, as (append time, row), and takes it out of the rows."""
    left = {
        row.key(0): [(matched["at"] - NOW, number) for matched in json.loads(row.body)]
        for number, row in enumerate(rows)
    }
    found: list[list[tuple[int, int]]] = []
    for decision in decisions:
        before = None if decision.before is None else decision.before - NOW
        found.append([])
        for key in decision.rows:
            found[-1] += [each for each in left[key] if before is None or each[0] < before]
            left[key] = [each for each in left[key] if before is not None and each[0] >= before]
    assert not any(left.values()), "never counted"
    return found


SPREAD = [100 * number for number in range(ROW_EVENTS_MAX)]


def test_given_rows_that_span_the_same_time_then_decisions_take_of_each_what_came_first() -> None:
    rows = [a_row(1, *SPREAD), a_row(2, *(at + 50 for at in SPREAD))]
    first, second = counted(rows, cut(*rows))[:2]
    assert sorted(at for at, _ in first) == [50 * number for number in range(11)]
    assert min(second)[0] == 550


def test_given_rows_one_behind_the_other_then_each_is_counted_whole() -> None:
    """Rewriting what is left of a row is for those that need it."""
    rows = [a_row(number, *(at + 10_000 * number for at in SPREAD)) for number in range(3)]
    assert [decision.rows for decision in cut(*rows)] == [(row.key(0),) for row in rows]


def test_given_more_of_one_instant_than_a_decision_counts_then_rows_are_counted_one_after_the_other() -> None:
    """A broker dates all records of a batch alike."""
    rows = [a_row(number, *[0] * ROW_EVENTS_MAX) for number in range(3)]
    assert [len(each) for each in counted(rows, cut(*rows))] == [ROW_EVENTS_MAX] * 3


def test_given_a_row_that_nobody_can_read_then_it_is_counted_with_what_comes_first() -> None:
    rows = [a_row(2, *SPREAD), replace(an_inbox_row(1), body="not JSON")]
    assert cut(*rows)[0].rows[0] == rows[1].key(0)


TIMES = st.lists(st.integers(0, 30), min_size=1, max_size=ROW_EVENTS_MAX)


@given(times=st.lists(TIMES, max_size=8))
def test_given_any_rows_then_each_event_is_counted_once_in_order_and_no_decision_is_too_large(
    times: list[list[int]],
) -> None:
    rows = [a_row(number, *each) for number, each in enumerate(times)]
    found = counted(rows, cut(*rows))
    assert Counter(each for one in found for each in one) == Counter(
        (at, n) for n, row in enumerate(times) for at in row
    )
    for one, following in pairwise(found):
        assert max(one)[0] <= min(following)[0]
    for one in found:
        assert ACTIONS_PER_EVENT * len(one) + len({number for _, number in one}) <= ACTIONS_PER_DECISION
