"""Starts a command under the guard and gives it orders; `child_watcher.py` explains why the command cannot outlive this
process.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

GUARD = Path(__file__).with_name("child_watcher.py")


class GuardedProcess:
    """A running command that dies with this process, even on `kill -9`, and that the terminal's Ctrl-C does not reach.

    Attributes:
        pid: Process id of the command itself (not of its guard).
    """

    def __init__(self, command: Sequence[str], output: int, inherited: Sequence[int] = ()) -> None:
        """Starts the command.

        Args:
            command: Program and arguments.
            output: Descriptor for the command's output; the caller may close its own copy afterwards.
            inherited: Descriptors that the command keeps open while it lives.

        Raises:
            OSError: The command could not be started; `output` says why.
        """
        self._guard = subprocess.Popen(
            # -I and -S: neither the user's environment nor site-packages can change or slow the guard.
            [sys.executable, "-I", "-S", str(GUARD), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            bufsize=0,
            pass_fds=inherited,
            start_new_session=True,
        )
        self.pid = self._read_pid(command[0])

    def _read_pid(self, program: str) -> int:
        assert self._guard.stdout is not None
        with self._guard.stdout as announced:
            line = announced.readline()
        if not line:
            self.close()
            raise OSError(f"{program} could not be started")
        return int(line)

    @property
    def running(self) -> bool:
        return self._guard.poll() is None

    def terminate(self) -> None:
        # Continued first: a stopped process would react to SIGTERM only after it continues.
        self._order(b"CT")

    def kill(self) -> None:
        self._order(b"K")

    def pause(self) -> None:
        self._order(b"S")

    def resume(self) -> None:
        self._order(b"C")

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Returns the command's exit status (128 + n after signal n), or None if it still runs after `timeout_s`."""
        try:
            return self._guard.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Kills the command if it still runs, and frees the pipe. Idempotent."""
        assert self._guard.stdin is not None
        if not self._guard.stdin.closed:
            self._guard.stdin.close()
        self._guard.wait()

    def _order(self, order: bytes) -> None:
        assert self._guard.stdin is not None
        if self._guard.stdin.closed:
            return
        # If the command has ended, the order is void.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._guard.stdin.fileno(), order)
