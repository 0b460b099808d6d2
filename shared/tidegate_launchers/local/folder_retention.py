"""Removes the folders of ended attempts by age, and by size when they exceed their room.

By size, folders of runs that use more than a tenth of the room go first, the largest run first, then the oldest.

Only readers of logs need these folders: the attempt's result is in the store once its owner has seen the end. So that
owners see it first, the caller states up to which time they have, and no folder goes before `AGE_S_MIN`. A folder
without a recorded end goes by age alone, and no folder goes while a process of the attempt lives. In a data folder that
several hosts mount, each host removes only its own folders.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate_launchers.local.command import MARKER_VARIABLE
from tidegate_launchers.local.process_table import Living, boot_id, living
from tidegate_launchers.local.run_folder import FILE_MODE, FOLDER_MODE, Record, RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.run_folders import Swept

AGE_S_MIN: Final = 3_600.0
"""Least age of a removed folder. If a folder went before the run's owner saw the end, the run would be reported as
never started here."""
SHARE_MAX: Final = 0.1
"""Share of the room up to which one run's folders count. Otherwise one endless log would push out the folders of all
other runs."""
GOING: Final = ".going-"
"""Prefix of a folder's name during its removal, so that no reader finds half a folder."""
BLOCK_BYTES: Final = 512
"""Unit of `st_blocks` (POSIX)."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Folder of one attempt.

    Attributes:
        folder: The folder.
        record: Record of its processes; None if none was started.
        since_s: End in epoch seconds; without a recorded end, the last change of any file in it.
        has_ended: Whether its end is recorded.
        size: Size on the disk, in bytes.
    """

    folder: RunFolder
    record: Record | None
    since_s: float
    has_ended: bool
    size: int

    @property
    def run(self) -> Path:
        """The folder of all attempts of its run."""
        return self.folder.path.parent


class LocalKeeping:
    """Implements `tidegate_ports.run_folders.RunFolders` for the local launcher."""

    def __init__(self, settings: LocalSettings) -> None:
        self._settings = settings
        self._boot_id = boot_id()
        self._runs = settings.data_dir.resolve() / "runs"

    def sweep(self, now_ms: int, seen_through_ms: int) -> Swept | None:
        """See the port."""
        self._runs.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        lock = os.open(self._runs / ".sweep", os.O_RDWR | os.O_CREAT, FILE_MODE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        else:
            return self._sweep(now_ms / 1000, seen_through_ms / 1000)
        finally:
            os.close(lock)

    def _sweep(self, now_s: float, seen_through_s: float) -> Swept:
        attempts = sorted(self._attempts(), key=lambda each: each.since_s)
        # Read after the list: attempts that begin later are not in the list, and a dead attempt in it cannot come
        # alive.
        alive = living(MARKER_VARIABLE.encode())
        left = sum(each.size for each in attempts)
        kept, removed, removed_bytes = len(attempts), 0, 0
        gone: set[Path] = set()
        room = self._settings.keep_runs_bytes
        share = int(room * SHARE_MAX)
        of_run = _sizes_by_run(attempts)

        # The part of a run above its share does not push out other runs: its own folders go, or they stay uncounted.
        counted = sum(min(size, share) for size in of_run.values())
        largest_first = sorted(attempts, key=lambda each: (-of_run[each.run], each.since_s))
        for attempt in [*(each for each in largest_first if of_run[each.run] > share), *attempts]:
            if attempt.folder.path in gone:
                continue
            is_old = now_s - attempt.since_s >= max(self._settings.keep_runs_for_s, AGE_S_MIN)
            is_too_much = left > room and (of_run[attempt.run] > share or counted > room)
            is_seen = attempt.has_ended and attempt.since_s <= seen_through_s
            if (is_old or (is_too_much and is_seen)) and not _lives(attempt, alive, self._boot_id):
                _remove(attempt.folder.path)
                gone.add(attempt.folder.path)
                before = of_run[attempt.run]
                of_run[attempt.run] -= attempt.size
                counted -= min(before, share) - min(of_run[attempt.run], share)
                left -= attempt.size
                removed_bytes += attempt.size
                kept, removed = kept - 1, removed + 1
        return Swept(kept, left, removed, removed_bytes, is_over=left > self._settings.keep_runs_bytes)

    def _attempts(self) -> Iterator[_Attempt]:
        for run in _folders_in(self._runs):
            for path in _folders_in(run):
                if path.name.startswith(GOING):
                    _remove(path)  # An earlier removal was interrupted.
                elif (attempt := self._attempt_in(RunFolder(path))) is not None:
                    yield attempt

    def _attempt_in(self, folder: RunFolder) -> _Attempt | None:
        try:
            record, ended = folder.record(), folder.exit()
        except OSError:  # Damaged, or of another release: left for an operator.
            return None
        if record is not None and record.host != self._settings.host:
            return None
        size, changed_s = _size_of(folder.path)
        return _Attempt(folder, record, changed_s if ended is None else ended.at / 1000, ended is not None, size)


def _sizes_by_run(attempts: Iterable[_Attempt]) -> dict[Path, int]:
    sizes: dict[Path, int] = {}
    for attempt in attempts:
        sizes[attempt.run] = sizes.get(attempt.run, 0) + attempt.size
    return sizes


def _folders_in(path: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError), os.scandir(path) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def _size_of(path: Path) -> tuple[int, float]:
    """Returns the size of a folder with all its files on the disk, and the time of the newest change."""
    size, changed_s = 0, 0.0
    for folder, _, files in os.walk(path):
        for name in (".", *files):
            with contextlib.suppress(OSError):  # Removed since the walk.
                found = os.lstat(f"{folder}/{name}")  # A Path for each of 100,000 files would take seconds.
                size += found.st_blocks * BLOCK_BYTES
                changed_s = max(changed_s, found.st_mtime)
    return size, changed_s


def _lives(attempt: _Attempt, alive: Living, boot: str) -> bool:
    record = attempt.record
    if os.fsencode(f"{MARKER_VARIABLE}={attempt.folder.path}") in alive.carried:
        return True
    if record is None or record.boot_id != boot:
        return False
    return alive.has(record.pid, record.started) or alive.has(record.supervisor_pid, record.supervisor_started)


def _remove(path: Path) -> None:
    """Renames the folder, so that no reader finds a record without its end, then deletes it; a later sweep deletes
    leftovers.
    """
    going = path if path.name.startswith(GOING) else path.with_name(GOING + path.name)
    with contextlib.suppress(OSError):
        if going != path:
            path.rename(going)
        shutil.rmtree(going, ignore_errors=True)
        if going.exists():
            _open_up(going)
            shutil.rmtree(going, ignore_errors=True)
        path.parent.rmdir()  # The run's folder; fails unless it is empty.


def _open_up(path: Path) -> None:
    """Makes all folders writable: a program may leave read-only folders, such as Go's module cache, whose files cannot
    be deleted.
    """
    path.chmod(FOLDER_MODE)
    for folder, inner, _ in os.walk(path):
        for name in inner:  # Before the walk enters them.
            each = Path(folder, name)
            if not each.is_symlink():
                each.chmod(FOLDER_MODE)
