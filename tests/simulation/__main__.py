"""`python -m tests.simulation`: runs seeds on all cores, or replays one with its whole trace."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.simulation.faults.scenarios import TRAPS
from tests.simulation.mutants import MUTANTS
from tests.simulation.runner.figures import Figures
from tests.simulation.runner.minimizer import NothingToMinimise, as_code, minimise
from tests.simulation.runner.outcome import judged
from tests.simulation.runner.parallel_runner import Worlds, outcomes
from tests.simulation.runner.runner import run
from tests.simulation.world.world import build

STORIES_MAX = 5


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 when no seed found a violation, else 1."""
    options = _parser().parse_args(arguments)
    if options.merge:
        whole = Figures.of_parts(options.merge)
        if options.figures is not None:
            whole.write(options.figures)
        _say([*whole.lines(), whole.line()])
        return 1 if whole.violations else 0
    worlds = Worlds(options.mutant, tuple(options.trap))
    if options.seed is not None:
        if options.minimise:
            return _minimise(options.seed, worlds)
        return _replay(options.seed, worlds, trace=options.trace)
    begun = time.monotonic()
    seeds = range(options.first, options.first + options.seeds)
    figures = Figures(options.first)
    for outcome in outcomes(seeds, worlds, options.workers):
        figures.add(outcome)
        if outcome.violations and len(figures.failed) <= STORIES_MAX:
            _say([outcome.story(*worlds.arguments), ""])
    seconds = time.monotonic() - begun
    _say(figures.lines())
    if options.figures is not None:
        figures.write(options.figures)
    _say([f"{figures.line()} ({seconds:.0f} s, {figures.seeds / seconds * 60:.0f} seeds/min)"])
    return 1 if figures.violations else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds (default 100)")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--workers", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("--seed", type=int, default=None, help="replay this one seed")
    parser.add_argument("--trace", action="store_true", help="print all that happened in it")
    parser.add_argument("--minimise", action="store_true", help="make its world as small as it can be and still fail")
    parser.add_argument("--figures", type=Path, default=None, metavar="FILE", help="write the figures there, as JSON")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="add up figures of a run made in parts")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--mutant", choices=MUTANTS, default=None, metavar="BUG", help="plant this bug")
    kind.add_argument(
        "--trap",
        choices=TRAPS,
        action="append",
        default=[],
        metavar="TRAP",
        help="set this trap in each world, beside those that it draws (again for another one)",
    )
    return parser


def _replay(seed: int, worlds: Worlds, *, trace: bool) -> int:
    with worlds.planted():
        world = build(seed, whole_trace=trace, swarm=worlds.swarm(seed))
        world.cluster.raises = trace
        try:
            run(world)
        finally:
            if trace:
                _say(world.trace.tail())
        outcome = judged(world)
    _say([str(world.cluster.swarm), *outcome.violations])
    figures = Figures(seed)
    figures.add(outcome)
    _say([figures.line()])
    return 1 if outcome.violations else 0


def _minimise(seed: int, worlds: Worlds) -> int:
    with worlds.planted():
        try:
            least = minimise(seed, worlds.swarm(seed))
        except NothingToMinimise as nothing:
            _say([str(nothing)])
            return 0
    _say(least.outcome.tail)
    _say([*least.outcome.violations, f"seed {least.seed} in the least world that breaks {least.invariant}:"])
    _say([as_code(least.swarm), f"({least.worlds} worlds were run)"])
    return 1


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
