"""What the local launcher's tests share: a gate that says go, a launcher with short waits, programs to launch."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.recording_gate import ARRIVAL_TIMEOUT_S, RecordingGate, recording_gate
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Launch


@pytest.fixture
def gate() -> Iterator[RecordingGate]:
    with recording_gate() as gate:
        yield gate


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    return LocalSettings(
        data_dir=tmp_path / "data",
        host="node-1",
        gate_wait_s=ARRIVAL_TIMEOUT_S,
        report_wait_s=ARRIVAL_TIMEOUT_S,
        submit_timeout_s=ARRIVAL_TIMEOUT_S,
        cancel_grace_s=0.5,
        kill_repeat_s=0.05,
        poll_interval_s=0.02,
    )


@pytest.fixture
def launcher(settings: LocalSettings) -> LocalLauncher:
    return LocalLauncher(settings)


@pytest.fixture
def run_id() -> str:
    """No two tests run the same: programs of one host are known by their run, and another worker's tests have some as well."""
    return f"0007-{secrets.token_hex(13)}"


@pytest.fixture
def a_launch(gate: RecordingGate, tmp_path: Path, run_id: str) -> Callable[..., Launch]:
    """Builds a launch of a script with the given source."""
    script = tmp_path / "job.py"

    def build(source: str, *args: str, program_type: str = "python", conf: Mapping[str, str] | None = None) -> Launch:
        script.write_text(source, encoding="utf-8")
        return Launch(
            run_id=run_id,
            attempt=1,
            program_type="pyspark" if program_type == "pyspark" else "python",
            file=str(script),
            args=args,
            conf=conf or {},
            context={"run": {"id": run_id, "attempt": 1}, "nominal": "2026-03-03T05:00:00Z"},
            gate_url=gate.url,
            token="secret-of-the-test",
        )

    return build


@dataclass
class Latch:
    """Holds a program until the test lets it go: the program reads a named pipe to its end."""

    path: Path

    @property
    def wait_statement(self) -> str:
        return f"open({str(self.path)!r}).read()"

    def release(self) -> None:
        self.path.open("w").close()


@pytest.fixture
def latch(tmp_path: Path) -> Latch:
    path = tmp_path / "latch"
    os.mkfifo(path)
    return Latch(path)
