"""The local launcher: runs programs on the node's own host, each under a supervisor that outlives the node.

This object keeps no state about runs, except which submissions are in progress. All calls read the attempt's folder and
the process table, so a node takes over another node's runs as its own. Two things are not promised: exclusivity across
hosts, which the start gate ensures; and an exit code for a program that was killed together with its supervisor.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from tidegate_launchers.local.attempt import Watch
from tidegate_launchers.local.command import (
    MARKER_VARIABLE,
    SUPERVISOR_VARIABLE,
    package_folder,
    program_command,
    program_environment,
    require_runnable,
)
from tidegate_launchers.local.process_table import boot_id
from tidegate_launchers.local.program_supervisor import BUSY, CANCELLED, STARTED
from tidegate_launchers.local.run_folder import FILE_MODE, Record, RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.common.program_file_check import FileLooks, FileSystemSilent
from tidegate_ports.launcher import (
    Absent,
    Elsewhere,
    Ended,
    Found,
    Launch,
    LaunchRejected,
    LaunchUnavailable,
    Lookup,
    Placement,
    ProgramType,
    launch_name,
)
from tidegate_ports.run_folders import LogPaths

EXIT_FILE_WAIT_S = 60.0
"""Longest wait for exit.json after the program's end while the supervisor lives. Causes: an fsync on a busy disk, or a
full disk, on which the supervisor retries.
"""

THREADS_MAX = 16
"""Threads for starts, of which a node has four in progress, and for checks of programs, which take 0.1 ms each."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class LocalLauncher:
    """Implements `tidegate_ports.launcher.Launcher` with processes of this host."""

    def __init__(self, settings: LocalSettings, looks: FileLooks | None = None) -> None:
        self._settings = settings
        self._boot_id = boot_id()
        # All nodes of the host must use the same path for a run's folder, because it identifies the run's processes.
        self._data_dir = settings.data_dir.resolve()
        # A separate pool: a start may block for `submit_timeout_s`, and the loop's few threads have other work.
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="tidegate-launcher")
        self._looks = looks or FileLooks()
        self._submits: Counter[Path] = Counter()
        """Submissions in progress, by attempt folder."""

    def refuses(self, program_type: ProgramType, conf: Mapping[str, str]) -> str | None:
        try:
            require_runnable(program_type, conf, self._settings)
        except LaunchRejected as rejected:
            return rejected.message
        return None

    async def submit(self, launch: Launch) -> Placement:
        try:
            folder = self._folder(launch.run_id, launch.attempt)
        except ValueError as error:
            raise LaunchRejected("config", str(error)) from error
        record = await self._apart(folder.record)
        if record is None:
            self._submits[folder.path] += 1
            try:
                await self._check_file(launch)
                record = await self._apart(self._start, launch, folder)
            finally:
                self._submits -= Counter({folder.path: 1})
        return self._placement(launch.run_id, launch.attempt, record)

    async def _check_file(self, launch: Launch) -> None:
        try:
            problem = await self._looks.problem_with(launch.file, "this host")
        except FileSystemSilent as silent:
            raise LaunchUnavailable(f"{launch.name}: {silent}") from silent
        if problem is not None:
            raise LaunchRejected("config", problem)

    async def lookup(self, run_id: str, attempt: int, place: str | None, instance: str | None) -> Lookup:
        """See the port. The place is the host, and the instance its boot id, which the attempt's own record holds
        too.
        """
        if place is not None and place != self._settings.host:
            return Elsewhere(place)
        record = await self._apart(self._folder(run_id, attempt).record)
        if record is None:
            # The run item says that the attempt was started here, so absence must be certain. A repeated submission
            # asks the gate.
            lives = None if place is None else await self._apart(self._watch(run_id, attempt).lives_elsewhere)
            if lives is not None:
                name = launch_name(run_id, attempt)
                raise LaunchUnavailable(f"{name} lives under {lives}: nodes of a host need one data_dir that stays")
            return Absent()
        if record.host != self._settings.host:  # Several hosts mount this data folder.
            return Elsewhere(record.host)
        return Found(self._placement(run_id, attempt, record))

    async def wait_until_gone(self, run_id: str, attempt: int) -> Ended:
        known = await self.lookup(run_id, attempt, None, None)
        if isinstance(known, Elsewhere):
            name = launch_name(run_id, attempt)
            raise LaunchUnavailable(f"{name} was started on {known.place}; its end cannot be seen from another host")
        return await self._wait(self._watch(run_id, attempt), kill_after_s=None)

    async def cancel(self, run_id: str, attempt: int) -> Ended | Absent | Elsewhere:
        known = await self.lookup(run_id, attempt, None, None)
        if isinstance(known, Elsewhere):
            return known
        watch, folder = self._watch(run_id, attempt), self._folder(run_id, attempt)
        if folder.path in self._submits:
            # Its program file is still being checked: store the request where the supervisor will read it.
            await self._apart(folder.make)
        grace_s = await self._apart(watch.request_cancel, self._settings.cancel_grace_s)
        if grace_s is None:
            return Absent()
        await self._apart(watch.ask_to_end)
        return await self._wait(watch, kill_after_s=grace_s)

    def log_paths(self, run_id: str, attempt: int) -> LogPaths:
        """Returns the paths of the attempt's output, started or not. Not part of the port: other platforms have no such
        files.
        """
        folder = self._folder(run_id, attempt)
        return LogPaths(str(folder.stdout), str(folder.stderr))

    def _folder(self, run_id: str, attempt: int) -> RunFolder:
        return RunFolder.within(self._data_dir, run_id, attempt)

    def _watch(self, run_id: str, attempt: int) -> Watch:
        return Watch(self._folder(run_id, attempt), self._boot_id)

    def _start(self, launch: Launch, folder: RunFolder) -> Record:
        plan = {
            "command": program_command(launch, self._settings, folder),
            "environment": program_environment(launch, self._settings, folder, os.environ),
            "host": self._settings.host,
            "starts_java": launch.program_type == "pyspark",
            "marker": f"{MARKER_VARIABLE}={folder.path}",
            "leftover_wait_s": self._settings.leftover_wait_s,
            "grace_s": self._settings.cancel_grace_s,
        }
        deadline = time.monotonic() + self._settings.submit_timeout_s
        folder.make()
        folder.write_json(folder.context.name, launch.context)
        word = self._ask_supervisor(folder, json.dumps(plan).encode())
        if word in (STARTED, BUSY):
            return self._await_record(launch, folder, deadline)
        if word == CANCELLED:
            raise LaunchRejected("config", f"{launch.name} was cancelled on this host before it started")
        raise LaunchUnavailable(f"{launch.name}: its supervisor did not start; see {folder.path / 'supervisor.log'}")

    def _ask_supervisor(self, folder: RunFolder, plan: bytes) -> str:
        """Starts a supervisor, passes it the plan and returns its answer; empty when it died or did not answer in
        time.
        """
        command = (
            self._settings.python,
            "-P",
            "-S",
            "-m",
            "tidegate_launchers.local.program_supervisor",
            str(folder.path),
        )
        # A minimal environment: the plan carries the program's, with the token and the marker.
        environment = {
            "PYTHONPATH": str(package_folder("tidegate_launchers").parent),
            "PATH": os.defpath,
            SUPERVISOR_VARIABLE: str(folder.path),
        }
        # Its errors go to a file: on the node's stderr it would keep that pipe open after the node's death.
        log = os.open(folder.path / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
        try:
            with subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                env=environment,
                start_new_session=True,
            ) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                deadline = time.monotonic() + self._settings.submit_timeout_s
                with contextlib.suppress(BrokenPipeError):  # The supervisor died; the empty answer shows it.
                    _write_by(deadline, process.stdin.fileno(), plan)
                    process.stdin.close()
                ready = _is_ready(process.stdout.fileno(), select.POLLIN, deadline)
                word = process.stdout.readline().decode().strip() if ready else ""
                process.kill()  # Reaches only a supervisor that hangs before it forked, and so before it started a program.
        finally:
            os.close(log)
        return word

    def _await_record(self, launch: Launch, folder: RunFolder, deadline: float) -> Record:
        """Reads the record; after BUSY the other supervisor may be about to write it."""
        while (record := folder.record()) is None:
            if time.monotonic() >= deadline:
                raise LaunchUnavailable(
                    f"{launch.name}: another supervisor holds it and did not start; submit it again"
                )
            time.sleep(self._settings.poll_interval_s)
        return record

    def _placement(self, run_id: str, attempt: int, record: Record) -> Placement:
        return Placement(f"{launch_name(run_id, attempt)}@{record.host}:{record.pid}", record.host, record.boot_id)

    async def _wait(self, watch: Watch, kill_after_s: float | None) -> Ended:
        """Checks until all processes are gone; sends SIGKILL repeatedly once `kill_after_s` have passed."""
        begun = time.monotonic()
        quiet_since: float | None = None
        while (presence := await self._apart(watch.presence)) != "gone":
            now = time.monotonic()
            pause_s = self._settings.poll_interval_s
            if presence == "quiet":
                quiet_since = quiet_since or now
                if now - quiet_since >= EXIT_FILE_WAIT_S:
                    break
            elif kill_after_s is not None and now - begun >= kill_after_s:
                await self._apart(watch.send, signal.SIGKILL)
                pause_s = self._settings.kill_repeat_s
            await asyncio.sleep(pause_s)
        return await self._apart(watch.ended)

    async def _apart(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Runs blocking work in a thread. Errors of the operating system (full disk, no processes or threads left) may be temporary, so they become LaunchUnavailable."""
        try:
            begun = asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **kwargs))
        except RuntimeError as error:
            # An idle thread of the pool may still do the work later; a repeated call finds the result.
            raise LaunchUnavailable(f"local launcher: {error}; ask again") from error
        try:
            return await begun
        except OSError as error:
            raise LaunchUnavailable(f"local launcher: {error}; ask again") from error


def _write_by(deadline: float, pipe: int, data: bytes) -> None:
    """Writes to a pipe as much as its reader takes before the deadline. A plan may exceed the pipe's buffer, and an incomplete plan
    starts nothing.
    """
    os.set_blocking(pipe, False)
    rest = memoryview(data)
    while rest and _is_ready(pipe, select.POLLOUT, deadline):
        rest = rest[os.write(pipe, rest) :]


def _is_ready(pipe: int, event: int, deadline: float) -> bool:
    """Waits until the pipe is readable or writable, or its other end is closed. Uses `poll`: `select` fails above
    descriptor 1,023.
    """
    waits = select.poll()
    waits.register(pipe, event)
    return bool(waits.poll(max(0.0, deadline - time.monotonic()) * 1_000))
