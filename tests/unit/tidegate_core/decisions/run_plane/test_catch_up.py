"""Instants that are due, and what becomes of those that fell into an outage (SEMANTICS 3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.decisions.outages import CatchUp
from tidegate_core.decisions.run_plane.catch_up import MADE_PER_TRANSACTION, WALKED_PER_TRANSACTION, Due, Walk, walk
from tidegate_core.records.outages import Outage
from tidegate_testkit.builders import NOW

MODES: tuple[CatchUp, ...] = ("all", "last", "coalesce", "none")


def walked(begin: int, now: int, outages: list[Outage], mode: CatchUp = "last", gathered: Due | None = None) -> Walk:
    """Walks a schedule that fires each 10 ms and ends at NOW + 100,000."""
    return walk(begin, _next_after, now, mode, outages, gathered)


def _next_after(instant: int) -> int | None:
    return instant + 10 if instant < NOW + 100_000 else None


def to_the_end(begin: int, now: int, outages: list[Outage], mode: CatchUp) -> list[Due]:
    """Transaction after transaction."""
    made: list[Due] = []
    following: int | None = begin
    gathered: Due | None = None
    while following is not None and (following <= now or gathered is not None):
        step = walked(following, now, outages, mode, gathered)
        made.extend(step.made)
        following, gathered = step.following, step.gathered
    assert gathered is None
    return made


def test_given_an_outage_then_its_instants_become_one_and_those_around_it_one_each() -> None:
    walked_all = walked(NOW, NOW + 60, [Outage(NOW + 15, NOW + 45)])
    assert walked_all.made == (
        Due(NOW, NOW),
        Due(NOW + 10, NOW + 10),
        Due(NOW + 20, NOW + 40, 3, missed=True),
        Due(NOW + 50, NOW + 50),
        Due(NOW + 60, NOW + 60),
    )
    assert walked_all.following == NOW + 70


def test_given_mode_all_then_an_outage_changes_nothing() -> None:
    assert walked(NOW, NOW + 30, [Outage(NOW, NOW + 30)], "all") == walked(NOW, NOW + 30, [], "last")


def test_given_two_outages_then_each_has_its_own_occurrence() -> None:
    outages = [Outage(NOW, NOW + 20), Outage(NOW + 20, NOW + 35)]
    assert walked(NOW, NOW + 35, outages).made == (
        Due(NOW, NOW + 10, 2, missed=True),
        Due(NOW + 20, NOW + 30, 2, missed=True),
    )


def test_given_more_instants_than_one_transaction_walks_then_the_cursor_goes_on_where_it_stopped() -> None:
    end = NOW + 10 * (WALKED_PER_TRANSACTION + 20)
    outage = Outage(NOW, end)
    first = walked(NOW, end + 5, [outage])
    assert first.made == ()
    assert first.gathered == Due(NOW, NOW + 10 * (WALKED_PER_TRANSACTION - 1), WALKED_PER_TRANSACTION, missed=True)
    assert first.following is not None
    second = walked(first.following, end + 5, [outage], gathered=first.gathered)
    assert second.made[0] == Due(NOW, end - 10, WALKED_PER_TRANSACTION + 20, missed=True)
    assert second.gathered is None


def test_given_a_fact_that_was_forgotten_meanwhile_then_what_was_gathered_is_made_all_the_same() -> None:
    gathered = Due(NOW, NOW + 90, 10, missed=True)
    assert walked(NOW + 100, NOW + 100, [], gathered=gathered).made == (gathered, Due(NOW + 100, NOW + 100))


def test_given_a_clock_behind_the_predecessors_then_what_was_gathered_is_made_without_waiting() -> None:
    gathered = Due(NOW, NOW + 90, 10, missed=True)
    assert walked(NOW + 100, NOW + 50, [Outage(NOW, NOW + 150)], gathered=gathered) == Walk(
        (gathered,), None, NOW + 100
    )


def test_given_the_last_instant_in_an_outage_then_its_occurrence_is_made() -> None:
    end = NOW + 100_000
    assert walked(end - 10, end + 50, [Outage(NOW, end + 50)]) == Walk(
        (Due(end - 10, end, 2, missed=True),), None, None
    )


@pytest.mark.parametrize("mode", MODES)
def test_given_nothing_due_then_nothing_is_made(mode: CatchUp) -> None:
    assert walked(NOW + 10, NOW + 9, [Outage(NOW, NOW + 50)], mode) == Walk((), None, NOW + 10)


def test_given_many_that_are_late_then_a_few_are_made_together() -> None:
    assert len(walked(NOW, NOW + 1_000, []).made) == MADE_PER_TRANSACTION


outages_apart = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 60)), max_size=5)


@given(outages_apart, st.sampled_from(MODES), st.integers(0, 6_000))
def test_given_any_outages_then_each_instant_is_covered_once_and_none_outside_is(
    spans: list[tuple[int, int]], mode: CatchUp, late_by: int
) -> None:
    outages: list[Outage] = []
    end = NOW
    for pause, length in spans:
        begin = end + pause
        end = begin + length
        outages.append(Outage(begin, end))
    made = to_the_end(NOW, NOW + late_by, outages, mode)
    stood_for = [instant for due in made for instant in range(due.first, due.last + 1, 10)]
    assert stood_for == list(range(NOW, NOW + late_by + 1, 10))
    assert all(due.count == (due.last - due.first) // 10 + 1 for due in made)
    for due in made:
        within = [outage for outage in outages if due.first in outage]
        assert due.missed == (bool(within) and mode != "all")
        assert not due.missed or due.last in within[0]
