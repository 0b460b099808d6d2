"""The local supervisor: starts one program in a session of its own, and writes down its pid and its end.

A launcher starts it as `python -P -S -m tidegate_launchers.local.program_supervisor <folder>` in a new session, writes one plan
as JSON to its stdin and reads one word from its stdout. It leaves its parent at once, so that a run of this node and an
adopted one look the same, and from then on needs nobody: it outlives the node, ignores every signal that asks it to end,
and ends with the program. Standard library only, so that it starts in about 0.1 s.

The order is what makes it safe. The lock comes first: a second supervisor of the attempt leaves at once. The program's
process is forked but held; its record is made durable; only then it is let go. A supervisor that dies in between takes
the held process along (it reads the end of the pipe), so a program without a record never runs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import locale
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tidegate_launchers.local.process_table import ProcessFacts, boot_id, facts_of, members
from tidegate_launchers.local.run_folder import FILE_MODE, Exit, Record, RunFolder

STARTED = "started"
BUSY = "busy"
"""Another supervisor has, or had, this attempt: adopt it."""
CANCELLED = "cancelled"

EXIT_NOT_STARTED = 78
"""The program's process could not become the program. The wrapper's code for `config`: a command that cannot be
executed, is too long, or has an argument that no process can take (a NUL, half a character), stays so."""

EXIT_NOT_NOW = 75
"""The wrapper's code for `transient`: kernel or disk had no room for the program just now, or something of it was being replaced."""

UTF8_LOCALE = "C.UTF-8"
"""Is there without being installed."""

WRITE_S_MAX = 86_400.0
"""How long the end of a program waits for room on the disk."""

WRITE_AGAIN_S = 0.5

LOOK_AGAIN_S = 0.5
"""Between looks at what a program has left behind; each reads the whole process table."""

KILL_S_MAX = 60.0
"""How long it is killed, again and again."""

_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_TRANSIENT_ERRNOS = frozenset(
    {
        *(errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE),
        *(errno.ENOSPC, errno.EDQUOT),  # Of the logs.
        *(errno.EIO, errno.ESTALE),  # Of a mount.
        errno.ETXTBSY,  # An interpreter that is being replaced.
    }
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start. The environment holds the run's token: the plan travels through a pipe and is never written.

    Attributes:
        starts_java: Whether a JVM hands arguments on to the program.
        marker: `NAME=value` that each process of the attempt carries; empty: what the program leaves behind is left alone.
        leftover_wait_s: Seconds after the program's end until what it left behind is asked to end.
        grace_s: Seconds from then until it is killed.
    """

    command: list[str]
    environment: dict[str, str]
    host: str
    starts_java: bool = False
    marker: str = ""
    leftover_wait_s: float = 0.0
    grace_s: float = 0.0

    @classmethod
    def of(cls, document: Mapping[str, object]) -> Plan:
        command, environment, host = document["command"], document["environment"], document["host"]
        if not (isinstance(command, list) and isinstance(environment, dict) and isinstance(host, str)):
            raise ValueError("the plan is malformed")
        marker, wait, grace = (document.get(name) for name in ("marker", "leftover_wait_s", "grace_s"))
        return cls(
            command,
            environment,
            host,
            document.get("starts_java") is True,
            marker if isinstance(marker, str) else "",
            float(wait) if isinstance(wait, int | float) else 0.0,
            float(grace) if isinstance(grace, int | float) else 0.0,
        )


def supervise(folder: RunFolder, plan: Plan) -> str | None:
    """Starts the program and sees it to its end.

    Returns:
        BUSY or CANCELLED when nothing was started, None after the end.
    """
    lock = os.open(folder.lock, os.O_RDWR | os.O_CREAT, FILE_MODE)  # Not inheritable: the program does not hold it.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return BUSY
    if folder.record() is not None:
        return BUSY  # Started once already, whatever became of it: an attempt starts once on a host.
    if folder.cancelled_at() is not None:
        return CANCELLED
    held, release = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release)
        _become_the_program(folder, plan, held)
    os.close(held)
    _write_record(folder, plan, child)
    # Read after the record is durable, and a cancel writes its file before it looks for the record: one sees the other.
    if folder.cancelled_at() is None:
        _let_go(release)
    os.close(release)
    _say(STARTED)
    _, status, usage = os.wait4(child, 0)
    _write_exit(folder, _exit_of(status, cpu_ms=round((usage.ru_utime + usage.ru_stime) * 1000)))
    record = folder.record()
    if record is not None and plan.marker:
        _end_what_is_left(plan, record)
    return None


def _end_what_is_left(plan: Plan, record: Record) -> None:
    """Ends what the program has left behind, a daemon say: its run's permits are free, and nobody would ever ask for its end.

    Not what gave up the run's environment and left its session: nobody can tell that one from others. It is killed again and again for
    a while; one that may not be signalled is given up, and the run's folder shows that it lives.
    """
    begun = time.monotonic()
    asked_at: float | None = None
    while left := members(record.pid, record.started, plan.marker.encode()):
        now = time.monotonic()
        if asked_at is None and now - begun >= plan.leftover_wait_s:
            _log(f"the program left {_pids(left)} behind: asked to end")
            _signal(left, signal.SIGTERM)
            asked_at = now
        elif asked_at is not None and now - asked_at >= plan.grace_s + KILL_S_MAX:
            _log(f"gave up on {_pids(left)}")
            return
        elif asked_at is not None and now - asked_at >= plan.grace_s:
            _signal(left, signal.SIGKILL)
        time.sleep(LOOK_AGAIN_S)


def _signal(processes: list[ProcessFacts], what: signal.Signals) -> None:
    for facts in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(facts.pid, what)


def _pids(processes: list[ProcessFacts]) -> str:
    return ", ".join(str(facts.pid) for facts in processes)


def _log(message: str) -> None:
    """Into `supervisor.log`."""
    with contextlib.suppress(OSError):
        os.write(2, f"{message}\n".encode())


def _become_the_program(folder: RunFolder, plan: Plan, held: int) -> NoReturn:
    """Runs in the forked process: a session of its own, the logs, the wait for the word, the program."""
    try:
        os.setsid()
        for ignored in (*_IGNORED, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_DFL)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        for descriptor, path in ((1, folder.stdout), (2, folder.stderr)):
            os.dup2(os.open(path, flags, FILE_MODE), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder.work)
        if os.read(held, 1) != b"g":
            os._exit(EXIT_NOT_STARTED)
        environment = _with_a_locale_for_java(plan.environment) if plan.starts_java else plan.environment
        os.execvpe(plan.command[0], plan.command, environment)  # noqa: S606 - a list, no shell
    except (OSError, ValueError) as error:
        os.write(2, f"tidegate: {plan.command[0]} cannot be started: {error}\n".encode(errors="replace"))
        passes = isinstance(error, OSError) and error.errno in _TRANSIENT_ERRNOS
        os._exit(EXIT_NOT_NOW if passes else EXIT_NOT_STARTED)


def _with_a_locale_for_java(environment: dict[str, str]) -> dict[str, str]:
    """Returns an environment under which a JVM hands on texts beyond ASCII.

    Where the locale is `C`, or one of those named is not installed here, it makes each such letter of an argument a `?`. Python
    does not (PEP 538), so that only what passes through Java would lose them. Changes this process's own environment and locale.
    """
    os.environ.clear()
    os.environ.update(environment)
    try:
        locale.setlocale(locale.LC_ALL, "")  # As a JVM does when it starts.
    except locale.Error:
        return {**environment, "LC_ALL": UTF8_LOCALE}
    return {**environment, "LC_ALL": UTF8_LOCALE} if locale.setlocale(locale.LC_CTYPE) == "C" else environment


def _write_record(folder: RunFolder, plan: Plan, child: int) -> None:
    program, own = facts_of(child), facts_of(os.getpid())
    if program is None or own is None:
        raise RuntimeError(f"process {child} of {folder.path} is not visible; is /proc mounted?")
    folder.write_record(Record(child, program.started, own.pid, own.started, plan.host, boot_id()))


def _write_exit(folder: RunFolder, ended: Exit) -> None:
    """Writes it, again and again while there is no room for it: nobody else knows it. Without it the folder's room is not given back either."""
    give_up = time.monotonic() + WRITE_S_MAX
    while True:
        try:
            folder.write_exit(ended)
        except FileNotFoundError:
            return  # Somebody removed the folder.
        except OSError:
            if time.monotonic() >= give_up:
                raise
            time.sleep(WRITE_AGAIN_S)
        else:
            return


def _let_go(release: int) -> None:
    try:
        os.write(release, b"g")
    except BrokenPipeError:  # The held process was killed already; its end says so.
        return


def _exit_of(status: int, cpu_ms: int) -> Exit:
    at = time.time_ns() // 1_000_000
    if os.WIFSIGNALED(status):
        return Exit(None, os.WTERMSIG(status), at, cpu_ms)
    return Exit(os.WEXITSTATUS(status), None, at, cpu_ms)


def _say(word: str) -> None:
    """Tells the launcher, if it still listens, and lets go of its pipe."""
    with contextlib.suppress(OSError):  # The node died meanwhile; the record tells its successor.
        os.write(1, f"{word}\n".encode())
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)


def main() -> None:
    """Entry point: the folder is the one argument, the plan comes on stdin up to its end."""
    for ignored in _IGNORED:
        signal.signal(ignored, signal.SIG_IGN)
    try:
        plan = Plan.of(json.load(sys.stdin))
    except ValueError:  # The launcher died while it wrote. Nothing is started, and a look-up will say so.
        sys.exit(EXIT_NOT_STARTED)
    if os.fork() > 0:
        os._exit(0)
    # It leads its session, so that whoever finds a process under the session's number can ask since when that one lives:
    # a container that was restarted gives numbers of old programs to new processes.
    os.setsid()
    refusal = supervise(RunFolder(Path(sys.argv[1])), plan)
    if refusal is not None:
        _say(refusal)


if __name__ == "__main__":
    main()
