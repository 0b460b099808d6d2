"""`python -m tests.fuzz.on_cluster --records 1000000`: hostile records against real processes; one line, exit 1 on a fault."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.cluster_campaign import fuzz_cluster
from tests.support.cluster.cluster import Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.user_client import Client

SHOWN = 20


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 when nothing was found, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.on_cluster", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="a third each on requests, events and a source")
    parser.add_argument("--minutes", type=float, default=600.0, help="no round of records begins later")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first topic partition; each further has the next one"
    )
    parser.add_argument("--nodes", type=int, default=2, help="that serve (default %(default)s)")
    parser.add_argument("--folder", type=Path, default=None, help="for all that is written (default: a temporary one)")
    options = parser.parse_args(arguments)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="tidegate-fuzz-"))
    _say(f"seed {options.seed}; everything that is written lies in {folder}")
    with (
        Cluster(folder, options.nodes) as cluster,
        Client(cluster.bootstrap_servers, folder / "acknowledged.jsonl") as client,
    ):
        evidence = Evidence(folder / "evidence")
        found = fuzz_cluster(cluster, client, evidence, options.seed, options.records, options.minutes * 60, _progress)
    for fault in found.faults[:SHOWN]:
        _say(fault)
    for what, counts in (
        ("refused behind the parsers", found.judged.behind),
        ("refused by the broker", found.not_taken),
    ):
        _say(f"{what}: {dict(counts)}")
    _say(f"fuzz-cluster: {found.line()}; seed {options.seed}")
    return 1 if found.faults else 0


def _progress(line: str) -> None:
    sys.stderr.write(f"\r{line}")
    sys.stderr.flush()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
