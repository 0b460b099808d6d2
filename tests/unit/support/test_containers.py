"""Containers where a Docker engine answers; one line where they are skipped. No engine takes part."""

from typing import Self

import pytest

from tests.support.servers import containers
from tests.support.servers.containers import Containers


class FakeContainer:
    """Notes what it is told."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.ports: dict[int, int] = {}
        self.environment: dict[str, str] = {}
        self.command = ""
        self.events: list[str] = []

    def with_bind_ports(self, container: int, host: int, /) -> Self:
        self.ports[container] = host
        return self

    def with_env(self, key: str, value: str, /) -> Self:
        self.environment[key] = value
        return self

    def with_command(self, command: str, /) -> Self:
        self.command = command
        return self

    def start(self) -> Self:
        self.events.append("started")
        return self

    def stop(self) -> None:
        self.events.append("stopped")

    def get_container_host_ip(self) -> str:
        return "docker.example"


class FakeEngine:
    """Makes containers and remembers them."""

    def __init__(self) -> None:
        self.made: list[FakeContainer] = []

    def container_of(self, image: str) -> FakeContainer:
        self.made.append(FakeContainer(image))
        return self.made[-1]


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lets both servers answer at the second question; returns who was asked."""
    asked: list[str] = []

    def answer(who: str) -> bool:
        asked.append(who)
        return len(asked) > 1

    monkeypatch.setattr(containers, "READY_POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(containers, "answering_cluster", lambda endpoint: "cluster" if answer(endpoint) else None)
    monkeypatch.setattr(containers, "answers_list_tables", lambda host, port: answer(f"{host}:{port}"))
    return asked


def test_given_kafka_then_broker_announces_the_published_port(engine: FakeEngine, answering: list[str]) -> None:
    with Containers(engine.container_of).kafka() as endpoint:
        [container] = engine.made
        assert endpoint == f"docker.example:{container.ports[9092]}"
        assert container.environment["KAFKA_ADVERTISED_LISTENERS"] == f"CLIENTS://{endpoint}"
        assert answering == [endpoint, endpoint]
        assert container.events == ["started"]
    assert container.events == ["started", "stopped"]
    assert container.image == "apache/kafka:4.1.1"
