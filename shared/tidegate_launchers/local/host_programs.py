"""The programs of this host, for a node that ends and takes the host along: a container goes with its first process."""

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
    """Implements `tidegate_ports.host_programs.HostPrograms` for the local launcher, by what processes carry: a supervisor from its start
    on, a program from its own. What a program leaves behind when it has ended is none. Where the system does not tell a
    process's environment (macOS), there are none.
    """

    def __init__(self, settings: LocalSettings) -> None:
        self._boot_id = boot_id()
        self._runs = settings.data_dir.resolve() / "runs"
        self._asked: set[Path] = set()

    def under_way(self) -> int:
        """See the port."""
        return sum(1 for _ in self._folders())

    def ask_to_end(self) -> None:
        """See the port. Nothing of a cancel is written down: the attempt ends as one that its host had to end."""
        for folder in self._folders():
            # Without a record it is being started: it is asked at a later look.
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
    except OSError:  # Nothing can be sent by it, and others are to be asked all the same.
        return False


def _has_ended(folder: RunFolder) -> bool:
    try:
        return folder.exit() is not None
    except OSError:  # It lives.
        return False
