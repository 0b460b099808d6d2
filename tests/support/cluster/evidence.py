"""What programs wrote about themselves (see `evidence_program.py`), as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cluster import evidence_program

PROGRAM = Path(evidence_program.__file__)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A data partition that a program was told it runs for."""

    dataset: str
    data_partition: str
    event_id: str | None


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One process of a program.

    Attributes:
        nominal: ms since the epoch.
        started_at, ended_at: Wall clock in ms since the epoch; no end where it did not come to it.
        started_ns, ended_ns: The host's monotonic clock.
    """

    run_id: str
    attempt: int
    schedule: str
    nominal: int | None
    correlation: str | None
    upstream: str | None
    manifest: tuple[ManifestEntry, ...]
    pid: int
    started_at: int
    started_ns: int
    ended_at: int | None = None
    ended_ns: int | None = None


class Evidence:
    """A folder of evidence; programs may still be writing to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._ended: dict[Path, ProgramRun] = {}

    def target(self, work_s: float = 0.0, dataset: str | None = None) -> dict[str, Any]:
        """Returns the target of a schedule whose program writes here.

        Args:
            work_s: How long it works, in seconds.
            dataset: In which it then announces a data partition.
        """
        arguments = ["--evidence", str(self.folder), "--work-s", str(work_s)]
        arguments += [] if dataset is None else ["--dataset", dataset]
        return {"type": "program", "program": {"type": "python", "file": str(PROGRAM), "args": arguments}}

    def runs(self) -> list[ProgramRun]:
        """Returns all processes that wrote their first line, by start."""
        found = []
        for file in self.folder.glob("*.jsonl"):
            run = self._ended.get(file) or _read(file)
            if run is None:
                continue
            if run.ended_ns is not None:
                self._ended[file] = run  # Nothing is written behind the end.
            found.append(run)
        return sorted(found, key=lambda run: run.started_ns)

    def of(self, *schedules: str) -> list[ProgramRun]:
        return [run for run in self.runs() if run.schedule in schedules]

    def open_runs(self) -> list[ProgramRun]:
        """Returns those that wrote no end yet."""
        return [run for run in self.runs() if run.ended_ns is None]

    def open_at(self, moment: int) -> list[ProgramRun]:
        """Returns those that had begun and not ended at a moment that has passed, ms since the epoch."""
        return [
            run for run in self.runs() if run.started_at <= moment and (run.ended_at is None or run.ended_at > moment)
        ]


def _read(file: Path) -> ProgramRun | None:
    # A line without its end is being written.
    whole = [line for line in file.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
    lines: Iterable[Mapping[str, Any]] = [json.loads(line) for line in whole]
    start = next((line for line in lines if line["what"] == "start"), None)
    end = next((line for line in lines if line["what"] == "end"), None)
    if start is None:
        return None
    return ProgramRun(
        run_id=start["run_id"],
        attempt=start["attempt"],
        schedule=start["schedule"],
        nominal=start["nominal"],
        correlation=start["correlation"],
        upstream=start["upstream"],
        manifest=tuple(ManifestEntry(*entry) for entry in start["manifest"]),
        pid=start["pid"],
        started_at=start["wall_ms"],
        started_ns=start["monotonic_ns"],
        ended_at=None if end is None else end["wall_ms"],
        ended_ns=None if end is None else end["monotonic_ns"],
    )
