"""What the local launcher refuses before it starts anything."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.common import program_file_check
from tidegate_ports.common.program_file_check import FileLooks
from tidegate_ports.launcher import Absent, Ended, Launch, LaunchRejected, LaunchUnavailable

FILES = 2_048
PATIENCE_S = 60.0
"""With file systems, and with processes that start, on a machine that stands still for a while."""


def a_launcher(settings: LocalSettings) -> LocalLauncher:
    """One whose host may stand still meanwhile."""
    return LocalLauncher(replace(settings, submit_timeout_s=PATIENCE_S), FileLooks(PATIENCE_S))


async def test_given_a_missing_script_then_launch_is_rejected_as_config(
    a_launch: Callable[..., Launch], settings: LocalSettings
) -> None:
    with pytest.raises(LaunchRejected, match=r"/gone\.py does not exist on this host") as refusal:
        await a_launcher(settings).submit(a_launch(file="/gone.py"))
    assert refusal.value.error_class == "config"


async def test_given_a_script_whose_mount_hangs_then_it_may_be_asked_again(
    a_launch: Callable[..., Launch], settings: LocalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node has four starts under way: four that wait for ever would be its last ones."""
    answers = threading.Event()
    monkeypatch.setattr(program_file_check, "problem_with", lambda *_: answers.wait() and None)
    with pytest.raises(LaunchUnavailable, match="gave no answer"):
        await LocalLauncher(settings, FileLooks(patience_s=0.01)).submit(a_launch(file="/hung/land.py"))
    answers.set()


async def test_given_a_cancel_while_the_script_is_looked_at_then_it_does_not_start(
    a_launch: Callable[..., Launch], settings: LocalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: there was no folder yet, so the cancel found nothing, and the program was started when the file system had answered."""
    looks, answers = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def problem_with(*_: str) -> None:
        loop.call_soon_threadsafe(looks.set)
        answers.wait()

    monkeypatch.setattr(program_file_check, "problem_with", problem_with)
    launch = a_launch()
    launcher = a_launcher(replace(settings, python=sys.executable))
    submitting = asyncio.ensure_future(launcher.submit(launch))
    await looks.wait()
    ended = await launcher.cancel(launch.run_id, launch.attempt)
    answers.set()
    with pytest.raises(LaunchRejected, match="was cancelled on this host before it started"):
        await submitting
    assert isinstance(ended, Ended)
    assert await launcher.cancel("0007-never", 1) == Absent()


async def test_given_a_record_of_another_release_then_it_may_be_asked_again(
    settings: LocalSettings, folder: RunFolder, a_launch: Callable[..., Launch]
) -> None:
    """Nothing but `LaunchUnavailable` is an answer: what else is raised is a bug of the actor's, which begins anew and asks the same."""
    (folder.path / "supervisor.json").write_text('{"pid": 7}')
    launcher = LocalLauncher(settings)
    for asked in (
        launcher.submit(a_launch()),
        launcher.lookup("0007-abc", 2, None, None),
        launcher.wait_until_gone("0007-abc", 2),
        launcher.cancel("0007-abc", 2),
    ):
        with pytest.raises(LaunchUnavailable, match="another release"):
            await asked


async def test_given_a_host_without_threads_then_it_may_be_asked_again(
    settings: LocalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another error than `LaunchUnavailable` is a bug of the actor that asks: a few of them, and the node ended."""
    launcher = LocalLauncher(settings)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        with pytest.raises(LaunchUnavailable, match="new thread"):
            await launcher.lookup("0007-abc", 2, None, None)
    assert await launcher.lookup("0007-abc", 2, None, None) == Absent()


async def test_given_an_interpreter_that_reads_no_plan_then_it_may_be_asked_again_in_time(
    a_launch: Callable[..., Launch], settings: LocalSettings, tmp_path: Path
) -> None:
    """Found in review: a plan larger than a pipe was written until somebody read it, and one of the node's four starts was taken for as long."""
    silent = tmp_path / "silent"
    silent.write_text(f"#!/bin/sh\nexec sleep {2 * PATIENCE_S:g}\n")
    silent.chmod(0o755)
    launcher = LocalLauncher(replace(settings, python=str(silent), submit_timeout_s=0.2), FileLooks(PATIENCE_S))
    begun = time.monotonic()
    with pytest.raises(LaunchUnavailable, match="its supervisor did not start"):
        await launcher.submit(a_launch(args=("x" * 100_000, "y" * 100_000)))
    assert time.monotonic() - begun < PATIENCE_S


async def test_given_a_plan_larger_than_a_pipe_then_its_program_starts(
    a_launch: Callable[..., Launch], settings: LocalSettings
) -> None:
    launcher = a_launcher(replace(settings, python=sys.executable))
    launch = a_launch(args=("x" * 100_000, "y" * 100_000))
    assert (await launcher.submit(launch)).place == settings.host
    assert isinstance(await launcher.cancel(launch.run_id, launch.attempt), Ended)


@pytest.fixture
def many_files() -> Iterator[None]:
    """So many are open that the next ones have numbers above those that `select` takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        pytest.skip(f"no process may have {FILES} files open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < 1_024:
        opened.append(os.dup(opened[0]))
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_given_a_process_with_more_than_a_thousand_files_then_a_program_starts(
    a_launch: Callable[..., Launch], settings: LocalSettings
) -> None:
    """Found in review: `select` takes no such number. What it raised was a bug of the actor's, and a few of them ended the node."""
    launcher = a_launcher(replace(settings, python=sys.executable))
    launch = a_launch()
    assert (await launcher.submit(launch)).place == settings.host
    assert isinstance(await launcher.cancel(launch.run_id, launch.attempt), Ended)
