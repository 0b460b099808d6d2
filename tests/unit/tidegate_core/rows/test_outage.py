"""Outages as they lie in the PROGRESS item."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.rows.outage import ATTRIBUTE, Outage, outages_of, outages_value, with_gap

instants = st.integers(0, 10**13)


def test_given_a_shard_without_outages_then_there_are_none() -> None:
    assert outages_of(None) == ()
    assert outages_of({"pk": "SH#0000", "sk": "PROGRESS"}) == ()


def test_given_an_outage_then_it_is_stored_as_one_text() -> None:
    assert outages_value([Outage(1_000, 2_000)]) == ["1000-2000"]


def test_given_an_outage_then_its_begin_lies_in_it_and_its_end_does_not() -> None:
    assert [instant in Outage(10, 20) for instant in (9, 10, 19, 20)] == [False, True, True, False]


@given(st.lists(st.builds(Outage, instants, instants)))
def test_given_any_outages_then_they_come_back_as_they_were(outages: list[Outage]) -> None:
    assert outages_of({ATTRIBUTE: outages_value(outages)}) == tuple(outages)


ONE, LATER = Outage(1_000, 5_000), Outage(8_000, 9_000)


@pytest.mark.parametrize(
    ("gaps", "fired_through", "before", "outages", "expected"),
    [
        pytest.param([], 0, (), (ONE,), [ONE], id="a new outage"),
        pytest.param([], 3_000, (), (ONE,), [Outage(3_000, 5_000)], id="fired while the store was silent already"),
        pytest.param([], 6_000, (), (ONE,), [], id="all of it was fired"),
        pytest.param([ONE], 500, (ONE,), (Outage(1_000, 7_000),), [ONE, Outage(5_000, 7_000)], id="it goes on"),
        pytest.param([ONE], 500, (ONE,), (ONE,), [ONE], id="nothing new"),
        pytest.param([ONE], 5_000, (ONE,), (ONE, LATER), [LATER], id="the position has passed the first"),
    ],
)
def test_given_an_outage_then_recurring_messages_take_for_missed_what_was_not_fired_before(
    gaps: list[Outage],
    fired_through: int,
    before: tuple[Outage, ...],
    outages: tuple[Outage, ...],
    expected: list[Outage],
) -> None:
    assert with_gap(gaps, fired_through, before, outages) == expected


def test_given_an_owner_that_was_there_all_along_then_what_it_sent_is_not_missed() -> None:
    assert with_gap([], 2_000, (), (ONE,), 3_000) == [Outage(3_000, 5_000)]
    assert with_gap([ONE], 500, (ONE,), (ONE, LATER), 9_500) == [ONE]
