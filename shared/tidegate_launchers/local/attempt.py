"""One attempt as the operating system shows it: whether it lives, signals to it, and the meaning of its end.

Used by the local launcher, in any node process of the host.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Final, Literal

from tidegate_launchers.local.command import MARKER_VARIABLE
from tidegate_launchers.local.process_table import is_alive, living, members
from tidegate_launchers.local.run_folder import FILE_MODE, Exit, Record, RunFolder
from tidegate_ports.common.shortened_text import cause_in
from tidegate_ports.launcher import SIGNAL_BASE, Ended, class_of_exit

MARKER_NAME: Final = MARKER_VARIABLE.encode()


class Watch:
    """Checks one attempt's processes. All methods block for milliseconds.

    Args:
        folder: Folder of the attempt.
        boot_id: Id of the present boot; processes recorded under another boot id cannot exist any more.
    """

    def __init__(self, folder: RunFolder, boot_id: str) -> None:
        self._folder = folder
        self._marker = os.fsencode(f"{MARKER_VARIABLE}={folder.path}")
        self._boot_id = boot_id
        self._left: frozenset[int] = frozenset()
        """Pids of processes that outlived the program, at the last check."""

    def presence(self) -> Literal["alive", "quiet", "gone"]:
        """Returns whether any process of the attempt lives; "quiet" if only its supervisor does, which is about to
        write the end.
        """
        record = self._folder.record()
        if record is None:
            # Nothing was started here, or the folder was removed while the program runs.
            return "alive" if self._marker in living(MARKER_NAME).carried else "gone"
        if record.boot_id != self._boot_id:
            return "gone"
        # Cheap checks first. All of /proc is read only once the program and its known leftovers have ended; a leftover
        # daemon may live for weeks.
        if is_alive(record.pid, record.started) or self._is_left(record):
            return "alive"
        if self._folder.exit() is None and is_alive(record.supervisor_pid, record.supervisor_started):
            return "quiet"
        return "gone"

    def _is_left(self, record: Record) -> bool:
        for among in (self._left, None):
            found = members(record.pid, record.started, self._marker, among)
            self._left = frozenset(facts.pid for facts in found)
            if found:
                return True
        return False

    def lives_elsewhere(self) -> str | None:
        """Returns the folder of a living process of the attempt that has no record here; None if there is none."""
        run, attempt = self._folder.path.parts[-2:]
        folders = (Path(os.fsdecode(each.removeprefix(MARKER_NAME + b"="))) for each in living(MARKER_NAME).carried)
        return next((str(path) for path in folders if path.parts[-2:] == (run, attempt)), None)

    def _record_of_this_boot(self) -> Record | None:
        record = self._folder.record()
        return record if record is not None and record.boot_id == self._boot_id else None

    def request_cancel(self, grace_s: float) -> float | None:
        """Stores the request durably and returns the seconds of grace left, counted from the first request.

        Returns None if there is no folder: no submission has begun here, and a program that runs elsewhere gets no
        folder.

        Raises:
            OSError: The request cannot be written, and the attempt might still start.
        """
        if not self._folder.path.is_dir():
            return None
        now = time.time_ns() // 1_000_000
        first = self._folder.cancelled_at()
        if first is None:
            try:
                self._folder.write_cancel(now)
            except OSError:
                # The disk is full, perhaps because of this program. A later cancel then restarts the grace.
                if self._folder.record() is None:
                    raise
            first = now
        # Wall clock, because the request outlives processes. A clock that was set back must not lengthen the grace.
        return max(0.0, grace_s - max(0, now - first) / 1000)

    def ask_to_end(self) -> None:
        """Sends SIGTERM once, however many nodes ask. A second SIGTERM would interrupt the program's reaction to the
        first.

        The lock is held until the file `told` exists. Otherwise a node could ask between the signal and the file, and
        send another SIGTERM.
        """
        with self._folder.locked():
            if not self._folder.told.exists():
                self.send(signal.SIGTERM)
                with contextlib.suppress(OSError):  # A full disk must not prevent a later kill.
                    self._folder.told.touch(FILE_MODE)

    def send(self, what: signal.Signals) -> None:
        """Signals the process group, then all processes that left it: PySpark's worker daemon has its own group."""
        record = self._record_of_this_boot()
        if record is None:
            return
        found = members(record.pid, record.started, self._marker)
        # A process that has ended needs no signal. One that cannot be signalled shows as alive at the next check.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if any(facts.group == record.pid for facts in found):
                os.killpg(record.pid, what)
        for facts in found:
            if facts.group != record.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(facts.pid, what)

    def ended(self) -> Ended:
        shutil.rmtree(self._folder.scratch, ignore_errors=True)  # Spill files that a killed Spark could not remove.
        record, ended = self._folder.record(), self._folder.exit()
        # Before the gate both cases are transient: no process of the attempt is left.
        if record is None:
            return Ended(None, None, "transient", "it never started on this host")
        if ended is None:
            reason = f"its end was not seen: {record.host} or the supervisor went down with it"
            return Ended(None, None, "transient", reason)
        return _meaning(ended, self._folder.last_words(), self._folder.last_lines())


def _meaning(ended: Exit, last_words: str, last_lines: str) -> Ended:
    """Returns the meaning of an end. Valid before the gate; after it only the wrapper's report counts, because a user's
    program may exit with 79 too.
    """
    if ended.signal is not None:
        # The code that a shell would report: a run's record has room for a code only.
        code = SIGNAL_BASE + ended.signal
        return Ended(code, ended.signal, "transient", last_words or f"ended by signal {ended.signal}", last_lines)
    code = ended.code or 0
    cause = cause_in(last_lines)
    told = f"exit code {code}: {cause}" if cause else f"exit code {code}"
    return Ended(code, None, class_of_exit(code), last_words or (told if code else ""), last_lines if code else "")
