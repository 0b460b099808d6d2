"""`python -m tests.simulation.mutants`: hunts all planted bugs, on all cores, and says what found each."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.hunt import hunt


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 when every mutant was killed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--workers", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("--table", action="store_true", help="print the rows of the published table")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - MUTANTS.keys())
    if unknown:
        parser.error(f"no mutant is called {', '.join(unknown)}")
    names = options.names or list(MUTANTS)
    killed = 0
    with ProcessPoolExecutor(options.workers) as pool:
        for is_killed, line in pool.map(partial(_hunt, table=options.table), names):
            killed += is_killed
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{killed} of {len(names)} killed\n")
    return 0 if killed == len(names) else 1


def _hunt(name: str, *, table: bool) -> tuple[bool, str]:
    try:
        hunted = hunt(MUTANTS[name])
    except Exception as error:  # noqa: BLE001 - a story that breaks off has found nothing
        return False, f"{name}  SURVIVES: its scenario raised {error!r}"
    return hunted.killed_by is not None, hunted.row if table and hunted.killed_by else hunted.line


if __name__ == "__main__":
    sys.exit(main())
