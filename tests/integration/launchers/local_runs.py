"""What one asks of a launched program: its folder, its output, its end, and the processes that it reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Ended, Launch

ALaunch = Callable[..., Launch]


class Gate(Protocol):
    url: str
    status: int

    def of(self, action: str) -> list[Mapping[str, object]]: ...
    def wait_for(self, action: str) -> Mapping[str, object]: ...


class Latch(Protocol):
    @property
    def wait_statement(self) -> str: ...
    def release(self) -> None: ...


def output_of(launcher: LocalLauncher, launch: Launch) -> str:
    return Path(launcher.log_paths(launch.run_id, launch.attempt).stdout).read_text(encoding="utf-8")


def folder_of(settings: LocalSettings, launch: Launch) -> RunFolder:
    return RunFolder.within(settings.data_dir, launch.run_id, launch.attempt)


async def ended(launcher: LocalLauncher, launch: Launch) -> Ended:
    return await launcher.wait_until_gone(launch.run_id, launch.attempt)


async def cancelled(launcher: LocalLauncher, launch: Launch) -> Ended:
    end = await launcher.cancel(launch.run_id, launch.attempt)
    assert isinstance(end, Ended)
    return end


async def reported_pids(gate: Gate, count: int) -> list[int]:
    outputs = (await asyncio.to_thread(gate.wait_for, "outputs"))["outputs"]
    assert isinstance(outputs, dict)
    pids = outputs["pids"]
    assert len(pids) == count
    return list(pids)


STUBBORN = """
import os, signal, subprocess, sys, time
from tidegate_spark import set_output
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"]
same_group = subprocess.Popen(child, stdout=subprocess.PIPE)
daemon = subprocess.Popen(child, stdout=subprocess.PIPE, start_new_session=True)
for process in (same_group, daemon):
    process.stdout.readline()
set_output("pids", [os.getpid(), same_group.pid, daemon.pid])
time.sleep(600)
"""
