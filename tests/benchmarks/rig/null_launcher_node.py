"""`python null_launcher_node.py node`: the real node with a launcher that starts nothing and takes no time.

Each submission becomes a line of the file that `BENCH_LAUNCHES` names; `gate_player.py` reads it and plays the programs' part at
the start gate. The launcher is a port, so another one is put in where `bootstrap` makes the local one. Started by its path, so
that a source tree without this file can be measured as well.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from unittest import mock

from tidegate_cli.main import main
from tidegate_node import bootstrap
from tidegate_ports.launcher import Absent, Ended, Found, Launch, Launcher, Placement, ProgramType, launch_name

VARIABLE = "BENCH_LAUNCHES"
HOST = BOOT = "bench"


class QuietLauncher:
    """`tidegate_ports.launcher.Launcher`: writes down what it was asked to start."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._taken: set[tuple[str, int]] = set()

    def refuses(self, program_type: ProgramType, conf: Mapping[str, str]) -> None:
        """Refuses nothing."""

    async def submit(self, launch: Launch) -> Placement:
        if (launch.run_id, launch.attempt) not in self._taken:
            self._taken.add((launch.run_id, launch.attempt))
            line = {
                "run_id": launch.run_id,
                "attempt": launch.attempt,
                "token": launch.token,
                "gate_url": launch.gate_url,
                "nominal": launch.context.get("nominal"),
            }
            # One write, so that the reader sees whole lines.
            os.write(self._file, (json.dumps(line) + "\n").encode())
        return Placement(launch.name, HOST, BOOT)

    async def lookup(self, run_id: str, attempt: int, place: str | None, instance: str | None) -> Found | Absent:
        return (
            Found(Placement(launch_name(run_id, attempt), HOST, BOOT)) if (run_id, attempt) in self._taken else Absent()
        )

    async def wait_until_gone(self, run_id: str, attempt: int) -> NoReturn:
        """Never says so: the end of each run is what its wrapper reports."""
        await asyncio.Event().wait()
        raise AssertionError(f"run {run_id}, attempt {attempt}: nothing sets this event")

    async def cancel(self, run_id: str, attempt: int) -> Ended | Absent:
        return Ended(None, reason="nothing ran") if (run_id, attempt) in self._taken else Absent()


if __name__ == "__main__":
    launcher: Launcher = QuietLauncher(Path(os.environ[VARIABLE]))
    with mock.patch.object(bootstrap, "LocalLauncher", return_value=launcher):
        main()
