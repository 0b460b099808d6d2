"""A guarded process that writes to a log file, and what it wrote there."""

import os
from collections.abc import Sequence
from pathlib import Path

from tidegate_bricks.guarded_process import GuardedProcess

#: A log that has grown beyond this is set aside at the next start; the one before it is dropped. Bytes.
LOG_BYTES_MAX = 8 * 1024 * 1024
#: How much of a log's end is read for an error: more than its last lines need. Bytes.
TAIL_BYTES_MAX = 64 * 1024
#: Lines that an error shows: a Java stack trace's head, and still one screen.
TAIL_LINES_MAX = 25


class LoggedProcess(GuardedProcess):
    """A process that appends what it prints to a log.

    Attributes:
        log_path: The log, which earlier processes may have written to as well.
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
