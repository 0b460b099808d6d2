"""The servers of a whole test process: one broker and one DynamoDB Local, and one more of each for tests that stop them.

`tests/conftest.py` makes these fixtures known to all tests. Each starts with the first test that asks for it. What a test makes on a
shared server carries a prefix of its own (`cluster_servers.py`) and stays there: with 480 topics of other clusters the next
cluster costs the broker 0.15 s of CPU, no more than the first ones, and the idle broker needs 1 % of a core (measured). A test that stops or pauses a server takes
`stoppable_kafka` or `pausable_dynamodb`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.servers import DynamoDbForTests, KafkaForTests, dynamodb_for_tests, kafka_for_tests
from tidegate_bricks import DynamoDbBrick, KafkaBrick


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaForTests]:
    """The broker of this process. It runs until the last test has ended: nobody may stop or pause it."""
    with kafka_for_tests() as running:
        yield running


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[DynamoDbForTests]:
    """The store of this process, in memory. It runs until the last test has ended: nobody may stop or pause it."""
    with dynamodb_for_tests() as running:
        yield running


@pytest.fixture(scope="session")
def second_kafka() -> Iterator[KafkaBrick]:
    with KafkaBrick(None) as brick:
        yield brick


@pytest.fixture
def stoppable_kafka(second_kafka: KafkaBrick) -> Iterator[KafkaBrick]:
    """A broker that runs, and that the test may stop, kill or pause. What earlier tests made is still there."""
    _bring_back(second_kafka)
    yield second_kafka
    _bring_back(second_kafka)


@pytest.fixture(scope="session")
def second_dynamodb() -> Iterator[DynamoDbBrick]:
    with DynamoDbBrick(None) as brick:
        yield brick


@pytest.fixture
def pausable_dynamodb(second_dynamodb: DynamoDbBrick) -> Iterator[DynamoDbBrick]:
    """A store that runs, and that the test may pause. It is in memory: a stop would take the tables."""
    yield second_dynamodb
    second_dynamodb.resume()


def _bring_back(brick: KafkaBrick) -> None:
    if brick.running:
        brick.resume()
    else:
        brick.start()
