"""Programs of runs that outlive the nodes of a stack.

The local launcher starts each program in its own session, so that a crash of a node does not end it. `Stack.stop` counts these programs,
and ends them if it removes their data.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

END_GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL, before the data of the programs are removed."""

POLL_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class OpenProgram:
    """A running program; its process id is also its process group id."""

    run_id: str
    pid: int


def open_programs(runs: Path) -> list[OpenProgram]:
    """Finds the programs in a launcher's `runs` folder that have no recorded end and still run."""
    found = []
    for record in runs.glob("*/a*/supervisor.json"):
        program = OpenProgram(record.parent.parent.name, _pid(record))
        if not (record.parent / "exit.json").exists() and _lives(program.pid):
            found.append(program)
    return found


def end_programs(programs: Sequence[OpenProgram]) -> None:
    """Ends the process groups of the programs: SIGTERM, a grace period, then SIGKILL."""
    _signal(programs, signal.SIGTERM)
    deadline = time.monotonic() + END_GRACE_S
    while any(_lives(program.pid) for program in programs) and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL_S)
    _signal(programs, signal.SIGKILL)


def _signal(programs: Sequence[OpenProgram], number: signal.Signals) -> None:
    for program in programs:
        with contextlib.suppress(OSError):  # The program may have ended since it was listed.
            os.killpg(program.pid, number)


def _pid(record: Path) -> int:
    try:
        pid = json.loads(record.read_text(encoding="utf-8"))["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return pid if isinstance(pid, int) else 0


def _lives(pid: int) -> bool:
    """Whether the process runs and leads its own group. Each program does; a reused process id rarely does."""
    if pid <= 1:
        return False
    try:
        return os.getpgid(pid) == pid and not _is_zombie(pid)
    except OSError:
        return False


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False
