"""`python -m tests.fuzz --records 1000000`: puts so many hostile records through the ingest and prints one line."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from tests.fuzz.hostile_records import KINDS, Kind
from tests.fuzz.ingest_fuzzer import Fuzzed, fuzz

CHUNK = 1_000
"""Records of one actor: its bench remembers all that it was asked."""
SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="a third each on requests, events and sources")
    parser.add_argument("--seed", type=int, default=1, help="of the first 1,000; each further chunk has the next one")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    wanted = parser.parse_args()
    chunks: list[tuple[Kind, int, int]] = [
        (KINDS[number % len(KINDS)], wanted.seed + number, min(CHUNK, wanted.records - begin))
        for number, begin in enumerate(range(0, wanted.records, CHUNK))
    ]
    found = Fuzzed()
    with ProcessPoolExecutor(wanted.workers) as pool:
        for each in pool.map(fuzz, *zip(*chunks, strict=True)):
            found.add(each)
    for fault in found.faults[:SHOWN]:
        sys.stderr.write(f"{fault}\n")
    ways = ", ".join(f"{count} {way}" for way, count in sorted(found.made.items()))
    usages = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    sys.stdout.write(
        f"fuzz: {found.records} records ({ways}): {found.refused} dead letters, {found.records - found.refused} taken, "
        f"{len(found.faults)} faults; seeds {wanted.seed}-{wanted.seed + len(chunks) - 1}, "
        f"{sum(use.ru_utime + use.ru_stime for use in usages):.0f} CPU s\n"
    )
    return 1 if found.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
