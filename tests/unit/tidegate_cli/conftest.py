"""An API that a test plays, for commands to talk to."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tidegate_cli.dev.stack_events import Ready
from tidegate_client import Client

Answer = tuple[int, Any]


RUN = "0001-mfrggzdfmztwq2lkn5wg63tqoe"


RECEIPT = {
    "request_id": "r-1",
    "status": "accepted",
    "namespace": "flights",
    "name": "land",
    "version": 2,
    "at": "2026-11-20T22:00:00Z",
}


SCHEDULE = """\
kind: schedule
namespace: flights
name: land
target:
  type: program
  program: {type: python, file: jobs/land.py}
trigger:
  type: all_of
  triggers:
    - {type: data_partitions, dataset: a, count: 1}
    - type: data_partitions
      dataset: b
      count: zero
"""


class FakeApi:
    """Answers by method and path; remembers what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer | list[Answer]] = {}
        self.asked: list[httpx2.Request] = []

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.get(f"{request.method} {request.url.path.removeprefix('/api/v1')}")
        missing = (404, {"title": "Not Found", "status": 404, "detail": "there is none"})
        status, body = answer.pop(0) if isinstance(answer, list) else answer or missing
        return httpx2.Response(status, json=body if status < 400 else {"type": "urn:tidegate:problem:test", **body})


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    fake = FakeApi()

    def client() -> Client:
        return Client("http://api:1", transport=httpx2.MockTransport(fake.handle))

    for module in (
        "apply",
        "schedules",
        "sources",
        "jobs",
        "runs",
        "events",
        "messages",
        "why",
        "dlq",
        "node",
        "shards",
        "limits",
        "occurrences",
    ):
        monkeypatch.setattr(f"tidegate_cli.commands.{module}.api_client", client)
    return fake


def a_run(**fields: Any) -> dict[str, Any]:
    given = {
        "id": RUN,
        "namespace": "flights",
        "schedule": "land",
        "version": 1,
        "state": "running",
        "trigger": "time",
        "nominal": "2026-11-20T22:00:00Z",
    }
    return {**given, **fields}


def a_ready(api_url: str, folder: str) -> Ready:
    return Ready(
        seconds=4.2,
        api_url=api_url,
        kafka="127.0.0.1:9092",
        dynamodb="http://127.0.0.1:8000",
        data_dir="/data",
        ephemeral=False,
        folder=folder,
        nodes=("http://127.0.0.1:8081",),
        pid=17,
    )
