"""A proof of a planted bug: its test fails an assertion with the bug and passes without it, or a world breaks the named invariant."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.simulation.mutants.hunt import hunt_by_seeds, hunt_by_tests, missing_tests, proves
from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, instead
from tests.unit.support.simulation.mutants.example_stories import World
from tidegate_core.writes.unit_of_work import UnitOfWork

STORIES = "unit/support/simulation/mutants/example_stories.py"
KILLED = "killed"
CASES = {
    "a plain assertion": ("test_given_a_world_then_it_is_safe", KILLED),
    "the named invariant, of the second tier": ("test_given_a_world_then_nothing_counts_twice", KILLED),
    "another invariant": ("test_given_a_world_then_nothing_is_lost", "I1: lost"),
    "an error": ("test_given_a_world_then_no_code_raises", "KeyError"),
    "an error that a monitor reports": ("test_given_a_world_then_no_monitor_reports_an_error", "raised KeyError()"),
    "no refusal": ("test_given_a_safe_world_then_it_refuses", KILLED),
    "a test that passes": ("test_given_a_world_then_it_refuses", "without the bug: call failed"),
    "a fixture": ("test_given_a_fixture_then_it_sees_no_bug", "the test passes with the bug"),
    "a parameter that shows it": ("test_given_a_number_then_only_two_needs_the_protection[two]", KILLED),
    "a parameter that does not": ("test_given_a_number_then_only_two_needs_the_protection[one]", "passes with the bug"),
    "a test that fails anyway": ("test_given_a_wrong_test_then_it_always_fails", "without the bug: call failed"),
    "no test": ("test_that_nobody_wrote", "no such test"),
}
"""What a bug's test shows: the test, and a part of what the hunt says."""


def without(name: str) -> Patch:
    return Patch(World, name, instead(False))


def a_mutant(name: str, test: str, *beside: str) -> Mutant:
    patches = (without("protected"),)
    return Mutant(name, "why", "I3", patches, killed_by=f"{STORIES}::{test}", beside=tuple(map(without, beside)))


def hunted() -> dict[str, str]:
    """What each hunt says; runs in a child process."""
    mutants = [a_mutant(case, test, "masked") for case, (test, _) in CASES.items()]
    hidden = a_mutant("hidden", CASES["a plain assertion"][0])
    no_bug_needed = a_mutant("no bug needed", CASES["a plain assertion"][0], "masked", "protected")
    return {
        each.mutant.name: f"{KILLED if each.killed_by else ''} {each.others}"
        for each in hunt_by_tests([*mutants, hidden, no_bug_needed])
    }


def left_after_a_hunt() -> tuple[bool, bool]:
    hunt_by_tests([a_mutant("a bug", CASES["a plain assertion"][0], "masked")])
    return World.protected, World.masked


def missing() -> list[str]:
    return missing_tests([a_mutant(case, test) for case, (test, _) in CASES.items()])


@pytest.fixture(scope="module")
def child() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def said(child: ProcessPoolExecutor) -> dict[str, str]:
    return child.submit(hunted).result()


@pytest.mark.parametrize("case", CASES)
def test_given_what_a_test_shows_then_the_hunt_says_whether_that_is_a_proof(said: dict[str, str], case: str) -> None:
    _, expected = CASES[case]
    assert expected in said[case]
    assert said[case].startswith(KILLED) == (expected == KILLED)


def test_given_a_layer_that_hides_it_then_the_mutant_survives(said: dict[str, str]) -> None:
    assert "the test passes with the bug" in said["hidden"]


def test_given_a_test_that_fails_with_only_other_layers_off_then_it_proves_nothing(said: dict[str, str]) -> None:
    assert "without the bug" in said["no bug needed"]


def test_given_a_hunt_then_nothing_of_the_bug_is_left(child: ProcessPoolExecutor) -> None:
    assert child.submit(left_after_a_hunt).result() == (True, True)


def test_given_a_bug_that_names_no_test_then_it_is_reported(child: ProcessPoolExecutor) -> None:
    assert child.submit(missing).result() == [f"no test: {STORIES}::test_that_nobody_wrote"]


@pytest.mark.parametrize(
    ("file", "message", "expected"),
    [
        pytest.param("unit/test_a.py", "assert False", True, id="a unit test"),
        pytest.param("simulation/stories/test_a.py", "assert False", False, id="a story that was not prepared"),
        pytest.param("simulation/stories/test_a.py", "assert ['I3: counted twice'] == []", True, id="a story"),
    ],
)
def test_given_a_failed_assertion_then_that_of_a_story_has_to_report_the_violation(
    file: str, message: str, expected: bool
) -> None:
    mutant = Mutant("a bug", "why", "I3", (), killed_by=f"{file}::test_that_fails")
    with pytest.raises(AssertionError) as failure:
        raise AssertionError(message)
    assert proves(failure.value, mutant) == expected


def test_given_a_patch_with_outdated_arguments_then_what_it_breaks_is_no_proof() -> None:
    """Production called a patched `UnitOfWork.__init__` with one more argument, and each world that stopped there counted as a proof."""
    of_before = Patch(UnitOfWork, "__init__", instead(lambda unit: None))
    outgrown = Mutant("a bug", "why", "liveness", (of_before,), killed_by=Seeds(within=1))
    hunted = hunt_by_seeds(outgrown)
    assert hunted.killed_by is None
    assert "TypeError" in hunted.line
