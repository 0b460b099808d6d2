"""One attempt as the operating system shows it: does it live, signal it, and what its end means.

Used by the local launcher, from any node process of the host.
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
    """Looks at one attempt's processes. All methods block for milliseconds.

    Args:
        folder: The attempt's folder.
        boot_id: This boot: records of another one are about processes that cannot exist any more.
    """

    def __init__(self, folder: RunFolder, boot_id: str) -> None:
        self._folder = folder
        self._marker = os.fsencode(f"{MARKER_VARIABLE}={folder.path}")
        self._boot_id = boot_id
        self._left: frozenset[int] = frozenset()
        """Pids of what outlived the program, at the last look."""

    def presence(self) -> Literal["alive", "quiet", "gone"]:
        """Says whether anything of the attempt lives; "quiet" while only its supervisor does, about to write the end."""
        record = self._folder.record()
        if record is None:
            # Nothing has started here; or somebody has removed the folder of what runs.
            return "alive" if self._marker in living(MARKER_NAME).carried else "gone"
        if record.boot_id != self._boot_id:
            return "gone"
        # The cheap questions first: all of /proc is read only once the program itself, and what was seen of it last, has ended. What it has left
        # behind, a daemon say, may stay for weeks.
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
        """Returns the folder under which something of the attempt lives that has no record here; None when nothing is seen."""
        run, attempt = self._folder.path.parts[-2:]
        folders = (Path(os.fsdecode(each.removeprefix(MARKER_NAME + b"="))) for each in living(MARKER_NAME).carried)
        return next((str(path) for path in folders if path.parts[-2:] == (run, attempt)), None)

    def _record_of_this_boot(self) -> Record | None:
        record = self._folder.record()
        return record if record is not None and record.boot_id == self._boot_id else None

    def request_cancel(self, grace_s: float) -> float | None:
        """Makes the request durable and returns how many seconds of the grace are left, counted from the first one.

        None when there is no folder: no submission has begun here, and no folder is made for one that runs elsewhere.

        Raises:
            OSError: It cannot be written, and without it the attempt might still start.
        """
        if not self._folder.path.is_dir():
            return None
        now = time.time_ns() // 1_000_000
        first = self._folder.cancelled_at()
        if first is None:
            try:
                self._folder.write_cancel(now)
            except OSError:
                # A disk that is full, of what this very program writes perhaps. Whoever goes on with it begins the grace anew.
                if self._folder.record() is None:
                    raise
            first = now
        # A wall clock, because the request outlives processes; one that was set back must not lengthen the grace.
        return max(0.0, grace_s - max(0, now - first) / 1000)

    def ask_to_end(self) -> None:
        """Sends SIGTERM once, however many nodes ask: a second one would cut off what the program does about the first.

        The lock lasts until `told` is there. Without it, a node could ask between the signal and that file, and send another one.
        """
        with self._folder.locked():
            if not self._folder.told.exists():
                self.send(signal.SIGTERM)
                with contextlib.suppress(OSError):  # A full disk must not keep it from being killed.
                    self._folder.told.touch(FILE_MODE)

    def send(self, what: signal.Signals) -> None:
        """Signals the group at once, then everything that left it: PySpark's worker daemon has a group of its own."""
        record = self._record_of_this_boot()
        if record is None:
            return
        found = members(record.pid, record.started, self._marker)
        # A process that is gone is what we want; one that we may not signal shows as alive at the next look.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if any(facts.group == record.pid for facts in found):
                os.killpg(record.pid, what)
        for facts in found:
            if facts.group != record.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(facts.pid, what)

    def ended(self) -> Ended:
        shutil.rmtree(self._folder.scratch, ignore_errors=True)  # What Spark could not clean up when it was killed.
        record, ended = self._folder.record(), self._folder.exit()
        # Before the gate both are accidents like any other: whatever it was, nothing of it is left.
        if record is None:
            return Ended(None, None, "transient", "it never started on this host")
        if ended is None:
            reason = f"its end was not seen: {record.host} or the supervisor went down with it"
            return Ended(None, None, "transient", reason)
        return _meaning(ended, self._folder.last_words(), self._folder.last_lines())


def _meaning(ended: Exit, last_words: str, last_lines: str) -> Ended:
    """After the gate only the wrapper's report counts: a user's program may exit with 79 as well."""
    if ended.signal is not None:
        # The code that a shell would give: a run's record has room for a code only, and "no code" says nothing.
        code = SIGNAL_BASE + ended.signal
        return Ended(code, ended.signal, "transient", last_words or f"ended by signal {ended.signal}", last_lines)
    code = ended.code or 0
    cause = cause_in(last_lines)
    told = f"exit code {code}: {cause}" if cause else f"exit code {code}"
    return Ended(code, None, class_of_exit(code), last_words or (told if code else ""), last_lines if code else "")
