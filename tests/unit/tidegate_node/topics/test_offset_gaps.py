"""Offsets without records are looked for once, for all who ask."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tidegate_core.rows.effects import FindGaps, Gaps, Unavailable
from tidegate_node.topics.offset_gaps import LOOK_AGAIN_MS, LogGaps

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings

ID = "cd" * 16


@pytest.fixture
def gaps(around: Surroundings) -> LogGaps:
    return LogGaps(around.bus, around.clock)


async def test_given_spans_then_those_are_gaps_whose_next_record_lies_behind_them(
    around: Surroundings, gaps: LogGaps
) -> None:
    around.bus.records_at = {0: 7, 1: 8, 2: 6}
    assert await gaps.among("t", ID, {0: (5, 7), 1: (5, 7), 2: (5, 7), 3: (5, 7)}) == frozenset({0, 1})
    assert around.bus.finds == [("t", ID, {0: 5, 1: 5, 2: 5, 3: 5})]


async def test_given_a_gap_then_nobody_asks_again_of_any_part_of_it(around: Surroundings, gaps: LogGaps) -> None:
    around.bus.records_at = {0: 9}
    assert await gaps.among("t", ID, {0: (5, 7)}) == frozenset({0})
    around.clock.pass_ms(LOOK_AGAIN_MS)
    assert await gaps.among("t", ID, {0: (6, 9)}) == frozenset({0})
    assert len(around.bus.finds) == 1
    assert await gaps.among("t", ID, {0: (4, 9)}) == frozenset({0}), "before it, nothing is known"
    assert await gaps.among("t", "ef" * 16, {0: (6, 9)}) == frozenset({0}), "nor of another topic"
    assert len(around.bus.finds) == 3


async def test_given_a_span_that_may_hold_a_record_then_it_is_looked_at_again_after_a_while(
    around: Surroundings, gaps: LogGaps
) -> None:
    """A transaction is open: what follows is its records, or nothing."""
    assert await gaps.among("t", ID, {0: (5, 7)}) == frozenset()
    around.bus.records_at = {0: 7}
    around.clock.pass_ms(LOOK_AGAIN_MS - 1)
    assert await gaps.among("t", ID, {0: (5, 7)}) == frozenset()
    around.clock.pass_ms(1)
    assert await gaps.among("t", ID, {0: (5, 7)}) == frozenset({0})


async def test_given_many_who_ask_at_once_then_the_brokers_are_asked_once(around: Surroundings, gaps: LogGaps) -> None:
    around.bus.records_at = {0: 7}
    found = await asyncio.gather(*(gaps.among("t", ID, {0: (5, 7)}) for _ in range(64)))
    assert found == [frozenset({0})] * 64
    assert len(around.bus.finds) == 1


async def test_given_the_effect_then_it_is_answered_by_them(around: Surroundings) -> None:
    around.bus.records_at = {0: 7}
    effects = around.bus_effects()
    assert await effects.find_gaps(FindGaps("t", ID, {0: (5, 7), 1: (5, 7)})) == Gaps(frozenset({0}))
    around.bus.records_at = Unavailable("broker")
    assert await effects.find_gaps(FindGaps("u", "ab" * 16, {0: (5, 7)})) == Unavailable("broker")
