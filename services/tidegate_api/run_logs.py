"""Run logs: the port `RunLogs`, and its implementation for the log files of the local launcher."""

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
"""Flags to open a folder only for passing through it. With `O_PATH` this needs no right to list the folder."""
PIECE_BYTES_MAX = 256 * 1024
"""Bytes of one answer; a reader continues at `next_offset`."""
TAIL_BYTES_MAX = 8 * 1024**2
"""Bytes before the end of a log that are searched for its last lines."""
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
    """The log exists and cannot be read; the message says why, and what to do.

    Attributes:
        for_now: Whether a later read may succeed without any change.
    """

    def __init__(self, message: str, *, for_now: bool = False) -> None:
        super().__init__(message)
        self.for_now = for_now


class RunLogs(Protocol):
    """Port for reading logs of runs. Blocking, without a time limit, because a file system may hang."""

    def read(
        self, run_id: str, attempt: int, stream: Stream, offset: int, *, ended: bool, tail: int | None = None
    ) -> Piece | None:
        """Returns a piece of the log from `offset` on, or None if there is no such log on this host.

        Args:
            run_id: Id of the run.
            attempt: Number of the attempt.
            stream: Output or error stream.
            offset: First byte; an offset beyond the end means the end.
            ended: Whether the log is complete; then an incomplete character at the end is returned too.
            tail: Number of last lines to begin with, instead of `offset`; at most 8 MiB are searched.

        Raises:
            LogUnreadable: The log cannot be read.
        """
        ...


class FileLogs:
    """Logs in files of this host, or of a folder that it shares with the nodes."""

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
            way_out = "run it as the nodes' user, or in a group that may read their data_dir"
            raise LogUnreadable(f"this API process may not read {path}; {way_out}") from failure
        except OSError as failure:
            if failure.errno == errno.ELOOP:
                raise _no_file(path) from failure
            detail = f"{path} cannot be read now: {failure.strerror}; repeat the request, and check the disk"
            raise LogUnreadable(detail, for_now=True) from failure
        text, used = decoded(data, whole=ended and start + len(data) >= size)
        return Piece(start, start + used, size, text)


def begin_of_last_lines(file: BinaryIO, size: int, lines: int) -> int:
    """Returns the offset of the last lines of a file. If they are longer than `TAIL_BYTES_MAX`, the first line is cut."""
    if lines == 0:
        return size
    begin, earliest = size, max(0, size - TAIL_BYTES_MAX)
    while begin > earliest:
        block_begin = max(earliest, begin - TAIL_BLOCK_BYTES)
        file.seek(block_begin)
        block = file.read(begin - block_begin)
        # A line break at the end of the file begins no new line.
        at = len(block) - (begin == size)
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            lines -= 1
            if lines == 0:
                return block_begin + at + 1
        begin = block_begin
    return earliest


def _itself(path: str, flags: int) -> int:
    """Opens a file without following any link.

    A program can replace its log, or the folder around it, by a link. Following the link would show files that the program may not read,
    such as the environment of this process. A FIFO is opened without waiting for a writer.
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
    return LogUnreadable(f"{path} is no regular file, but stands in place of the log; remove it")


def decoded(data: bytes, *, whole: bool) -> tuple[str, int]:
    """Returns the decoded UTF-8 text and its number of bytes. A character that is cut at the end is left for the next piece."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=whole)
    left = len(decoder.getstate()[0])
    return text, len(data) - left
