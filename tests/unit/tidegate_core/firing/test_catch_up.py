"""Instants that are due, and what becomes of those that fell into an outage (SEMANTICS 3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW
from tidegate_core.firing.catch_up import (
    MADE_PER_TRANSACTION,
    WALKED_PER_TRANSACTION,
    Due,
    Made,
    Missed,
    Rules,
    Walk,
    walk,
)
from tidegate_core.language.definitions.catch_up_policy import CatchUpPolicy
from tidegate_core.language.triggers.search import NEVER, Next
from tidegate_core.rows.outage import Outage
from tidegate_core.shard.outages.outage_time import CatchUp

MODES: tuple[CatchUp, ...] = ("all", "last", "coalesce", "none")


FAR = 1 << 40
"""Longer than any test lasts."""


def walked(
    begin: int,
    now: int,
    outages: list[Outage],
    mode: CatchUp = "last",
    gathered: Due | None = None,
    alone: Made = Made(),  # noqa: B008 - frozen
    **more: Any,
) -> Walk:
    """Walks a schedule that fires each 10 ms and ends at NOW + 100,000."""
    wanted = {"max_runs": 10_000, "window": "10d", **more}
    own = wanted.pop("own", None)
    activated_at = wanted.pop("activated_at", 0)
    policy = CatchUpPolicy.model_validate({"mode": mode, **wanted})
    return walk(Next(begin), _next_after, Rules(policy, now, outages, own, activated_at), gathered, alone)


def _next_after(instant: int) -> Next:
    return Next(instant + 10 if instant < NOW + 100_000 else None)


def to_the_end(begin: int, now: int, outages: list[Outage], mode: CatchUp, **more: Any) -> list[Due]:
    """Transaction after transaction."""
    made: list[Due] = []
    following: int | None = begin
    gathered: Due | None = None
    alone = Made()
    while following is not None and (following <= now or gathered is not None):
        step = walked(following, now, outages, mode, gathered, alone, **more)
        made.extend(step.made)
        following, gathered, alone = step.following.at, step.gathered, step.alone
    assert gathered is None
    return made


def test_given_an_outage_then_its_instants_become_one_and_those_around_it_one_each() -> None:
    walked_all = walked(NOW, NOW + 60, [Outage(NOW + 15, NOW + 45)])
    assert walked_all.made == (
        Due(NOW, NOW),
        Due(NOW + 10, NOW + 10),
        Due(NOW + 20, NOW + 40, 3, fate="last"),
        Due(NOW + 50, NOW + 50),
        Due(NOW + 60, NOW + 60),
    )
    assert walked_all.following.at == NOW + 70


def test_given_mode_all_then_each_instant_has_a_job_of_its_own() -> None:
    made = walked(NOW, NOW + 30, [Outage(NOW, NOW + 30)], "all").made
    assert [(due.first, due.last, due.fate) for due in made] == [
        *((NOW + late, NOW + late, "alone") for late in (0, 10, 20)),
        (NOW + 30, NOW + 30, "on_time"),
    ]


def test_given_two_outages_then_each_has_its_own_occurrence() -> None:
    outages = [Outage(NOW, NOW + 20), Outage(NOW + 20, NOW + 35)]
    assert walked(NOW, NOW + 35, outages).made == (
        Due(NOW, NOW + 10, 2, fate="last"),
        Due(NOW + 20, NOW + 30, 2, fate="last"),
    )


def test_given_more_instants_than_one_transaction_walks_then_the_cursor_goes_on_where_it_stopped() -> None:
    end = NOW + 10 * (WALKED_PER_TRANSACTION + 20)
    outage = Outage(NOW, end)
    first = walked(NOW, end + 5, [outage])
    assert first.made == ()
    assert first.gathered == Due(NOW, NOW + 10 * (WALKED_PER_TRANSACTION - 1), WALKED_PER_TRANSACTION, fate="last")
    assert first.following.at is not None
    second = walked(first.following.at, end + 5, [outage], gathered=first.gathered)
    assert second.made[0] == Due(NOW, end - 10, WALKED_PER_TRANSACTION + 20, fate="last")
    assert second.gathered is None


def test_given_a_fact_that_was_forgotten_meanwhile_then_what_was_gathered_is_made_all_the_same() -> None:
    gathered = Due(NOW, NOW + 90, 10, fate="last")
    assert walked(NOW + 100, NOW + 100, [], gathered=gathered).made == (gathered, Due(NOW + 100, NOW + 100))


def test_given_a_clock_behind_the_predecessors_then_what_was_gathered_is_made_without_waiting() -> None:
    gathered = Due(NOW, NOW + 90, 10, fate="last")
    assert walked(NOW + 100, NOW + 50, [Outage(NOW, NOW + 150)], gathered=gathered) == Walk(
        (gathered,), None, Next(NOW + 100)
    )


def test_given_the_last_instant_in_an_outage_then_its_occurrence_is_made() -> None:
    end = NOW + 100_000
    assert walked(end - 10, end + 50, [Outage(NOW, end + 50)]) == Walk(
        (Due(end - 10, end, 2, fate="last"),), None, NEVER
    )


@pytest.mark.parametrize("mode", MODES)
def test_given_nothing_due_then_nothing_is_made(mode: CatchUp) -> None:
    assert walked(NOW + 10, NOW + 9, [Outage(NOW, NOW + 50)], mode) == Walk((), None, Next(NOW + 10))


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
        fates = {"all": "alone", "last": "last", "coalesce": "coalesced", "none": "left_out"}
        assert due.fate == (fates[mode] if within else "on_time")
        assert due.fate == "on_time" or due.last in within[0]


# -- how much is made up for ----------------------------------------------------------------------------------------------


def told(made: list[Due]) -> list[tuple[str, int, int]]:
    """Returns (fate, first instant, number) of each."""
    return [(due.fate, (due.first - NOW) // 10, due.count) for due in made]


def test_given_more_than_may_run_then_the_oldest_have_their_own_and_one_stands_for_the_rest() -> None:
    made = to_the_end(NOW, NOW + 120, [Outage(NOW, NOW + 100)], "all", max_runs=3)
    alone = [("alone", number, 1) for number in range(3)]
    assert told(made) == [*alone, ("coalesced", 3, 7), *(("on_time", number, 1) for number in (10, 11, 12))]


def test_given_two_outages_then_each_has_as_many_of_its_own() -> None:
    outages = [Outage(NOW, NOW + 40), Outage(NOW + 40, NOW + 80)]
    made = to_the_end(NOW, NOW + 70, outages, "all", max_runs=1)
    assert told(made) == [("alone", 0, 1), ("coalesced", 1, 3), ("alone", 4, 1), ("coalesced", 5, 3)]


@pytest.mark.parametrize("mode", ["all", "last", "coalesce"])
def test_given_what_is_older_than_the_window_then_one_entry_says_so_for_all_of_it(mode: CatchUp) -> None:
    made = to_the_end(NOW, NOW + 100, [Outage(NOW, NOW + 90)], mode, window="50ms")
    assert told(made)[0] == ("too_old", 0, 5)
    assert sum(due.count for due in made) == 11


def test_given_mode_none_then_age_makes_no_difference() -> None:
    made = to_the_end(NOW, NOW + 100, [Outage(NOW, NOW + 90)], "none", window="50ms")
    assert told(made)[0] == ("left_out", 0, 9)


def test_given_a_single_instant_that_had_passed_long_before_then_it_is_too_old() -> None:
    """SEMANTICS 1.5: a past instant fires at once unless it is older than the window."""
    begin = NOW + 100_000
    for window, fate in (("100ms", "on_time"), ("99ms", "too_old")):
        made = walked(begin, begin + 500, [], window=window, activated_at=begin + 100).made
        assert [due.fate for due in made] == [fate]


def test_given_a_pause_to_be_made_up_for_then_its_own_mode_holds_in_it() -> None:
    own = Missed(NOW, NOW + 50, "coalesce")
    made = to_the_end(NOW, NOW + 60, [Outage(NOW, NOW + 50)], "none", own=own)
    assert told(made) == [("coalesced", 0, 5), ("on_time", 5, 1), ("on_time", 6, 1)]


@given(st.integers(1, 60), st.integers(0, 400), st.integers(1, 40), st.integers(1, 500), st.sampled_from(MODES))
def test_given_any_bounds_then_each_instant_is_covered_once_wherever_a_walk_stopped(
    length: int, late_by: int, max_runs: int, window: int, mode: CatchUp
) -> None:
    outages = [Outage(NOW + 20, NOW + 20 + 10 * length)]
    made = to_the_end(NOW, NOW + late_by, outages, mode, max_runs=max_runs, window=f"{window}ms")
    stood_for = [instant for due in made for instant in range(due.first, due.last + 1, 10)]
    assert stood_for == list(range(NOW, NOW + late_by + 1, 10))
    assert len([due for due in made if due.fate == "alone"]) <= max_runs
