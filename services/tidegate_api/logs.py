"""Run logs: a port, so that launchers whose logs lie elsewhere can come, and the files of the local launcher."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from tidegate_ports.run_folders import LogPaths

Stream: TypeAlias = Literal["stdout", "stderr"]

_FOLDER: Final = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a folder to go through it, which one may also where one may not list it, if the system has words for that."""
PIECE_BYTES_MAX = 256 * 1024
"""Of one answer; a reader follows `next_offset`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes `offset` to `next_offset` of a log that has `size` bytes now, as text."""

    offset: int
    next_offset: int
    size: int
    text: str


class LogUnreadable(Exception):
    """There is something in the log's place, and this process cannot read it; the message says why, and what to do.

    Attributes:
        for_now: Whether a later read may succeed with nobody doing anything.
    """

    def __init__(self, message: str, *, for_now: bool = False) -> None:
        super().__init__(message)
        self.for_now = for_now


class RunLogs(Protocol):
    """Where runs' logs are read. Blocking, for as long as their file system likes."""

    def read(self, run_id: str, attempt: int, stream: Stream, offset: int, *, ended: bool) -> Piece | None:
        """Returns the piece from `offset` on, or None when there is no such log here.

        Args:
            run_id: The run.
            attempt: Its attempt.
            stream: Which of its two logs.
            offset: First byte wanted; beyond the end is the end.
            ended: Nothing comes any more: a half character at the end is given out, too.

        Raises:
            LogUnreadable: It cannot be read.
        """
        ...


class FileLogs:
    """Logs in files of this host (or of a folder that it shares with the nodes)."""

    def __init__(self, paths: Callable[[str, int], LogPaths]) -> None:
        self._paths = paths

    def read(self, run_id: str, attempt: int, stream: Stream, offset: int, *, ended: bool) -> Piece | None:
        path = Path(getattr(self._paths(run_id, attempt), stream))
        try:
            with open(path, "rb", opener=_itself) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise _no_file(path)
                size = file.seek(0, 2)
                start = min(offset, size)
                file.seek(start)
                data = file.read(PIECE_BYTES_MAX)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except IsADirectoryError as failure:
            raise _no_file(path) from failure
        except PermissionError as failure:
            way_out = "let it run as the nodes' user, or in a group that may read their data_dir"
            raise LogUnreadable(f"this API process may not read {path}; {way_out}") from failure
        except OSError as failure:
            if failure.errno == errno.ELOOP:
                raise _no_file(path) from failure
            detail = f"{path} cannot be read now: {failure.strerror}; repeat the request, and check the disk"
            raise LogUnreadable(detail, for_now=True) from failure
        text, used = decoded(data, whole=ended and start + len(data) >= size)
        return Piece(start, start + used, size, text)


def _itself(path: str, flags: int) -> int:
    """Opens what lies there, and nothing that a link leads to. A program can put one in the place of its log, or of the folder around it, and
    have this process show what it itself may not read, such as this process's environment. A FIFO is opened, too, without waiting for
    somebody who writes.
    """
    root, *folders, name = Path(path).parts
    around = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=around)
            os.close(around)
            around = inner
        return os.open(name, flags | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=around)
    finally:
        os.close(around)


def _no_file(path: Path) -> LogUnreadable:
    return LogUnreadable(f"{path} is no file: something has taken the log's place; remove it")


def decoded(data: bytes, *, whole: bool) -> tuple[str, int]:
    """Returns UTF-8 text and the bytes that it took; a character that is cut at the end waits for its rest."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=whole)
    left = len(decoder.getstate()[0])
    return text, len(data) - left
