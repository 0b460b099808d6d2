"""`make mutants`: hunts planted bugs on all cores, prints what found each, and writes the table `build/mutants.md`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.hunt import Hunt
from tests.simulation.mutants.parallel_hunt import hunt_all

TABLE: Final = Path("build/mutants.md")


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 when every bug was found, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--workers", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; then no table is written")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - MUTANTS.keys())
    if unknown:
        parser.error(f"no mutant is called {', '.join(unknown)}")
    names = options.names or list(MUTANTS)
    hunts: dict[str, Hunt] = {}
    for hunted in hunt_all([MUTANTS[name] for name in names], options.workers):
        hunts[hunted.mutant.name] = hunted
        sys.stdout.write(f"{hunted.line}\n")
        sys.stdout.flush()
    in_order = [hunts[name] for name in names]
    sys.stdout.write(f"{_score(in_order)}\n")
    if not options.names:
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(_table(in_order), encoding="utf-8")
        sys.stdout.write(f"table: {TABLE}\n")
    return 0 if all(hunted.killed_by for hunted in in_order) else 1


def _score(hunts: Sequence[Hunt]) -> str:
    return f"{sum(hunted.killed_by is not None for hunted in hunts)} of {len(hunts)} killed"


def _table(hunts: Sequence[Hunt]) -> str:
    head = f"# Planted bugs\n\nWritten by `make mutants`: {_score(hunts)}.\n\n| bug | what goes wrong | breaks | killed by |\n|---|---|---|---|\n"
    return head + "".join(f"{hunted.row}\n" for hunted in hunts)


if __name__ == "__main__":
    sys.exit(main())
