"""The local supervisor: starts one program in its own session, and records its pid and its end.

A launcher starts it as `python -P -S -m tidegate_launchers.local.program_supervisor <folder>` in a new session, writes
one plan as JSON to its stdin and reads one word from its stdout. The supervisor forks away from its parent at once, so
that a run of this node and an adopted one look the same. It outlives the node, ignores every signal that asks it to
end, and ends with the program. Standard library only, so that it starts in about 0.1 s.

Safety rests on the order. The supervisor takes the lock first: a second supervisor of the attempt exits at once. It
then forks the program's process, which waits. It makes the record durable, and only then releases the process. If the
supervisor dies in between, the waiting process reads the end of the pipe and exits. So a program without a record never
runs.
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
"""The forked process could not become the program. This is the wrapper's code for `config`: a command that cannot be
executed, is too long, or has an argument that no process can take (a NUL, half a character), will fail again."""

EXIT_NOT_NOW = 75
"""The wrapper's code for `transient`: kernel or disk had no room for the program, or a part of it was being
replaced."""

UTF8_LOCALE = "C.UTF-8"
"""Locale that exists on every system without installation."""

WRITE_S_MAX = 86_400.0
"""Longest time for which writing the program's end is retried on a full disk."""

WRITE_AGAIN_S = 0.5

LOOK_AGAIN_S = 0.5
"""Interval of the checks for leftover processes; each check reads the whole process table."""

KILL_S_MAX = 60.0
"""Time for which SIGKILL is repeated."""

_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_TRANSIENT_ERRNOS = frozenset(
    {
        *(errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE),
        *(errno.ENOSPC, errno.EDQUOT),  # The logs have no room.
        *(errno.EIO, errno.ESTALE),  # A mount fails.
        errno.ETXTBSY,  # The interpreter is being replaced.
    }
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The program to start. Its environment holds the run's token, so the plan travels through a pipe and is never
    stored.

    Attributes:
        command: Program and arguments.
        environment: Whole environment of the program.
        host: Name of the host, for the record.
        starts_java: Whether a JVM passes arguments on to the program.
        marker: `NAME=value` that each process of the attempt carries; if empty, leftover processes are not ended.
        leftover_wait_s: Seconds after the program's end until its leftover processes get SIGTERM.
        grace_s: Seconds from then until they get SIGKILL.
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
    """Starts the program and waits for its end.

    Returns:
        BUSY or CANCELLED if nothing was started, None after the end.
    """
    lock = os.open(folder.lock, os.O_RDWR | os.O_CREAT, FILE_MODE)  # Not inheritable: the program must not hold it.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return BUSY
    if folder.record() is not None:
        return BUSY  # An attempt starts only once on a host, whatever its end was.
    if folder.cancelled_at() is not None:
        return CANCELLED
    held, release = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release)
        _become_the_program(folder, plan, held)
    os.close(held)
    _write_record(folder, plan, child)
    # Checked after the record is durable. A cancel writes its file before it reads the record, so one of both sees the
    # other.
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
    """Ends leftover processes of the program, such as a daemon. The run's permits are free, and no later call would end
    them.

    A process that dropped the run's environment and left its session cannot be recognised and stays. SIGKILL is
    repeated for a while; then a process that may not be signalled is given up, and the run's folder shows that it
    lives.
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
    """Writes a line to `supervisor.log`."""
    with contextlib.suppress(OSError):
        os.write(2, f"{message}\n".encode())


def _become_the_program(folder: RunFolder, plan: Plan, held: int) -> NoReturn:
    """Runs in the forked process: creates a session, opens the logs, waits for the release, becomes the program."""
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
    """Returns an environment in which a JVM passes texts beyond ASCII on unchanged.

    With the locale `C`, or with a locale that is not installed, a JVM turns each such letter of an argument into `?`.
    Python does not (PEP 538), so only arguments that pass through Java would lose them. Changes this process's own
    environment and locale.
    """
    os.environ.clear()
    os.environ.update(environment)
    try:
        locale.setlocale(locale.LC_ALL, "")  # A JVM does the same at its start.
    except locale.Error:
        return {**environment, "LC_ALL": UTF8_LOCALE}
    return {**environment, "LC_ALL": UTF8_LOCALE} if locale.setlocale(locale.LC_CTYPE) == "C" else environment


def _write_record(folder: RunFolder, plan: Plan, child: int) -> None:
    program, own = facts_of(child), facts_of(os.getpid())
    if program is None or own is None:
        raise RuntimeError(f"process {child} of {folder.path} is not visible; is /proc mounted?")
    folder.write_record(Record(child, program.started, own.pid, own.started, plan.host, boot_id()))


def _write_exit(folder: RunFolder, ended: Exit) -> None:
    """Writes the program's end, and retries on a full disk: no other process knows the end. Without it the folder would
    keep its room as well.
    """
    give_up = time.monotonic() + WRITE_S_MAX
    while True:
        try:
            folder.write_exit(ended)
        except FileNotFoundError:
            return  # The folder was removed.
        except OSError:
            if time.monotonic() >= give_up:
                raise
            time.sleep(WRITE_AGAIN_S)
        else:
            return


def _let_go(release: int) -> None:
    try:
        os.write(release, b"g")
    except BrokenPipeError:  # The waiting process was killed already, and its status shows that.
        return


def _exit_of(status: int, cpu_ms: int) -> Exit:
    at = time.time_ns() // 1_000_000
    if os.WIFSIGNALED(status):
        return Exit(None, os.WTERMSIG(status), at, cpu_ms)
    return Exit(os.WEXITSTATUS(status), None, at, cpu_ms)


def _say(word: str) -> None:
    """Answers the launcher, if it still reads, and closes the pipe."""
    with contextlib.suppress(OSError):  # The node died; its successor reads the record.
        os.write(1, f"{word}\n".encode())
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)


def main() -> None:
    """Entry point: the folder is the only argument, the plan comes on stdin up to its end."""
    for ignored in _IGNORED:
        signal.signal(ignored, signal.SIG_IGN)
    try:
        plan = Plan.of(json.load(sys.stdin))
    except ValueError:  # The launcher died while writing. Nothing is started, and a look-up will report that.
        sys.exit(EXIT_NOT_STARTED)
    if os.fork() > 0:
        os._exit(0)
    # The supervisor leads its session, so the start time of that session's number can be checked later:
    # after a container's restart, new processes get pids of old programs.
    os.setsid()
    refusal = supervise(RunFolder(Path(sys.argv[1])), plan)
    if refusal is not None:
        _say(refusal)


if __name__ == "__main__":
    main()
