"""A stand-in for the API's gate: a real HTTP server on a free port whose answers the test scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

import tidegate_spark

RUN_ID = "0007-abcdefghijklmnopqrstuvwxyz"
TOKEN = "token-of-the-test"
WRAPPER = Path(tidegate_spark.__file__).parent / "run_program.py"
PROCESS_TIMEOUT_S = 120
ACCEPTED = (200, "")
"""Stands for what the API says of the run that was asked for; compared by identity."""


@dataclass(frozen=True)
class Request:
    path: str
    authorization: str
    body: dict[str, object]

    @property
    def action(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def run_id(self) -> str:
        return unquote(self.path.split("/")[-2])


@dataclass
class StandInGate:
    """Accepts as the API does, unless told otherwise; the last scripted answer of an action repeats."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    scripted: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def answers(self, action: str, *answers: tuple[int, str]) -> None:
        self.scripted[action] = list(answers)

    def first_answers(self, action: str, *answers: tuple[int, str]) -> None:
        """Answers so, one after the other, and accepts from then on."""
        self.scripted[action] = [*answers, ACCEPTED]

    def refuses(self, action: str, status: int, **words: str) -> None:
        """Answers with a problem document as the API writes them."""
        self.answers(action, (status, json.dumps({"type": "urn:tidegate:problem:test", "status": status, **words})))

    def of(self, action: str) -> list[Request]:
        with self.arrived:
            return [request for request in self.requests if request.action == action]

    def wait_for(self, action: str, count: int) -> None:
        with self.arrived:
            assert self.arrived.wait_for(
                lambda: sum(request.action == action for request in self.requests) >= count, PROCESS_TIMEOUT_S
            )

    def take(self, request: Request) -> tuple[int, str]:
        with self.arrived:
            self.requests.append(request)
            self.arrived.notify_all()
            script = self.scripted.get(request.action, [ACCEPTED])
            answer = script.pop(0) if len(script) > 1 else script[0]
            return (200, json.dumps({"run_id": request.run_id})) if answer is ACCEPTED else answer


@pytest.fixture
def gate() -> Iterator[StandInGate]:
    stand_in = StandInGate()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, text = stand_in.take(Request(self.path, self.headers["Authorization"] or "", body))
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """The test looks at `requests` instead."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield stand_in
    server.shutdown()
    thread.join()
    server.server_close()


PATIENT_CLOCK = f"""\
import socket
import time

now, connect = 0.0, socket.create_connection

def pause(seconds):
    global now
    now += seconds

def connected(address, timeout=None, *rest, **more):
    return connect(address, {PROCESS_TIMEOUT_S}, *rest, **more)

time.monotonic, time.sleep, socket.create_connection = lambda: now, pause, connected
"""
"""What Python runs before a program: time passes only while somebody pauses, and an answer may come as late as it likes."""


@dataclass
class WrappedProgram:
    """A user's script that is run under the wrapper, as a launcher would."""

    folder: Path
    environment: dict[str, str]
    script: Path

    def write(self, source: str) -> None:
        self.script.write_text(source, encoding="utf-8")

    def has_patient_clock(self) -> None:
        """It gives up when it has paused for that long, however long a machine that stands still keeps it waiting besides."""
        folder = self.folder / "clock"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(PATIENT_CLOCK, encoding="utf-8")
        self.environment["PYTHONPATH"] = os.pathsep.join((str(folder), self.environment["PYTHONPATH"]))

    def start(self, *args: str, file: Path | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(WRAPPER), str(file or self.script), *args],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *args: str, file: Path | None = None) -> subprocess.CompletedProcess[str]:
        with self.start(*args, file=file) as process:
            output, errors = process.communicate(timeout=PROCESS_TIMEOUT_S)
            return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@pytest.fixture
def program(gate: StandInGate, tmp_path: Path) -> WrappedProgram:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(WRAPPER.parent.parent),
        "TIDEGATE_GATE_URL": gate.url,
        "TIDEGATE_LAUNCHER_HOST": "host-of-the-test",
        "TIDEGATE_RUN_TOKEN": TOKEN,
        "TIDEGATE_RUN_ID": RUN_ID,
        "TIDEGATE_ATTEMPT": "2",
        "TIDEGATE_GATE_WAIT_S": "30",
        "TIDEGATE_REPORT_WAIT_S": "30",
    }
    folder = tmp_path / "program"
    folder.mkdir()
    written = WrappedProgram(folder, environment, folder / "job.py")
    written.write("print('ran')")
    return written


@pytest.fixture
def write_json(tmp_path: Path) -> Callable[[object], Path]:
    def write(document: object) -> Path:
        path = tmp_path / "context.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write
