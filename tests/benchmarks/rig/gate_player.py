"""Plays the programs' part for the quiet node: passes the start gate of each launch, and reports its end at once."""

from __future__ import annotations

import http.client
import json
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.cluster.background import Background
from tidegate_core.language.values.instants import parse_instant

THREADS = 16
LOOK_EVERY_S = 0.005
ANSWER_S = 30.0


class Wrappers(Background):
    """Follows the file of launches from its present end, until it is left.

    Args:
        launches: The quiet nodes' file.

    Attributes:
        gate_ms: By run: when the gate let it pass, minus its nominal instant, in ms.
        ended: Runs whose end was reported.
        refused: What the API answered where it was no success.
    """

    def __init__(self, launches: Path) -> None:
        super().__init__("wrappers")
        self.gate_ms: dict[str, float] = {}
        self.ended: set[str] = set()
        self.refused: list[str] = []
        self._file = launches.open("rb")
        self._file.seek(0, 2)
        self._own = threading.local()
        self._connections: list[http.client.HTTPConnection] = []
        self._pool = ThreadPoolExecutor(THREADS)

    def run(self) -> None:
        rest = b""
        while not self.stopping.wait(LOOK_EVERY_S):
            *lines, rest = (rest + self._file.read()).split(b"\n")
            for line in lines:
                self._pool.submit(self._play, json.loads(line))

    def close(self) -> None:
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()
        self._file.close()

    def _play(self, launch: Mapping[str, Any]) -> None:
        report = {"attempt": launch["attempt"], "driver": str(uuid.uuid4())}
        run = str(launch["run_id"])
        if self._post(launch, "start", report):
            self.gate_ms[run] = time.time_ns() / 1e6 - parse_instant(launch["nominal"])
            if self._post(launch, "finished", {**report, "outcome": "succeeded", "exit_code": 0}):
                self.ended.add(run)

    def _post(self, launch: Mapping[str, Any], action: str, report: Mapping[str, Any]) -> bool:
        headers = {"Authorization": f"Bearer {launch['token']}", "Content-Type": "application/json"}
        path = f"/api/v1/runs/{launch['run_id']}/{action}"
        try:
            connection = self._connection(launch["gate_url"])
            connection.request("POST", path, json.dumps(report), headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._own.connection = None
            self.refused.append(f"{action}: {error!r}")
            return False
        if answer.status != http.client.OK:
            self.refused.append(f"{action}: {answer.status} {text[:200]!r}")
        return answer.status == http.client.OK

    def _connection(self, url: str) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            address = urlsplit(url)
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=ANSWER_S)
            self._own.connection = connection
            self._connections.append(connection)
        return connection
