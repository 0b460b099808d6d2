"""The logs of a bench: what is appended to topics, what of it is read, and where they end."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from tests.support.builders import EVENTS, EVENTS_ID, REQUESTS, Doc
from tidegate_core.engine.actor_inputs import Assignment, Input, LogRecord, OffsetOutOfRange, RecordsArrived, TopicFacts
from tidegate_core.rows.effects import EndOffsets, FindGaps, Gaps

MARK = b"end of a transaction"
"""Key of what stands in a log for the mark of a transaction: no reader gets it."""


class Topics(ABC):
    """Attributes:
    topics: Of the users' own, by name; the events topic too, once it was made anew.
    event_topic_partitions: Of the events topic as it was in the beginning; what is appended behind them has it grow.
    ahead_of_broker: Milliseconds that the actor's clock is ahead of the broker's, which dates the records.
    """

    now: int
    holding: Assignment

    def __init__(self, event_topic_partitions: int) -> None:
        self.event_topic_partitions = event_topic_partitions
        self.topics: dict[str, TopicFacts] = {}
        self.ahead_of_broker = 0
        self._logs: dict[tuple[str, int], list[LogRecord]] = {}
        self._reading: set[tuple[str, int]] = set()
        self._begins: dict[tuple[str, int], int] = {}

    @abstractmethod
    def settle(self) -> None:
        """Lets everything happen that follows at this instant."""

    @abstractmethod
    def _soon_give(self, *inputs: Input) -> None: ...

    def request(self, document: Doc | bytes, topic_partition: int = 0) -> None:
        self.append(REQUESTS, topic_partition, document)

    def event(self, document: Doc | bytes, topic_partition: int = 0) -> None:
        self.append(EVENTS, topic_partition, document)

    def create_topic(self, name: str, topic_partitions: int = 1, topic_id: str = "c" * 32) -> None:
        """A topic of the users' own; or one of this name, which may be the events topic, made anew. Its logs stay as they are."""
        self.topics[name] = TopicFacts(name, topic_id, topic_partitions)

    def append(self, topic: str, topic_partition: int, *documents: Doc | bytes) -> None:
        """Appends records; they arrive as one batch if the topic partition is being read."""
        log = self.log(topic, topic_partition)
        first = len(log)
        for document in documents:
            value = document if isinstance(document, bytes) else json.dumps(document).encode()
            log.append(LogRecord(len(log), self.now - self.ahead_of_broker, None, value))
        self.hand_over(topic, topic_partition, first)

    def mark(self, topic: str, topic_partition: int) -> None:
        """A transaction ends: its mark has an offset, and is no record."""
        log = self.log(topic, topic_partition)
        log.append(LogRecord(len(log), self.now - self.ahead_of_broker, MARK, None))

    def remove_before(self, topic: str, topic_partition: int, offset: int) -> None:
        """Retention takes what lies before this offset: reading that is to begin there brings nothing but that it is gone."""
        self._begins[(topic, topic_partition)] = offset

    def _begin_reading(self, topic: str, topic_partition: int, offset: int | None) -> None:
        begin = self._begins.get((topic, topic_partition), 0)
        if offset is not None and offset < begin:
            self._soon_give(OffsetOutOfRange(topic, topic_partition, offset))
            return
        self._reading.add((topic, topic_partition))
        first = begin if offset is None else offset
        if len(self.log(topic, topic_partition)) > first:
            self._soon_give(self.arrived(topic, topic_partition, first))

    def hand_over(self, topic: str, topic_partition: int, first: int) -> None:
        """Gives the actor the log's records from an offset on, as one batch, if the topic partition is being read."""
        if (topic, topic_partition) in self._reading:
            self._soon_give(self.arrived(topic, topic_partition, first))
        self.settle()

    def arrived(self, topic: str, topic_partition: int, first: int) -> RecordsArrived:
        """Returns what the log holds from an offset on, as it is read now."""
        facts = self._facts_of(topic)
        records = tuple(each for each in self.log(topic, topic_partition)[first:] if each.key != MARK)
        return RecordsArrived(topic, topic_partition, records, "" if facts is None else facts.id)

    @property
    def logs(self) -> dict[tuple[str, int], list[LogRecord]]:
        """Records by topic and topic partition."""
        return self._logs

    def log(self, topic: str, topic_partition: int) -> list[LogRecord]:
        return self._logs.setdefault((topic, topic_partition), [])

    def _facts_of(self, topic: str) -> TopicFacts | None:
        events = TopicFacts(EVENTS, EVENTS_ID, self.event_topic_partitions)
        own = {REQUESTS: self.holding.requests, EVENTS: events}
        return self.topics.get(topic) or own.get(topic)

    def _gaps(self, wanted: FindGaps) -> Gaps:
        facts = self._facts_of(wanted.topic)
        if facts is None or facts.id != wanted.topic_id:
            return Gaps(frozenset())
        held = {number: self.log(wanted.topic, number)[begin:end] for number, (begin, end) in wanted.spans.items()}
        return Gaps(frozenset(number for number, log in held.items() if all(each.key == MARK for each in log)))

    def _end_offsets(self, topic: str) -> EndOffsets:
        facts = self._facts_of(topic)
        if facts is None:
            return EndOffsets({})
        # The brokers know of topic partitions that came after the holder had asked for their number.
        known = [number for name, number in self._logs if name == topic]
        each = range(max([facts.topic_partitions, *(number + 1 for number in known)]))
        return EndOffsets({f"{facts.id}/{number}": len(self.log(topic, number)) for number in each})
