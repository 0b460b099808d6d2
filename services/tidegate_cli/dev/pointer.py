"""The pointer file of a running stack: tells other commands of the same user where it is (`local_stacks` reads it)."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

from tidegate_bricks.locks import FileLock
from tidegate_cli.dev.events import Ready

FILE_MODE = 0o600


class Pointer:
    """A file of one stack's own, locked until the stack ends: a stack that was killed leaves a file that nobody holds.

    Args:
        folder: Folder of the pointer files of all stacks.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"{uuid4().hex}.json"
        self._lock = FileLock(self._path.with_suffix(".new"))

    def write(self, ready: Ready) -> None:
        """Writes and locks the file, and takes away those that killed stacks have left. Raises OSError."""
        self._remove_left_ones()
        self._lock.acquire(timeout_s=0)
        # Locked and whole before it has its name: unlocked, another stack that starts would take it away.
        os.fchmod(self._lock.descriptor, FILE_MODE)
        os.write(self._lock.descriptor, json.dumps(asdict(ready), indent=1).encode() + b"\n")
        self._lock.path.replace(self._path)

    def remove(self) -> None:
        """May be called again, and where nothing was written."""
        with suppress(OSError):
            # Unlocked it counts for nothing anyhow.
            self._path.unlink(missing_ok=True)
        self._lock.release()

    def _remove_left_ones(self) -> None:
        for path in self._folder.glob("*.json"):
            lock = FileLock(path)
            if lock.acquire(timeout_s=0):
                path.unlink(missing_ok=True)
                lock.release()
