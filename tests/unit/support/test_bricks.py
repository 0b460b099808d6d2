"""Where tests get their bricks from: named endpoints first, then containers, then local jars."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

from tests.support.servers import servers as bricks
from tests.support.servers.containers import Containers
from tests.support.servers.servers import DynamoDbForTests, KafkaForTests, dynamodb_for_tests, kafka_for_tests


class FakeContainers(Containers):
    """Containers that run at once."""

    def __init__(self) -> None:
        """Needs no engine."""

    @contextmanager
    def kafka(self) -> Iterator[str]:
        yield "docker:9092"

    @contextmanager
    def dynamodb(self) -> Iterator[str]:
        yield "http://docker:8000"


class FakeLocal:
    """A local brick, of either kind, that runs at once."""

    bootstrap_servers = "127.0.0.1:21000"
    endpoint = "http://127.0.0.1:21001"

    def __init__(self, data_dir: Path | None) -> None:
        assert data_dir is None
        self.stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stopped = True


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> list[FakeLocal]:
    """The local bricks that a test brings up, on a machine without Docker."""
    made: list[FakeLocal] = []

    def make(data_dir: Path | None) -> FakeLocal:
        made.append(FakeLocal(data_dir))
        return made[-1]

    monkeypatch.setattr(bricks, "find_containers", lambda: None)
    monkeypatch.setattr(bricks, "KafkaBrick", make)
    monkeypatch.setattr(bricks, "DynamoDbBrick", make)
    return made


def test_given_named_endpoints_then_they_win_over_containers() -> None:
    with kafka_for_tests({"TIDEGATE_TEST_KAFKA": "named:9092"}, FakeContainers()) as kafka:
        assert kafka == KafkaForTests("named:9092", brick=None)
    with dynamodb_for_tests({"TIDEGATE_TEST_DYNAMODB": "http://named:8000"}, FakeContainers()) as dynamodb:
        assert dynamodb == DynamoDbForTests("http://named:8000", brick=None)


def test_given_named_dynamodb_then_credentials_come_from_the_environment() -> None:
    variables = {
        "TIDEGATE_TEST_DYNAMODB": "http://named:8000",
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    with dynamodb_for_tests(variables) as dynamodb:
        assert (dynamodb.region, dynamodb.access_key_id, dynamodb.secret_access_key) == (
            "eu-central-1",
            "key",
            "secret",
        )


def test_given_docker_engine_then_containers_win_over_local_jars() -> None:
    with kafka_for_tests({}, FakeContainers()) as kafka, dynamodb_for_tests({}, FakeContainers()) as dynamodb:
        assert kafka.bootstrap_servers == "docker:9092"
        assert dynamodb.endpoint_url == "http://docker:8000"
        assert kafka.brick is dynamodb.brick is None


def test_given_neither_then_local_bricks_run_and_stop_afterwards(local: list[FakeLocal]) -> None:
    with kafka_for_tests({}) as kafka, dynamodb_for_tests({}) as dynamodb:
        assert kafka.bootstrap_servers == "127.0.0.1:21000"
        assert dynamodb.endpoint_url == "http://127.0.0.1:21001"
        assert list[object]([kafka.brick, dynamodb.brick]) == local
        assert not any(brick.stopped for brick in local)
    assert all(brick.stopped for brick in local)
