"""Many seeds, each in a process that ends after a few of them."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from tidegate_testkit.simulation.mutants import MUTANTS
from tidegate_testkit.simulation.outcome import Outcome, simulate
from tidegate_testkit.simulation.swarm import Swarm

SEEDS_PER_PROCESS = 8
"""A world leaves some 50,000 objects in cycles, ten megabytes: a process that ends frees them at once, a collector takes a tenth of
the time.
"""
PATIENCE_S = 900
"""For the outcomes of the next process. A seed takes a second: no answer means that the process was killed."""


def outcomes(seeds: range, mutant: str | None = None, workers: int | None = None) -> Iterator[Outcome]:
    """Yields them in the order of the seeds; `mutant` is the name of a bug to plant, `workers` one per core unless given.

    Raises `multiprocessing.TimeoutError` when a process does not answer.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    parts = [seeds[at : at + SEEDS_PER_PROCESS] for at in range(0, len(seeds), SEEDS_PER_PROCESS)]
    with context.Pool(workers, initializer=gc.disable, maxtasksperchild=1) as pool:
        in_order = pool.imap(partial(_simulate, mutant), parts)
        for _ in parts:
            yield from in_order.next(PATIENCE_S)


def _simulate(mutant: str | None, seeds: range) -> list[Outcome]:
    with planted(mutant):
        return [simulate(seed, swarm=swarm(mutant, seed)) for seed in seeds]


def planted(mutant: str | None) -> AbstractContextManager[None]:
    """Plants the bug of that name while it is entered; None plants nothing."""
    return nullcontext() if mutant is None else MUTANTS[mutant].planted()


def swarm(mutant: str | None, seed: int) -> Swarm | None:
    """What the bug needs of a seed's world; None for a world that is drawn by the seed alone."""
    return None if mutant is None else MUTANTS[mutant].swarm(seed)
