"""Reads message topics once, from an instant to their present ends, for the audit. Joins no group and commits
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tidegate_kafka.clients.client_config import reader_config
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.record_conversion import to_record
from tidegate_ports.topic_snapshot import Landed, LandedUnavailable

BATCH: Final = 1_000
BATCH_WAIT_S: Final = 0.2
SILENCE_S_MAX: Final = 30.0
"""Longest wait for an expected record. A topic partition without a leader for longer ends the audit, which may be
repeated."""


class LandedOnTopics:
    """Implements the port `LandedRecords`."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._patience_s = settings.answer_ms_max / 1_000

    def read(self, topics: Sequence[str], since: int) -> Iterator[Landed]:
        consumer = Consumer(reader_config(self._settings))
        try:
            yield from self._read(consumer, topics, since)
        except KafkaException as failure:
            raise LandedUnavailable(f"broker: {failure.args[0].str()}") from failure
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, topics: Sequence[str], since: int) -> Iterator[Landed]:
        begins: dict[tuple[str, int], int] = {}
        left: dict[tuple[str, int], int] = {}
        places = []
        for place in self._from(consumer, self._partitions(consumer, topics), since):
            if place.error is not None:
                # An error leaves no offset, just like a topic partition without records since the instant.
                raise KafkaException(place.error)
            low, high = consumer.get_watermark_offsets(place, self._patience_s)
            if 0 < low == high:
                # All records were removed; those may have been of any time up to now.
                yield Landed(place.topic, time.time_ns() // 1_000_000, (), True)
            # If no record is that new, the client answers with a special offset. Retention may have removed records
            # since.
            begin = max(low, place.offset) if 0 <= place.offset < high else high
            if begin < high:
                begins[(place.topic, place.partition)] = low
                left[(place.topic, place.partition)] = high
                places.append(TopicPartition(place.topic, place.partition, begin))
        consumer.assign(places)
        heard = time.monotonic()
        while left:
            for message in consumer.consume(BATCH, BATCH_WAIT_S):
                landed = self._landed(message, begins)
                if landed is not None:
                    heard = time.monotonic()
                    yield landed
            self._drop_read(consumer, places, left)
            if time.monotonic() - heard > SILENCE_S_MAX:
                raise LandedUnavailable(f"broker: no record of {sorted(left)} for {SILENCE_S_MAX:g} s")

    @staticmethod
    def _drop_read(consumer: Consumer, places: Sequence[TopicPartition], left: dict[tuple[str, int], int]) -> None:
        """Drops finished topic partitions. Decided by the client's position: transaction markers have offsets but are
        no records.
        """
        for place in consumer.position(list(places)):
            where = (place.topic, place.partition)
            if where in left and place.offset >= left[where]:
                del left[where]

    @staticmethod
    def _landed(message: Message, begins: dict[tuple[str, int], int]) -> Landed | None:
        error = message.error()
        if error is not None:
            if error.retriable():
                return None
            raise KafkaException(error)
        record = to_record(message, "")
        low = begins[(record.topic, record.topic_partition)]
        return Landed(record.topic, record.append_time_ms, record.headers, 0 < low == record.offset)

    def _partitions(self, consumer: Consumer, topics: Sequence[str]) -> list[TopicPartition]:
        known = consumer.list_topics(timeout=self._patience_s).topics
        return [
            TopicPartition(topic, number) for topic in topics if topic in known for number in known[topic].partitions
        ]

    def _from(self, consumer: Consumer, partitions: Sequence[TopicPartition], since: int) -> list[TopicPartition]:
        wanted = [TopicPartition(each.topic, each.partition, since) for each in partitions]
        return consumer.offsets_for_times(wanted, timeout=self._patience_s) if wanted else []
