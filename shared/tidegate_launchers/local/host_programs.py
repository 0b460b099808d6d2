"""Programs of this host, for a node whose end also ends the host: a container stops with its first process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tidegate_launchers.local.attempt import Watch
from tidegate_launchers.local.command import MARKER_VARIABLE, SUPERVISOR_VARIABLE
from tidegate_launchers.local.process_table import boot_id, living
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings


class LocalPrograms:
    """Implements `tidegate_ports.host_programs.HostPrograms` for the local launcher.

    It finds attempts by the variables that processes carry: a supervisor from its start, a program from its own start.
    Processes that outlive their program do not count. Where the system does not show a process's environment (macOS),
    it finds none.
    """

    def __init__(self, settings: LocalSettings) -> None:
        self._boot_id = boot_id()
        self._runs = settings.data_dir.resolve() / "runs"
        self._asked: set[Path] = set()

    def under_way(self) -> int:
        """See the port."""
        return sum(1 for _ in self._folders())

    def ask_to_end(self) -> None:
        """See the port. No cancel is recorded: the attempt ends as one that its host had to end."""
        for folder in self._folders():
            # Without a record the attempt is still being started; a later call asks it.
            if folder.path not in self._asked and _is_started(folder):
                self._asked.add(folder.path)
                Watch(folder, self._boot_id).send(signal.SIGTERM)

    def _folders(self) -> Iterator[RunFolder]:
        carried = {
            _folder_of(each)
            for name in (SUPERVISOR_VARIABLE, MARKER_VARIABLE)
            for each in living(name.encode()).carried
        }
        for path in sorted(carried):
            if path.is_relative_to(self._runs) and not _has_ended(folder := RunFolder(path)):
                yield folder


def _folder_of(carried: bytes) -> Path:
    return Path(os.fsdecode(carried.partition(b"=")[2]))


def _is_started(folder: RunFolder) -> bool:
    try:
        return folder.record() is not None
    except OSError:  # No signal can be sent with this record; the other programs are still asked.
        return False


def _has_ended(folder: RunFolder) -> bool:
    try:
        return folder.exit() is not None
    except OSError:  # Counts as alive.
        return False
