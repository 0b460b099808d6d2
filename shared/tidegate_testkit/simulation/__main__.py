"""`python -m tidegate_testkit.simulation`: runs seeds on all cores, or replays one with its whole trace."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from tidegate_testkit.simulation.mutants import MUTANTS
from tidegate_testkit.simulation.outcome import Outcome, judged, simulate
from tidegate_testkit.simulation.running import run
from tidegate_testkit.simulation.swarm import Swarm
from tidegate_testkit.simulation.world import build

SEEDS_PER_TASK = 4
STORIES_MAX = 5


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 when no seed found a violation, else 1."""
    options = _parser().parse_args(arguments)
    if options.seed is not None:
        return _replay(options.seed, options.mutant, trace=options.trace)
    begun = time.monotonic()
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor(options.workers) as pool:
        outcomes = list(pool.map(partial(_simulate, options.mutant), seeds, chunksize=SEEDS_PER_TASK))
    _report(outcomes, time.monotonic() - begun)
    return 1 if any(outcome.violations for outcome in outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tidegate_testkit.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds (default 100)")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--workers", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("--seed", type=int, default=None, help="replay this one seed")
    parser.add_argument("--trace", action="store_true", help="print all that happened in it")
    parser.add_argument("--mutant", choices=MUTANTS, default=None, help="plant this bug")
    return parser


def _simulate(mutant: str | None, seed: int) -> Outcome:
    with _planted(mutant):
        return simulate(seed, swarm=_swarm(mutant, seed))


def _planted(mutant: str | None) -> AbstractContextManager[None]:
    return nullcontext() if mutant is None else MUTANTS[mutant].planted()


def _swarm(mutant: str | None, seed: int) -> Swarm | None:
    return None if mutant is None else MUTANTS[mutant].swarm(seed)


def _replay(seed: int, mutant: str | None, *, trace: bool) -> int:
    with _planted(mutant):
        world = build(seed, whole_trace=trace, swarm=_swarm(mutant, seed))
        world.cluster.raises = trace
        try:
            run(world)
        finally:
            if trace:
                _say(world.trace.tail())
        outcome = judged(world)
    _say([str(world.cluster.swarm), *outcome.violations])
    _say([_line([outcome])])
    return 1 if outcome.violations else 0


def _report(outcomes: list[Outcome], seconds: float) -> None:
    for outcome in [each for each in outcomes if each.violations][:STORIES_MAX]:
        _say([outcome.story(), ""])
    failed = [outcome.seed for outcome in outcomes if outcome.violations]
    faults: Counter[str] = Counter()
    worlds: Counter[str] = Counter()
    for outcome in outcomes:
        worlds.update(outcome.kinds)
        for (kind, _), number in outcome.faults.items():
            faults[kind] += number
    _say(f"  {kind:<24} bit {faults[kind]:>8} times in {worlds[kind]:>6} seeds" for kind in sorted(faults))
    if failed:
        _say([f"seeds with violations: {' '.join(map(str, failed))}"])
    _say([f"{_line(outcomes)} ({seconds:.0f} s, {len(outcomes) / seconds * 60:.0f} seeds/min)"])


def _line(outcomes: list[Outcome]) -> str:
    fires = sum(outcome.fires for outcome in outcomes)
    events = sum(outcome.events for outcome in outcomes)
    wrong = sum(len(outcome.violations) for outcome in outcomes)
    return f"{len(outcomes)} seeds, {fires} fires, {events} events, {wrong} violations"


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
