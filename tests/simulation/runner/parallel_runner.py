"""Many seeds, each in a process that ends after a few of them."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.simulation.mutants import MUTANTS
from tests.simulation.runner.outcome import Outcome, simulate
from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.world_drawing import swarm_of, trapped

SEEDS_PER_PROCESS = 8
"""A world leaves some 50,000 objects in cycles, ten megabytes: a process that ends frees them at once, a collector takes a tenth of
the time.
"""
PATIENCE_S = 900
"""For the outcomes of the next process. A seed takes a second: no answer means that the process was killed."""


@dataclass(frozen=True, slots=True)
class Worlds:
    """Which worlds seeds are run in.

    Attributes:
        mutant: The bug that is planted in them, which draws what it needs; None plants nothing.
        traps: Those that each world has, beside what it draws by itself; not together with a mutant.
    """

    mutant: str | None = None
    traps: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """Those of the command line that lead to them."""
        mutant = () if self.mutant is None else (f"--mutant '{self.mutant}'",)
        return (*mutant, *(f"--trap {name}" for name in self.traps))

    def planted(self) -> AbstractContextManager[None]:
        """Plants the bug while it is entered."""
        return nullcontext() if self.mutant is None else MUTANTS[self.mutant].planted()

    def swarm(self, seed: int) -> Swarm:
        if self.mutant is not None:
            return MUTANTS[self.mutant].swarm(seed)
        swarm = swarm_of(seed)
        for name in self.traps:
            if name not in swarm.traps:
                swarm = trapped(swarm, seed, name)
        return swarm


AS_DRAWN: Final = Worlds()


def outcomes(seeds: range, worlds: Worlds = AS_DRAWN, workers: int | None = None) -> Iterator[Outcome]:
    """Yields them in the order of the seeds; `workers` is one per core unless given.

    Raises `multiprocessing.TimeoutError` when a process does not answer.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    parts = [seeds[at : at + SEEDS_PER_PROCESS] for at in range(0, len(seeds), SEEDS_PER_PROCESS)]
    with context.Pool(workers, initializer=gc.disable, maxtasksperchild=1) as pool:
        in_order = pool.imap(partial(_simulate, worlds), parts)
        for _ in parts:
            yield from in_order.next(PATIENCE_S)


def _simulate(worlds: Worlds, seeds: range) -> list[Outcome]:
    with worlds.planted():
        return [simulate(seed, swarm=worlds.swarm(seed)) for seed in seeds]
