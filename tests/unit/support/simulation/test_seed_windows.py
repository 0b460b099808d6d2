"""Which seeds the suite runs, and what a group of them has to show."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.judging import GROUP, QUIET_MAX, shortfalls
from tests.simulation.runner.outcome import Outcome
from tests.simulation.seed_windows import (
    COUNT_WITHOUT_HISTORY,
    FRESH_FROM,
    SEEDS_FRESH,
    SEEDS_QUICK,
    commit_count,
    fresh_window,
    quick_window,
)

BUSY = Outcome(1, 3, fires=40, events=40, bodies=10, take_overs=2, faults=Counter({("crash", "fire"): 100}))
GIT = ("git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run([*GIT, *arguments], cwd=folder, capture_output=True, check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One with three commits."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init")
    for number in range(3):
        git(folder, "commit", "--allow-empty", "--message", f"commit {number}")
    return folder


def test_given_a_repository_then_its_commits_are_counted(repository: Path) -> None:
    assert commit_count(repository) == 3


def test_given_a_shallow_clone_then_the_window_is_the_fixed_one(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--depth", "1", f"file://{repository}", "shallow")
    assert commit_count(tmp_path / "shallow") == COUNT_WITHOUT_HISTORY


def test_given_a_folder_without_history_then_the_window_is_the_fixed_one(repository: Path, tmp_path: Path) -> None:
    unpacked, within_another = tmp_path / "unpacked", repository / "unpacked"
    unpacked.mkdir()
    within_another.mkdir()
    assert (commit_count(unpacked), commit_count(within_another)) == (COUNT_WITHOUT_HISTORY, COUNT_WITHOUT_HISTORY)


@pytest.mark.parametrize(("window", "size"), [(quick_window, SEEDS_QUICK), (fresh_window, SEEDS_FRESH)])
def test_given_the_next_commit_then_its_window_begins_where_the_last_one_ended(window: object, size: int) -> None:
    assert callable(window)
    assert [window(7).stop, len(window(7))] == [window(8).start, size]


def test_given_600_000_commits_then_no_fresh_seed_was_in_a_quick_window() -> None:
    assert quick_window(FRESH_FROM // SEEDS_QUICK - 1).stop <= fresh_window(0).start


def test_given_a_group_in_which_enough_happens_then_nothing_is_short() -> None:
    assert shortfalls([BUSY] * GROUP) == []


@pytest.mark.parametrize("name", ["fires", "events", "bodies", "take_overs"])
def test_given_a_low_median_then_the_group_is_short_of_it(name: str) -> None:
    low = replace(BUSY, **{name: getattr(BUSY, name) - 1})
    (short,) = shortfalls([low] * GROUP)
    assert short.startswith(f"median of {name}:")


def test_given_few_faults_then_the_group_is_short_of_them() -> None:
    assert len(shortfalls([replace(BUSY, faults=Counter({("crash", "fire"): 99}))] * GROUP)) == 1


def test_given_quiet_worlds_then_some_are_allowed_and_any_number_under_a_wide_suspend() -> None:
    quiet = replace(BUSY, fires=19)
    stopped = replace(quiet, calls=Counter({"move_controls": 1}))
    busy = [BUSY] * GROUP
    assert shortfalls([*busy, *[quiet] * QUIET_MAX]) == []
    assert len(shortfalls([*busy, *[quiet] * (QUIET_MAX + 1)])) == 1
    assert shortfalls([*busy, *[stopped] * (QUIET_MAX + 1)]) == []
