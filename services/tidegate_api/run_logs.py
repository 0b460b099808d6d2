"""Run logs: a port, so that launchers whose logs lie elsewhere can come, and the files of the local launcher."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, Protocol, TypeAlias

from tidegate_ports.run_folders import LogPaths

Stream: TypeAlias = Literal["stdout", "stderr"]

_FOLDER: Final = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a folder to go through it, which one may also where one may not list it, if the system has words for that."""
PIECE_BYTES_MAX = 256 * 1024
"""Of one answer; a reader follows `next_offset`."""
TAIL_BYTES_MAX = 8 * 1024**2
"""How far from its end a log is looked through for its last lines."""
TAIL_BLOCK_BYTES = 64 * 1024
TAIL_LINES_MAX = 10_000


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

    def read(
        self, run_id: str, attempt: int, stream: Stream, offset: int, *, ended: bool, tail: int | None = None
    ) -> Piece | None:
        """Returns the piece from `offset` on, or None when there is no such log here.

        Args:
            run_id: The run.
            attempt: Its attempt.
            stream: Which of its two logs.
            offset: First byte wanted; beyond the end is the end.
            ended: Nothing comes any more: a half character at the end is given out, too.
            tail: Instead of the offset: begin with this line from the end, 8 MiB before it at most.

        Raises:
            LogUnreadable: It cannot be read.
        """
        ...


class FileLogs:
    """Logs in files of this host (or of a folder that it shares with the nodes)."""

    def __init__(self, paths: Callable[[str, int], LogPaths]) -> None:
        self._paths = paths

    def read(
        self, run_id: str, attempt: int, stream: Stream, offset: int, *, ended: bool, tail: int | None = None
    ) -> Piece | None:
        path = Path(getattr(self._paths(run_id, attempt), stream))
        try:
            with open(path, "rb", opener=_itself) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise _no_file(path)
                size = file.seek(0, 2)
                start = min(offset, size) if tail is None else begin_of_last_lines(file, size, tail)
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


def begin_of_last_lines(file: BinaryIO, size: int, lines: int) -> int:
    """Returns where the last lines of a file begin; of lines that are too long for `TAIL_BYTES_MAX` the first one is cut."""
    if lines == 0:
        return size
    begin, earliest = size, max(0, size - TAIL_BYTES_MAX)
    while begin > earliest:
        block_begin = max(earliest, begin - TAIL_BLOCK_BYTES)
        file.seek(block_begin)
        block = file.read(begin - block_begin)
        # A line break at the very end ends the last line, and begins none.
        at = len(block) - (begin == size)
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            lines -= 1
            if lines == 0:
                return block_begin + at + 1
        begin = block_begin
    return earliest


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
