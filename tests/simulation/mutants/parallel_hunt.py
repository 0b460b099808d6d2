"""Hunts many planted bugs in child processes: a task is a file of tests, or a bug that worlds have to find."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby
from typing import TypeAlias

from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.hunt import Hunt, hunt_by_seeds, hunt_by_tests, missing_tests
from tests.simulation.mutants.mutant import Mutant

_Sent: TypeAlias = tuple[str, str | None, int, list[str]]
"""A `Hunt` with the bug's name: patches cannot be sent to another process."""


def hunt_all(mutants: Sequence[Mutant], workers: int | None = None) -> Iterator[Hunt]:
    """Yields results as they come; `workers` is one per core unless given. Each bug is one of `MUTANTS`."""
    with _pool(workers) as pool:
        for task in as_completed([pool.submit(_hunt, names) for names in _tasks(mutants, workers)]):
            for name, killed_by, tried, others in task.result():
                yield Hunt(MUTANTS[name], killed_by, tried, others)


def missing_tests_of(mutants: Sequence[Mutant]) -> list[str]:
    """Returns the bugs that name a test that does not exist, each with that name."""
    with _pool(1) as pool:
        return pool.submit(_missing, [mutant.name for mutant in mutants]).result()


def _pool(workers: int | None) -> ProcessPoolExecutor:
    # Not forked: in the child, pytest would meet its parent's pytest. A child that dies ends the hunt, which a `Pool` would repeat.
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


def _tasks(mutants: Sequence[Mutant], workers: int | None) -> list[list[str]]:
    """Returns the names of bugs for each task, longest tasks first. A single worker runs pytest once for all files."""
    if workers == 1:
        return [[mutant.name for mutant in mutants]]
    by_worlds = [[mutant.name] for mutant in mutants if mutant.test is None]
    by_tests = sorted((mutant for mutant in mutants if mutant.test is not None), key=_file)
    files = [[mutant.name for mutant in group] for _, group in groupby(by_tests, key=_file)]
    return [*by_worlds, *sorted(files, key=len, reverse=True)]


def _file(mutant: Mutant) -> str:
    return (mutant.test or "").partition("::")[0]


def _hunt(names: list[str]) -> list[_Sent]:
    mutants = [MUTANTS[name] for name in names]
    by_tests = [mutant for mutant in mutants if mutant.test is not None]
    hunts = [*(hunt_by_tests(by_tests)), *(_by_worlds(mutant) for mutant in mutants if mutant.test is None)]
    return [(hunted.mutant.name, hunted.killed_by, hunted.tried, hunted.others) for hunted in hunts]


def _by_worlds(mutant: Mutant) -> Hunt:
    try:
        return hunt_by_seeds(mutant)
    except Exception as error:  # noqa: BLE001 - a world that breaks off has found nothing
        return Hunt(mutant, None, others=[f"raised {error!r}"])


def _missing(names: list[str]) -> list[str]:
    return missing_tests([MUTANTS[name] for name in names])
