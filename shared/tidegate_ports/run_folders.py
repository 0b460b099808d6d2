"""Folders of runs on a host: the logs in them, and the removal of old ones.

Only launchers that keep a run's files on a host have such folders, so this is no part of the launcher port.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LogPaths:
    """Absolute paths of the files with a program's output; they exist once the attempt was submitted."""

    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Swept:
    """What a look found.

    Attributes:
        kept: Attempts whose folder is still there, running ones included.
        kept_bytes: Room that these take on the disk.
        removed: Attempts whose folder is gone now.
        removed_bytes: Room that these gave back.
        is_over: More is kept than may be, and nothing of it can go yet.
    """

    kept: int
    kept_bytes: int
    removed: int
    removed_bytes: int
    is_over: bool


class RunFolders(Protocol):
    """The folders of this host's runs."""

    def sweep(self, now_ms: int, seen_through_ms: int) -> Swept | None:
        """Removes what has been kept long enough, and the oldest beyond the room that there is. Blocking, for seconds.

        Args:
            now_ms: The time.
            seen_through_ms: Owners have seen the ends of attempts that ended up to here: others stay, however little room there is.

        Returns:
            None: another process of the host is at it.

        Raises:
            OSError: The folder cannot be looked through.
        """
        ...
