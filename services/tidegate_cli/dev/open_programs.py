"""Programs of runs that outlive the nodes: the local launcher keeps each in a session of its own, so that a node's crash
does not take it along. Here they are counted when a stack stops, and ended when its data go.
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
"""Between SIGTERM and SIGKILL when the data of the programs are about to be removed."""

POLL_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class OpenProgram:
    """A program that still runs; its process id is also its process group's."""

    run_id: str
    pid: int


def open_programs(runs: Path) -> list[OpenProgram]:
    """Finds the programs of a launcher's `runs` folder that have no recorded end and still live."""
    found = []
    for record in runs.glob("*/a*/supervisor.json"):
        program = OpenProgram(record.parent.parent.name, _pid(record))
        if not (record.parent / "exit.json").exists() and _lives(program.pid):
            found.append(program)
    return found


def end_programs(programs: Sequence[OpenProgram]) -> None:
    """Ends the programs with all of their process groups: SIGTERM, a grace, then SIGKILL."""
    _signal(programs, signal.SIGTERM)
    deadline = time.monotonic() + END_GRACE_S
    while any(_lives(program.pid) for program in programs) and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL_S)
    _signal(programs, signal.SIGKILL)


def _signal(programs: Sequence[OpenProgram], number: signal.Signals) -> None:
    for program in programs:
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            os.killpg(program.pid, number)


def _pid(record: Path) -> int:
    try:
        pid = json.loads(record.read_text(encoding="utf-8"))["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return pid if isinstance(pid, int) else 0


def _lives(pid: int) -> bool:
    """Whether the process leads its own group, as each program does: a reused process id hardly would."""
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
