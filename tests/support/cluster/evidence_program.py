"""The program of the cluster tests' schedules: it writes down that it ran, works a moment, and announces what it made.

Started by tidegate like any user's program, with `--evidence <folder> --work-s <seconds> [--dataset <name>]`. Each process
has a file of its own, so that nothing but the file system stands between a second start and its trace.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from tidegate_spark import Context, context, report_partition


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--evidence", type=Path, required=True)
    arguments.add_argument("--work-s", type=float, required=True)
    arguments.add_argument("--dataset")
    given = arguments.parse_args()
    told = context()
    name = f"{told.run.id}-a{told.run.attempt}-{os.getpid()}-{time.monotonic_ns()}.jsonl"
    # O_EXCL: a file that is there already would hide a second start.
    file = os.open(given.evidence / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    _append(file, {"what": "start", **_moment(), **_told(told)})
    time.sleep(given.work_s)
    if given.dataset:
        report_partition(given.dataset, data_partition(told))
    _append(file, {"what": "end", **_moment()})
    os.close(file)


def data_partition(told: Context) -> str:
    """Returns the name of the data partition of an occurrence: its nominal instant in seconds, the same in each dataset."""
    assert told.nominal is not None
    return str(int(told.nominal.timestamp()))


def _told(told: Context) -> dict[str, object]:
    return {
        "run_id": told.run.id,
        "attempt": told.run.attempt,
        "schedule": told.schedule.name,
        "nominal": None if told.nominal is None else round(told.nominal.timestamp() * 1_000),
        "correlation": told.correlation,
        "upstream": None if told.upstream is None else told.upstream.run_id,
        "manifest": [[entry.dataset, entry.partition, entry.event_id] for entry in told.manifest],
        "pid": os.getpid(),
    }


def _moment() -> dict[str, int]:
    # The monotonic clock is one for all processes of a host, and no clock step moves it.
    return {"wall_ms": time.time_ns() // 1_000_000, "monotonic_ns": time.monotonic_ns()}


def _append(file: int, line: dict[str, object]) -> None:
    os.write(file, json.dumps(line).encode() + b"\n")
    os.fsync(file)


if __name__ == "__main__":
    main()
