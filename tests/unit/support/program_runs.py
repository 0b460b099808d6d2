"""Evidence as programs write it, of runs that never were."""

from __future__ import annotations

import json

from tests.support.cluster.evidence import Evidence


def write_run(
    evidence: Evidence, schedule: str, nominal: int, starts_at: int, work_ms: int = 1, process: int = 1
) -> None:
    """Writes the begin and the end of one program; times in ms since the epoch."""
    start = {
        "what": "start",
        "wall_ms": starts_at,
        "monotonic_ns": starts_at * 1_000_000,
        "run_id": f"run-{schedule}-{nominal}",
        "attempt": 1,
        "schedule": schedule,
        "nominal": nominal,
        "correlation": None,
        "upstream": None,
        "manifest": [],
        "pid": process,
    }
    ends_at = starts_at + work_ms
    end = {"what": "end", "wall_ms": ends_at, "monotonic_ns": ends_at * 1_000_000}
    file = evidence.folder / f"{schedule}-{nominal}-{process}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in (start, end)), encoding="utf-8")
