"""Each planted bug is found: what a check cannot find, it does not prove.

A bug takes one protection away. Its own test must fail with it, or a seed of random worlds must break the invariant that the bug
breaks. `I5` is found by the monitor of the store's writes, which trusts no condition and reads from each transaction's token who
sent it under which tenure. `make mutants` prints what found each, and writes `build/mutants.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest

from tests.simulation.mutants import LISTS, MUTANTS
from tests.simulation.mutants.hunt import hunt_by_seeds
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.mutants.parallel_hunt import hunt_all, missing_tests_of

MUTANTS_MIN = 100
BY_TEST = [mutant for mutant in MUTANTS.values() if mutant.test is not None]
BY_SEEDS = [mutant.name for mutant in MUTANTS.values() if mutant.test is None]


def survivors(mutants: Sequence[Mutant]) -> list[str]:
    """Hunts them in one child process."""
    return [hunted.line for hunted in hunt_all(mutants, workers=1) if hunted.killed_by is None]


def folder_of(mutant: Mutant) -> str:
    return (mutant.test or "").partition("::")[0].rpartition("/")[0]


FOLDERS = {folder: list(group) for folder, group in groupby(sorted(BY_TEST, key=folder_of), key=folder_of)}


def test_given_one_bug_of_each_list_then_the_test_that_it_names_fails_with_it() -> None:
    picked = [next((mutant for mutant in mutants if mutant.test is not None), None) for mutants in LISTS]
    assert survivors([mutant for mutant in picked if mutant is not None]) == []


def test_given_a_bug_then_the_test_that_it_names_exists() -> None:
    assert missing_tests_of(BY_TEST) == []


@pytest.mark.nightly
@pytest.mark.parametrize("folder", FOLDERS)
def test_given_a_bug_then_the_test_that_it_names_fails_with_it(folder: str) -> None:
    assert survivors(FOLDERS[folder]) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", BY_SEEDS)
def test_given_a_bug_for_random_worlds_then_a_seed_finds_what_it_breaks(name: str) -> None:
    hunted = hunt_by_seeds(MUTANTS[name])
    assert hunted.killed_by is not None, hunted.line


def test_given_the_lists_then_no_name_hides_another_mutant() -> None:
    assert len(MUTANTS) == sum(map(len, LISTS)) >= MUTANTS_MIN
