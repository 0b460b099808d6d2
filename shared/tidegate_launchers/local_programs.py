"""The programs of this host, for a node that ends and takes the host along: a container goes with its first process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tidegate_launchers.local_command import MARKER_VARIABLE
from tidegate_launchers.local_files import RunFolder
from tidegate_launchers.local_processes import boot_id, living
from tidegate_launchers.local_settings import LocalSettings
from tidegate_launchers.local_watch import Watch


class LocalPrograms:
    """Implements `tidegate_ports.host_programs.HostPrograms` for the local launcher, by the processes that carry an attempt's marker: what a
    program leaves behind when it has ended is none. Where the system does not tell a process's environment (macOS), there are none.
    """

    def __init__(self, settings: LocalSettings) -> None:
        self._boot_id = boot_id()
        self._runs = settings.data_dir.resolve() / "runs"

    def under_way(self) -> int:
        """See the port."""
        return sum(1 for _ in self._folders())

    def ask_to_end(self) -> int:
        """See the port. Nothing of a cancel is written down: the attempt ends as one that its host had to end."""
        asked = 0
        for folder in self._folders():
            Watch(folder, self._boot_id).send(signal.SIGTERM)
            asked += 1
        return asked

    def _folders(self) -> Iterator[RunFolder]:
        name = MARKER_VARIABLE.encode()
        for carried in sorted(living(name).carried):
            path = Path(os.fsdecode(carried.removeprefix(name + b"=")))
            if path.is_relative_to(self._runs):
                folder = RunFolder(path)
                if folder.exit() is None:
                    yield folder
