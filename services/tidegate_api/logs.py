"""Run logs: a port, so that launchers whose logs lie elsewhere can come, and the files of the local launcher."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from tidegate_ports.launcher import LogPaths

Stream: TypeAlias = Literal["stdout", "stderr"]

PIECE_BYTES_MAX = 256 * 1024
"""Of one answer; a reader follows `next_offset`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes `offset` to `next_offset` of a log that has `size` bytes now, as text."""

    offset: int
    next_offset: int
    size: int
    text: str


class RunLogs(Protocol):
    """Where runs' logs are read. Blocking."""

    def read(self, run_id: str, attempt: int, stream: Stream, offset: int, *, ended: bool) -> Piece | None:
        """Returns the piece from `offset` on, or None when there is no such log here.

        Args:
            run_id: The run.
            attempt: Its attempt.
            stream: Which of its two logs.
            offset: First byte wanted; beyond the end is the end.
            ended: Nothing comes any more: a half character at the end is given out, too.
        """
        ...


class FileLogs:
    """Logs in files of this host (or of a folder that it shares with the nodes)."""

    def __init__(self, paths: Callable[[str, int], LogPaths]) -> None:
        self._paths = paths

    def read(self, run_id: str, attempt: int, stream: Stream, offset: int, *, ended: bool) -> Piece | None:
        path = Path(getattr(self._paths(run_id, attempt), stream))
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                start = min(offset, size)
                file.seek(start)
                data = file.read(PIECE_BYTES_MAX)
        except (FileNotFoundError, NotADirectoryError):
            return None
        text, used = decoded(data, whole=ended and start + len(data) >= size)
        return Piece(start, start + used, size, text)


def decoded(data: bytes, *, whole: bool) -> tuple[str, int]:
    """Returns UTF-8 text and the bytes that it took; a character that is cut at the end waits for its rest."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=whole)
    left = len(decoder.getstate()[0])
    return text, len(data) - left
