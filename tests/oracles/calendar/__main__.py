"""`python -m tests.oracles.calendar --triples 1000000`: asks a number of random questions and prints one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from tests.oracles.calendar.comparison import SHOWN, Comparison, compare
from tests.oracles.calendar.random_questions import FIRST_YEAR, LAST_YEAR, zones

CHUNK = 5_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.oracles.calendar", description=__doc__)
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first 5,000; each further chunk has the next one")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    wanted = parser.parse_args()
    chunks = [min(CHUNK, wanted.triples - begin) for begin in range(0, wanted.triples, CHUNK)]
    seeds = range(wanted.seed, wanted.seed + len(chunks))
    done = list(_compared(wanted.workers, seeds, chunks))
    for story in [story for each in done for story in each.stories][:SHOWN]:
        sys.stderr.write(f"{story}\n")
    differences = sum(each.differences for each in done)
    usages = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    sys.stdout.write(
        f"oracle: {sum(each.triples for each in done)} triples, {sum(each.fires for each in done)} fires, {len(zones())} zones, "
        f"{FIRST_YEAR}-{LAST_YEAR}: {differences} differences; {sum(use.ru_utime + use.ru_stime for use in usages):.0f} CPU s\n"
    )
    return 1 if differences else 0


def _compared(workers: int, seeds: range, chunks: list[int]) -> Iterator[Comparison]:
    if workers == 1:
        yield from map(compare, seeds, chunks)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(compare, seeds, chunks)


if __name__ == "__main__":
    raise SystemExit(main())
