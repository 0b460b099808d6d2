"""One measurement with all that one must know to set it beside another: a JSON line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.rig.workload import Case, Figures, Size, Workload

GIT_TIMEOUT_S = 30.0
DIGITS = 6
"""Of a figure, those that mean something."""


@dataclass(frozen=True, slots=True)
class Result:
    """One case of a workload.

    Attributes:
        at: When it began, UTC.
        revision: Short hash of what was measured; `+` behind it where the tree was changed since.
        load_before, load_after: The machine's 1-minute load average, the benchmark's own part included in the second.
        figures: By name, the unit last; None where the revision cannot say.
    """

    workload: str
    case: str
    size: Size
    at: str
    revision: str
    cores: int
    load_before: float
    load_after: float
    seconds: float
    parameters: Mapping[str, Any]
    figures: Figures

    def line(self) -> str:
        return json.dumps(asdict(self), sort_keys=False)

    @property
    def name(self) -> str:
        return f"{self.workload} {self.case}".strip()


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known before a measurement."""

    at: datetime
    load: float


def begin() -> Begun:
    return Begun(datetime.now(UTC), os.getloadavg()[0])


def result_of(workload: Workload, case: Case, size: Size, begun: Begun, revision: str, figures: Figures) -> Result:
    """Returns the finished measurement; figures are rounded to what means something."""
    return Result(
        workload=workload.name,
        case=case.label,
        size=size,
        at=begun.at.isoformat(timespec="seconds"),
        revision=revision,
        cores=os.cpu_count() or 0,
        load_before=round(begun.load, 2),
        load_after=round(os.getloadavg()[0], 2),
        seconds=round((datetime.now(UTC) - begun.at).total_seconds(), 1),
        parameters={**case.parameters, "shards": case.shards},
        figures={name: None if value is None else float(f"{value:.{DIGITS}g}") for name, value in figures.items()},
    )


def result_from(line: str) -> Result:
    """Returns the result that a JSON line holds."""
    return Result(**json.loads(line))


def revision_of(tree: Path) -> str:
    """Returns the short hash of a tree's commit, with `+` where it was changed since; `unknown` where there is no git."""
    try:
        commit = git(tree, "rev-parse", "--short", "HEAD")
        return commit + ("+" if git(tree, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def git(tree: Path, *arguments: str) -> str:
    """Runs git in a tree and returns what it prints.

    Raises:
        subprocess.CalledProcessError: Git refused.
    """
    command = ["git", "-C", str(tree), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=GIT_TIMEOUT_S)
    return done.stdout.strip()
