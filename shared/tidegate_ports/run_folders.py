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
    """Result of a sweep.

    Attributes:
        kept: Attempts with a folder, running ones included.
        kept_bytes: Size of these folders on the disk.
        removed: Attempts whose folder was removed.
        removed_bytes: Size of the removed folders.
        is_over: Whether the folders exceed their room, and none of them may be removed yet.
    """

    kept: int
    kept_bytes: int
    removed: int
    removed_bytes: int
    is_over: bool


class RunFolders(Protocol):
    """The folders of this host's runs."""

    def sweep(self, now_ms: int, seen_through_ms: int) -> Swept | None:
        """Removes folders that are old enough, and further ones if they exceed their room. Blocks for seconds.

        Args:
            now_ms: Present time.
            seen_through_ms: Time up to which owners have seen the ends of attempts. Folders of later ends stay, however
                little room there is.

        Returns:
            Result; None if another process of the host is sweeping.

        Raises:
            OSError: The folder cannot be read.
        """
        ...
