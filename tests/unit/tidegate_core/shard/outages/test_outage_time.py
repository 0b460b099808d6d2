"""What follows from the facts of a shard's outages: which there are, which instants lie in them, how time-outs stand still."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import HOUR, MINUTE, NOW, SECOND
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.store_operations import Item
from tidegate_core.shard.outages.outage_time import (
    OUTAGE_GRACE_MS,
    OUTAGES_KEPT_MS,
    OUTAGES_MAX,
    last_sign,
    outage_at,
    served_between,
    served_deadline,
    with_outage,
    without_span,
)

ONE = Outage(NOW, NOW + HOUR)

# -- which there are ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "outages"),
    [
        pytest.param(NOW, NOW + OUTAGE_GRACE_MS - 1, (), id="within the grace"),
        pytest.param(NOW, NOW + OUTAGE_GRACE_MS, (Outage(NOW, NOW + OUTAGE_GRACE_MS),), id="at the grace"),
        pytest.param(NOW + 5 * MINUTE, NOW, (), id="the dead node's clock was ahead of all that has passed"),
    ],
)
def test_given_a_gap_then_it_is_an_outage_from_the_grace_on(begin: int, end: int, outages: tuple[Outage, ...]) -> None:
    assert with_outage((), begin, end) == outages


@pytest.mark.parametrize(
    ("begin", "end", "outages"),
    [
        pytest.param(NOW - HOUR, NOW + 30 * MINUTE, (ONE,), id="told by a clock that is behind"),
        pytest.param(NOW, NOW + HOUR, (ONE,), id="told again"),
        pytest.param(ONE.end - 1, ONE.end + 2 * MINUTE, (Outage(NOW, ONE.end + 2 * MINUTE),), id="goes on"),
        pytest.param(ONE.end, ONE.end + 9, (Outage(NOW, ONE.end + 9),), id="nobody has served since"),
        pytest.param(ONE.end + 1, ONE.end + 30 * SECOND, (ONE,), id="served for a moment, and a gap within the grace"),
        pytest.param(ONE.end + 5, ONE.end + HOUR, (ONE, Outage(ONE.end + 5, ONE.end + HOUR)), id="another one"),
    ],
)
def test_given_a_fact_then_a_later_gap_never_doubles_or_shortens_it(
    begin: int, end: int, outages: tuple[Outage, ...]
) -> None:
    assert with_outage((ONE,), begin, end) == outages


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=30))
def test_given_gaps_in_any_order_then_the_facts_are_in_order_and_apart(gaps: list[tuple[int, int]]) -> None:
    known: tuple[Outage, ...] = ()
    for begin, length in gaps:
        before = known
        known = with_outage(known, NOW + begin * SECOND, NOW + (begin + length) * SECOND)
        assert [outage.begin for outage in known[: len(before)]] == [outage.begin for outage in before]
        assert all(new.end >= old.end for old, new in zip(before, known, strict=False))
    assert all(outage.end - outage.begin >= OUTAGE_GRACE_MS for outage in known)
    assert all(first.end < second.begin for first, second in pairwise(known))


def test_given_a_shard_that_was_served_long_enough_since_then_a_fact_is_forgotten() -> None:
    served_until = ONE.end + OUTAGES_KEPT_MS
    assert with_outage((ONE,), served_until - 1, served_until) == (ONE,)
    assert with_outage((ONE,), served_until, served_until) == ()


def test_given_a_second_outage_of_weeks_then_the_first_one_is_kept_for_its_catch_up() -> None:
    """Between them the shard was served for a minute: nothing had been caught up with."""
    begin, end = ONE.end + MINUTE, ONE.end + 3 * OUTAGES_KEPT_MS
    assert with_outage((ONE,), begin, end) == (ONE, Outage(begin, end))


def test_given_more_outages_than_an_item_may_hold_then_the_oldest_goes() -> None:
    known: tuple[Outage, ...] = ()
    for number in range(OUTAGES_MAX + 3):
        known = with_outage(known, NOW + number * HOUR, NOW + number * HOUR + 2 * MINUTE)
    assert len(known) == OUTAGES_MAX
    assert known[0].begin == NOW + 3 * HOUR


def test_given_an_instant_then_its_outage_is_found() -> None:
    outages = (ONE, Outage(NOW + 2 * HOUR, NOW + 3 * HOUR))
    assert outage_at(outages, NOW + 2 * HOUR) == outages[1]
    assert outage_at(outages, ONE.end) is None


# -- time-outs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outages", "later"),
    [
        pytest.param((), 0, id="none"),
        pytest.param((Outage(NOW - HOUR, NOW),), 0, id="before it began"),
        pytest.param((Outage(NOW - HOUR, NOW + 5 * MINUTE),), 5 * MINUTE, id="began in one"),
        pytest.param((Outage(NOW + MINUTE, NOW + 9 * MINUTE),), 8 * MINUTE, id="within"),
        pytest.param((Outage(NOW + 9 * MINUTE, NOW + HOUR),), 51 * MINUTE, id="would have ended in one"),
        pytest.param((Outage(NOW + 10 * MINUTE, NOW + HOUR),), 0, id="after it was over"),
        pytest.param(
            (Outage(NOW + MINUTE, NOW + 9 * MINUTE), Outage(NOW + 15 * MINUTE, NOW + 20 * MINUTE)),
            13 * MINUTE,
            id="put off into the next one",
        ),
    ],
)
def test_given_outages_then_a_time_out_of_ten_minutes_stands_still_in_them(
    outages: tuple[Outage, ...], later: int
) -> None:
    assert served_deadline(NOW, NOW + 10 * MINUTE, outages) == NOW + 10 * MINUTE + later


@pytest.mark.parametrize(
    ("begin", "end", "left"),
    [
        pytest.param(NOW - HOUR, NOW, [ONE], id="before it"),
        pytest.param(ONE.end, ONE.end + HOUR, [ONE], id="after it"),
        pytest.param(NOW - HOUR, NOW + MINUTE, [Outage(NOW + MINUTE, ONE.end)], id="it begins in the span"),
        pytest.param(NOW + MINUTE, ONE.end + 1, [Outage(NOW, NOW + MINUTE)], id="it ends in the span"),
        pytest.param(NOW, ONE.end, [], id="all of it"),
        pytest.param(
            NOW + MINUTE,
            NOW + 2 * MINUTE,
            [Outage(NOW, NOW + MINUTE), Outage(NOW + 2 * MINUTE, ONE.end)],
            id="a part in the middle",
        ),
        pytest.param(0, 0, [ONE], id="there is no span"),
    ],
)
def test_given_a_span_then_what_lies_outside_of_it_is_left(begin: int, end: int, left: list[Outage]) -> None:
    assert without_span([ONE], begin, end) == left


@pytest.mark.parametrize(
    ("begin", "end", "served"),
    [
        pytest.param(NOW - HOUR, NOW + 2 * HOUR, 2 * HOUR, id="around it"),
        pytest.param(NOW + MINUTE, NOW + 2 * MINUTE, 0, id="within it"),
        pytest.param(NOW - HOUR, NOW + MINUTE, HOUR, id="into it"),
        pytest.param(NOW + 2 * HOUR, NOW + 3 * HOUR, HOUR, id="behind it"),
        pytest.param(NOW - MINUTE, NOW - HOUR, 0, id="a clock that is behind"),
    ],
)
def test_given_a_span_then_what_of_it_was_served_is_what_lies_in_no_outage(begin: int, end: int, served: int) -> None:
    assert served_between(begin, end, [ONE]) == served


# -- signs of life -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("served", "seen", "sign"),
    [
        pytest.param(NOW, NOW + 9, NOW + 9, id="its process was seen last"),
        pytest.param(NOW + 9, NOW, NOW + 9, id="an older sign of life arrived late"),
        pytest.param(NOW, None, NOW, id="it fell before it was seen"),
        pytest.param(0, None, None, id="an owner of a former version, of whom nothing is known"),
    ],
)
def test_given_what_is_written_down_then_the_latest_counts(served: int, seen: int | None, sign: int | None) -> None:
    lease: Item = {"pk": "SH#0000", "sk": "LEASE", "owner": "node-1", "served": served}
    assert last_sign(lease, seen) == sign


def test_given_a_shard_that_never_had_an_owner_then_it_had_no_outage() -> None:
    assert last_sign(None, None) is None
