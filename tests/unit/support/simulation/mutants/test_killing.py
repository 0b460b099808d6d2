"""What counts as a proof: a violation of the named invariant, with the bug and not without it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.simulation.mutants.hunt import hunt
from tests.simulation.mutants.mutant import Mutant, Patch, Scenario
from tidegate_core.transactions.unit_of_work import UnitOfWork


class World:
    """Something to break."""

    protected = True
    masked = True


def finds(violation: str) -> Scenario:
    """A scenario that finds this where neither layer protects."""

    def a_story() -> Iterable[str]:
        return [] if World.protected or World.masked else [violation]

    return a_story


def without(name: str) -> Patch:
    return Patch(World, name, lambda _: False)


def a_mutant(scenario: Scenario, *, beside: tuple[str, ...] = ("masked",)) -> Mutant:
    patches = (without("protected"),)
    return Mutant("a bug", "why", "I3", patches, scenario=scenario, beside=tuple(map(without, beside)))


def test_given_a_story_that_finds_the_invariant_broken_then_the_mutant_is_killed() -> None:
    hunted = hunt(a_mutant(finds("I3: counted twice")))
    assert hunted.line == "a bug  killed by scenario a story  breaks I3"


@pytest.mark.parametrize(
    "violation",
    [
        pytest.param("I1: lost", id="another invariant"),
        pytest.param("I3: Traceback of something", id="code that only breaks"),
    ],
)
def test_given_a_story_that_finds_something_else_then_the_mutant_survives(violation: str) -> None:
    hunted = hunt(a_mutant(finds(violation)))
    assert hunted.killed_by is None
    assert violation in hunted.line


def test_given_a_layer_that_hides_it_then_the_mutant_survives() -> None:
    assert hunt(a_mutant(finds("I3: counted twice"), beside=())).killed_by is None


def test_given_a_story_that_fails_without_the_bug_too_then_it_proves_nothing() -> None:
    hunted = hunt(a_mutant(finds("I3: counted twice"), beside=("masked", "protected")))
    assert hunted.killed_by is None
    assert "without the bug" in hunted.line


def test_given_a_hunt_then_nothing_of_the_bug_is_left() -> None:
    hunt(a_mutant(finds("I3: counted twice")))
    assert World.protected
    assert World.masked


def test_given_a_patch_that_is_called_otherwise_than_it_was_written_for_then_what_it_breaks_is_no_proof() -> None:
    """A bug of `UnitOfWork.__init__` was killed for a while by all that stood still, as its caller had come to give one argument more."""

    def of_before(_: object) -> object:
        return lambda unit: None

    outgrown = Mutant("a bug", "why", "liveness", (Patch(UnitOfWork, "__init__", of_before),), within=1)
    hunted = hunt(outgrown)
    assert hunted.killed_by is None
    assert "TypeError" in hunted.line
