"""A client that does what it is told and remembers it, and a clock that stands still."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.group.membership import OnRebalance
from tidegate_ports.bus import Topic

TOPIC = Topic("tidegate.requests", "ab" * 16, 8)


class ManualClock:
    def __init__(self) -> None:
        self.now = 0

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now


class FakeClient:
    """Like the real one it raises when it is to let go of what it does not hold."""

    def __init__(self) -> None:
        self.assigned: dict[tuple[str, int], int] = {}
        self.calls: list[str] = []
        self.commits: list[list[TopicPartition]] = []
        self.committed_offset = -1001
        self.committed_fails = False
        self.brokers_answer = True
        self.others_find_brokers = False
        self.batches: list[list[Message]] = []
        self.during_poll: list[Callable[[], None]] = []
        self.closed = False
        self.polls = 0
        self._rest: list[Message] = []

    def poll(self, timeout: float = -1) -> Message | None:
        self.polls += 1
        while self.during_poll:
            self.during_poll.pop(0)()
        if not self.batches:
            time.sleep(0.001)
            return None
        first, *self._rest = self.batches.pop(0)
        return first

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        rest, self._rest = self._rest, []
        return rest

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(f"assign {[(part.partition, part.offset) for part in partitions]}")
        for part in partitions:
            assert (part.topic, part.partition) not in self.assigned, "the client refuses to assign twice"
            self.assigned[part.topic, part.partition] = part.offset

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(f"unassign {[part.partition for part in partitions]}")
        for part in partitions:
            del self.assigned[part.topic, part.partition]

    def commit(self, *, offsets: list[TopicPartition], asynchronous: Any) -> None:
        assert asynchronous is True
        assert offsets
        self.commits.append(offsets)

    def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        assert 0 < timeout < 1
        if self.committed_fails:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [TopicPartition(part.topic, part.partition, self.committed_offset) for part in partitions]

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object:
        assert 0 < timeout < 1
        if not self.brokers_answer:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return object()

    def subscribe(
        self,
        topics: list[str],
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
    ) -> None:
        """Gives topic partition 0 with the next poll."""
        if on_assign is not None:
            self.during_poll.append(lambda: on_assign(self, [TopicPartition(topics[0], 0)]))

    def close(self) -> None:
        self.closed = True


def record(number: int, offset: int, *, topic: str = TOPIC.name, error: KafkaError | None = None) -> Message:
    return Message(
        topic=topic,
        partition=number,
        offset=offset,
        key=b"k",
        value=str(offset).encode(),
        headers=[("h", b"1")],
        timestamp=(2, 1_000 + offset),
        error=error,
    )


class Notes:
    """Remembers notices."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def __call__(self, event: str, **fields: object) -> None:
        self.events.append((event, fields))

    def names(self) -> list[str]:
        return [name for name, _ in self.events]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def settings() -> KafkaSettings:
    return KafkaSettings(allow_plaintext=True, in_flight_records_max=4)


@pytest.fixture
def topic() -> Topic:
    return TOPIC


MakeRecord = Callable[..., Message]


@pytest.fixture
def a_record() -> MakeRecord:
    return record


@pytest.fixture
def parts() -> Callable[[Iterable[int]], list[TopicPartition]]:
    return lambda numbers: [TopicPartition(TOPIC.name, number) for number in numbers]
