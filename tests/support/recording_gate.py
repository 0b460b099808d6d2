"""A start gate for tests of launchers: it keeps what programs post, and answers all of them alike.

Fixtures wrap `recording_gate()`. It promises nothing about runs: every program passes, or none does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ARRIVAL_TIMEOUT_S = 90
"""Deadline of every wait; the machine may be busy, a pass never takes it."""


@dataclass
class RecordingGate:
    """Keeps every body by action, with the run that it is about, and answers with `status` as the API does."""

    url: str = ""
    status: int = 200
    bodies: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def of(self, action: str) -> list[Mapping[str, object]]:
        with self.arrived:
            return [body for name, body in self.bodies if name == action]

    def wait_for(
        self, action: str, fits: Callable[[Mapping[str, object]], bool] = lambda _: True
    ) -> Mapping[str, object]:
        """Returns the first body of the action that fits, as soon as there is one."""

        def found() -> Mapping[str, object] | None:
            return next((body for name, body in self.bodies if name == action and fits(body)), None)

        with self.arrived:
            body = self.arrived.wait_for(found, ARRIVAL_TIMEOUT_S)
        assert body is not None, f"no program posted {action}"
        return body


@contextmanager
def recording_gate() -> Iterator[RecordingGate]:
    """Serves a gate on a port of the loopback interface, until the block ends."""
    recording = RecordingGate()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            *_, run_id, action = self.path.split("/")
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"]))) | {"run_id": run_id}
            with recording.arrived:
                # Before anybody hears of it: who waits for it may change the status for those that come later.
                status = recording.status
                recording.bodies.append((action, body))
                recording.arrived.notify_all()
            accepted = status == HTTPStatus.OK
            said = {"run_id": run_id} if accepted else {"type": "urn:tidegate:problem:test"}
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
    try:
        yield recording
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
