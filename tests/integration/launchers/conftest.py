"""What the local launcher's tests share: a gate that says go, a launcher with short waits, programs to launch."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tidegate_launchers.local import LocalLauncher
from tidegate_launchers.local_settings import LocalSettings
from tidegate_ports.launcher import Launch

ARRIVAL_TIMEOUT_S = 90
"""Deadline of every wait; the machine may be busy, a pass never takes it."""


@dataclass
class RecordingGate:
    """Keeps every body by action, and answers with `status` as the API does."""

    url: str = ""
    status: int = 200
    bodies: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def of(self, action: str) -> list[Mapping[str, object]]:
        with self.arrived:
            return [body for name, body in self.bodies if name == action]

    def wait_for(self, action: str) -> Mapping[str, object]:
        """Returns the first body of the action, as soon as there is one."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: any(name == action for name, _ in self.bodies), ARRIVAL_TIMEOUT_S)
        return self.of(action)[0]


@pytest.fixture
def gate() -> Iterator[RecordingGate]:
    recording = RecordingGate()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with recording.arrived:
                # Before anybody hears of it: who waits for it may change the status for those that come later.
                status = recording.status
                recording.bodies.append((self.path.rpartition("/")[2], body))
                recording.arrived.notify_all()
            accepted = status == HTTPStatus.OK
            said = {"run_id": self.path.split("/")[-2]} if accepted else {"type": "urn:tidegate:problem:test"}
            answer = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """The test looks at `bodies` instead."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recording.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield recording
    server.shutdown()
    thread.join()
    server.server_close()


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
