"""Removes the folders of attempts that ended: by age, and where they take more room than they may: first those of runs that have more than
a tenth of it, the largest first, then the oldest.

Nobody needs such a folder but people who read its logs: what the attempt came to is in the store once its owner has seen the end. So
that owners see it first, whoever asks says up to when they have, and no age is less than `AGE_S_MIN`; a folder that records no end goes
by age alone, and never while anything of the attempt lives. In a data folder that several hosts mount each looks after its own.
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
"""A run whose folder went before its owner saw the end would be told as one that never started here."""
SHARE_MAX: Final = 0.1
"""Of the room for all runs, up to which the folders of one run count: an endless log would be the end of all others."""
GOING: Final = ".going-"
"""What a folder's name begins with while it is removed: nobody reads half of one."""
BLOCK_BYTES: Final = 512
"""Unit of `st_blocks` (POSIX)."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One folder.

    Attributes:
        record: Which processes it was; None where none was started.
        since_s: When it ended, in epoch seconds; where that is not recorded, when something in it last changed.
        has_ended: Whether its end is recorded.
        size: Room on the disk, in bytes.
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
        # After the list: what began since then is not in it, and of what is in it nothing that is gone now can come back.
        alive = living(MARKER_VARIABLE.encode())
        left = sum(each.size for each in attempts)
        kept, removed, removed_bytes = len(attempts), 0, 0
        gone: set[Path] = set()
        room = self._settings.keep_runs_bytes
        share = int(room * SHARE_MAX)
        of_run = _sizes_by_run(attempts)

        # What one run has beyond its share pushes out nothing of others: it goes itself, or stays and is not counted.
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
                    _remove(path)  # Somebody fell at it.
                elif (attempt := self._attempt_in(RunFolder(path))) is not None:
                    yield attempt

    def _attempt_in(self, folder: RunFolder) -> _Attempt | None:
        try:
            record, ended = folder.record(), folder.exit()
        except OSError:  # Damaged, or of another release: somebody has to look at it.
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
    """Returns what a folder and all in it take on the disk, and when the newest of it last changed."""
    size, changed_s = 0, 0.0
    for folder, _, files in os.walk(path):
        for name in (".", *files):
            with contextlib.suppress(OSError):  # Gone meanwhile.
                found = os.lstat(f"{folder}/{name}")  # A Path for each of 100,000 files takes seconds.
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
    """First out of everybody's sight, so that nobody reads a record without its end; then for good, now or at the next look."""
    going = path if path.name.startswith(GOING) else path.with_name(GOING + path.name)
    with contextlib.suppress(OSError):
        if going != path:
            path.rename(going)
        shutil.rmtree(going, ignore_errors=True)
        if going.exists():
            _open_up(going)
            shutil.rmtree(going, ignore_errors=True)
        path.parent.rmdir()  # The run's own, once it is empty.


def _open_up(path: Path) -> None:
    """A program may have left folders in which nobody may write, as a cache of Go's modules has: what lies in those cannot be removed."""
    path.chmod(FOLDER_MODE)
    for folder, inner, _ in os.walk(path):
        for name in inner:  # Before they are walked through.
            each = Path(folder, name)
            if not each.is_symlink():
                each.chmod(FOLDER_MODE)
