"""Runs `tidegate dev` as a user does, in a process of its own, and reads its `--json` lines."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.cpu_starvation import Starvation, family_of
from tidegate_bricks.java_server import ARCHIVES_VARIABLE

PATIENCE_S = 90.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""

TIDEGATE = [sys.executable, "-P", "-m", "tidegate_cli.main"]


class DevProcess:
    """One `tidegate dev`.

    Attributes:
        events: All that it has said so far and that was asked for.
    """

    def __init__(self, state: Path, *options: str, settings: Mapping[str, str] | None = None) -> None:
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")},
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TIDEGATE_STATE_DIR": str(state),
            ARCHIVES_VARIABLE: os.environ[ARCHIVES_VARIABLE],
            # What a killed one leaves goes with the test's own folders.
            "TMPDIR": str(state),
            **(settings or {}),
        }
        self.events: list[dict[str, Any]] = []
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            [*TIDEGATE, "dev", "--json", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, event: str, text: str = "") -> dict[str, Any]:
        """Returns the next event of that name whose text contains `text`."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_S)
            except queue.Empty:
                pytest.fail(f"no {event!r} within {PATIENCE_S:g} s after {self.events}")
            if not line:
                pytest.fail(f"it ended before {event!r}, after {self.events}")
            said: dict[str, Any] = json.loads(line)
            self.events.append(said)
            if said["event"] == event and text in said.get("text", ""):
                return said

    def components(self) -> dict[str, dict[str, Any]]:
        return {event["component"]: event for event in self.events if event["event"] == "component"}

    def command(self, *arguments: str) -> Any:
        """Runs another command of the same user, who finds the stack by its pointer file; returns its JSON."""
        done = subprocess.run(
            [*TIDEGATE, *arguments, "-o", "json"],
            capture_output=True,
            check=False,
            text=True,
            env=self.environment,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def stretch(self) -> float:
        """Returns how much longer the stack has taken so far because the cores were busy with others."""
        return Starvation.of_whole_lives(family_of(self._process.pid)).stretch()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        if self._process.poll() is None:
            self.interrupt()
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")


StartDev = Callable[..., DevProcess]


@pytest.fixture(scope="module")
def start_dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartDev]:
    """Starts stacks, each with a pointer file of its own, and ends those that are left."""
    started: list[DevProcess] = []

    def start(*options: str, settings: Mapping[str, str] | None = None) -> DevProcess:
        started.append(DevProcess(tmp_path_factory.mktemp("state"), *options, settings=settings))
        return started[-1]

    yield start
    for process in started:
        process.close()


SCHEDULE = """
kind: schedule
namespace: demo
name: {name}
target:
  type: program
  program: {{type: {kind}, file: {name}.py, args: ["${{nominal}}"]}}
trigger: {{type: cron, expression: "0 0 1 1 *"}}
"""


@pytest.fixture
def schedule(tmp_path: Path) -> Callable[..., str]:
    """Writes a schedule of that name with its program beside it, and returns the path of the schedule's file."""

    def write(name: str, source: str, kind: str = "python") -> str:
        (tmp_path / f"{name}.py").write_text(source)
        file = tmp_path / f"{name}.yaml"
        file.write_text(SCHEDULE.format(name=name, kind=kind))
        return str(file)

    return write
