"""How long one step of the actor searches a trigger for an instant: an apply once stood 12 s still, for the whole process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import SECOND, a_spec, all_of, an_apply, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.unit.tidegate_core.never_comes import NEVER
from tidegate_core.language.triggers import search
from tidegate_core.language.triggers.search import STEPS_PER_SEARCH, Search


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What all searches have compared so far; one that goes on for ever fails."""
    counted = [0]
    takes = Search.takes

    def counting(each: Search, comparisons: int) -> bool:
        counted[0] += 1 + comparisons
        assert counted[0] < 10 * STEPS_PER_SEARCH, "the search goes on and on"
        return takes(each, comparisons)

    monkeypatch.setattr(Search, "takes", counting)
    return counted


@pytest.mark.parametrize("trigger", [NEVER, all_of(NEVER, on_data()), {"type": "times", "specs": [NEVER]}])
def test_given_exclusions_that_leave_nothing_then_the_apply_is_refused_within_the_bound_of_its_check(
    trigger: dict[str, Any], compared: list[int]
) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger), "it"))
    (error,) = bench.receipts()["it"]["errors"]
    assert "excludes so much that no time" in error["problem"]
    assert compared[0] <= STEPS_PER_SEARCH + 100


def test_given_instants_that_are_not_found_soon_then_the_receipt_shows_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "STEPS_PER_DECISION", 1)  # One look at one instant: the third is not looked for.
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger={"type": "cron", "expression": "* * * * *"}), "it"))
    receipt = bench.receipts()["it"]
    assert (receipt["status"], len(receipt["next"])) == ("accepted", 2)
