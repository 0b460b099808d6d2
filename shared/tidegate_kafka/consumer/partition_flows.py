"""Topic partitions that a consumer holds, each with its flow. Executes commands and sorts the records that were read.

Used on the consumer's thread only. A topic partition that should flow is assigned at the client with an explicit
offset; all others are unassigned. Pause, resume, seek and "end" are avoided (all librdkafka 2.16):
- The client refuses a seek after "offset out of range".
- A resume while all other topic partitions are paused took 0.7 s to fetch again, an assignment 3 ms.
- A late answer to "where is the end?" of an earlier assignment silently moves a later explicit offset to the end.

A client with a pending revocation takes any unassignment for the answer to it, and the next assignment for the answer
to the step after. The group then gives topic partitions away before their owner was asked to drain. So after an
unassignment nothing is assigned until the client was polled, which delivers the revocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import KafkaError, Message, TopicPartition

from tidegate_kafka.consumer.consumer_commands import Order, Where
from tidegate_kafka.consumer.flow_control import Flow
from tidegate_kafka.consumer.record_conversion import size_of, to_record
from tidegate_ports.bus import Notices, Record, Topic


class Client(Protocol):
    """The part of `confluent_kafka.Consumer` that is used; tests fake it."""

    def poll(self, timeout: float = -1) -> Message | None: ...

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]: ...

    def incremental_assign(self, partitions: list[TopicPartition]) -> None: ...

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None: ...

    def commit(self, *, offsets: list[TopicPartition], asynchronous: Any) -> Any: ...

    def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]: ...

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object: ...

    def close(self) -> None: ...


class ClientEnded(Exception):
    """The client met a fatal error. It joins no group and reports nothing more, so it must be recreated."""


def is_fatal(error: KafkaError) -> bool:
    return error.fatal() or error.code() == KafkaError._FATAL  # noqa: SLF001 - a public code of the client


@dataclass(frozen=True, slots=True)
class Read:
    """Records of one topic partition and era, in offset order, never empty."""

    where: Where
    era: int
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class PositionGone:
    """The position `offset` is not in the log."""

    where: Where
    era: int
    offset: int


class PartitionFlows:
    """Flows by topic partition."""

    def __init__(self, client: Client, in_flight_max: int, notices: Notices) -> None:
        self._client = client
        self._in_flight_max = in_flight_max
        self._notices = notices
        self._flows: dict[Where, Flow] = {}
        self._topic_ids: dict[str, str] = {}
        self._has_unassigned = False
        self._later: set[Where] = set()

    @property
    def held(self) -> frozenset[Where]:
        return frozenset(self._flows)

    def add(self, topic: Topic, numbers: Iterable[int]) -> None:
        """Adds topic partitions without a position: the store names it later, not Kafka."""
        self._topic_ids[topic.name] = topic.id
        for number in numbers:
            self._flows.setdefault((topic.name, number), Flow(self._in_flight_max))

    def remove(self, wheres: Iterable[Where]) -> None:
        """Removes those topic partitions that are held; the client raises on foreign ones
        (confluent-kafka-python#1551).

        Calls the client even with an empty list: inside its callbacks it waits for this call.
        """
        mine = {where: self._flows.pop(where) for where in tuple(wheres) if where in self._flows}
        self._client.incremental_unassign([TopicPartition(*where) for where, flow in mine.items() if flow.flowing])

    def stop(self, wheres: Iterable[Where]) -> None:
        for where in wheres:
            if (flow := self._flows.get(where)) is not None:
                flow.stop()
                self._settle(where, flow)

    def carry_out(self, orders: Mapping[Where, Order]) -> None:
        """Executes the loop's commands; commands for topic partitions that were lost since are void."""
        for where, order in orders.items():
            if order.leave:
                if where in self._flows:
                    self.remove([where])
                continue
            if order.topic is not None:
                self.add(order.topic, [where[1]])
            if (flow := self._flows.get(where)) is not None:
                self._obey(where, flow, order)

    def sort(self, messages: Iterable[Message]) -> list[Read | PositionGone]:
        """Returns the records and lost positions by topic partition. Drops records from before a flow's present position.

        Call it after each poll.
        """
        self._polled()
        batches: dict[Where, list[Record]] = {}
        found: list[Read | PositionGone] = []
        failed: list[Message] = []
        for message in messages:
            if message.error() is not None:
                # An error is handled after all records of this poll, because the records move the position that it concerns.
                failed.append(message)
                continue
            where = (message.topic() or "", message.partition() or 0)
            flow = self._flows.get(where)
            if flow is not None and flow.flowing and (message.offset() or 0) >= flow.next:
                batches.setdefault(where, []).append(to_record(message, self._topic_ids[where[0]]))
        for where, records in batches.items():
            flow = self._flows[where]
            flow.handed_over([size_of(record) for record in records], records[-1].offset + 1)
            found.append(Read(where, flow.era, records))
            self._settle(where, flow)
        for message in failed:
            found.extend(self._failed(message))
        return found

    def _obey(self, where: Where, flow: Flow, order: Order) -> None:
        if order.stop:
            flow.stop()
        if order.seek is not None:
            self._quiet(where, flow)
            flow.start(order.era, order.seek)
        flow.taken(order.era, order.taken)
        self._settle(where, flow)

    def _settle(self, where: Where, flow: Flow) -> None:
        if not flow.should_flow:
            self._quiet(where, flow)
        elif not flow.flowing and self._has_unassigned:
            self._later.add(where)
        elif not flow.flowing:
            self._client.incremental_assign([TopicPartition(where[0], where[1], flow.next)])
            flow.flowing = True

    def _quiet(self, where: Where, flow: Flow) -> None:
        if flow.flowing:
            self._client.incremental_unassign([TopicPartition(*where)])
            flow.flowing = False
            self._has_unassigned = True

    def _polled(self) -> None:
        self._has_unassigned = False
        later, self._later = sorted(self._later), set()
        for where in later:
            flow = self._flows.get(where)
            if flow is not None and flow.should_flow:
                self._settle(where, flow)

    def _failed(self, message: Message) -> Iterable[PositionGone]:
        error, topic, number = message.error(), message.topic(), message.partition()
        if error is not None and is_fatal(error):
            raise ClientEnded(str(error))
        if error is None or error.code() != KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - a public code of the client
            self._notices("kafka_consumer_error", topic=topic, topic_partition=number, reason=str(error))
            return ()
        where = (topic or "", number if number is not None else -1)
        flow = self._flows.get(where)
        if flow is None or not flow.flowing:
            return ()
        self._quiet(where, flow)
        # An error about another offset may belong to an earlier assignment. If not, the next assignment reports it
        # again.
        flow.gone = message.offset() == flow.next
        self._settle(where, flow)
        return (PositionGone(where, flow.era, flow.next),) if flow.gone else ()
