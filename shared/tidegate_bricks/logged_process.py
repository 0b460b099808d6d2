"""A guarded process that writes to a log file, and access to its output there."""

import os
from collections.abc import Sequence
from pathlib import Path

from tidegate_bricks.guarded_process import GuardedProcess

#: Bytes. A log larger than this is renamed at the next start, which drops the renamed log before it.
LOG_BYTES_MAX = 8 * 1024 * 1024
#: Bytes read from a log's end for an error; more than its last lines need.
TAIL_BYTES_MAX = 64 * 1024
#: Lines that an error shows: the head of a Java stack trace, within one screen.
TAIL_LINES_MAX = 25


class LoggedProcess(GuardedProcess):
    """A process that appends its output to a log.

    Attributes:
        log_path: Log, which may also hold output of earlier processes.
    """

    def __init__(self, command: Sequence[str], log_path: Path, inherited: Sequence[int] = ()) -> None:
        self.log_path = log_path
        if log_path.exists() and log_path.stat().st_size > LOG_BYTES_MAX:
            log_path.replace(log_path.with_name(f"{log_path.name}.1"))
        log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._log_start = os.fstat(log).st_size
            super().__init__(command, log, inherited)
        finally:
            os.close(log)

    def last_lines(self) -> str:
        """Returns the last lines that this process printed, at most `TAIL_LINES_MAX`."""
        with self.log_path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, size - TAIL_BYTES_MAX))
            text = log.read().decode("utf-8", errors="replace")
        return "\n".join(text.splitlines()[-TAIL_LINES_MAX:])
