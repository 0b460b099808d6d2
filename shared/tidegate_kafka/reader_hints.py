"""Hints of the topics that are read by manual assign, written under a group that has no members.

For lag tools alone: rarely, best effort, the answers are only looked at to be noticed. The consumer's own commit could
not do it, because each topic has its own group.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tidegate_kafka.client_config import admin_config
from tidegate_kafka.orders import Where
from tidegate_kafka.settings import KafkaSettings
from tidegate_ports.bus import Notices


class ReaderHints:
    """Collects the newest hint of each topic partition and writes them every `hint_every_ms`."""

    def __init__(self, settings: KafkaSettings, notices: Notices) -> None:
        self._settings = settings
        self._notices = notices
        self._admin = AdminClient(admin_config(settings))
        self._fresh: dict[Where, int] = {}
        self._next_at = 0

    def note(self, where: Where, offset: int) -> None:
        self._fresh[where] = offset

    def forget(self, where: Where) -> None:
        """Another node reads it now: our word would be the older one."""
        self._fresh.pop(where, None)

    def flush_if_due(self, now: int) -> list[Future[Any]]:
        """Hands what is fresh to the admin client, which writes it in the background."""
        if not self._fresh or now < self._next_at:
            return []
        self._next_at = now + self._settings.hint_every_ms
        by_topic: dict[str, list[TopicPartition]] = {}
        for (topic, number), offset in self._fresh.items():
            by_topic.setdefault(topic, []).append(TopicPartition(topic, number, offset))
        self._fresh.clear()
        return [self._write(topic, offsets) for topic, offsets in by_topic.items()]

    def _write(self, topic: str, offsets: list[TopicPartition]) -> Future[Any]:
        group = self._settings.reader_group(topic)
        request = ConsumerGroupTopicPartitions(group, offsets)
        patience_s = self._settings.answer_ms_max / 1000
        future = self._admin.alter_consumer_group_offsets([request], request_timeout=patience_s)[group]
        future.add_done_callback(self._written)
        return future

    def _written(self, future: Future[Any]) -> None:
        failure = future.exception()
        if isinstance(failure, KafkaException):
            self._notices("kafka_hint_failed", reason=str(failure))
