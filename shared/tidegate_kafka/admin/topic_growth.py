"""Adds topic partitions to a topic, and reads the group's assignments. `tidegate partitions grow` calls it; blocks."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AdminClient,
    NewPartitions,
)

from tidegate_kafka.admin.topic_provisioning import TopicsUnavailable
from tidegate_kafka.clients.client_config import admin_config
from tidegate_kafka.clients.settings import KafkaSettings

REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
    }
)
"""Errors that a retry meets again."""


class GrowthRefused(Exception):
    """The brokers refuse to add topic partitions; the text says why."""


class TopicGrowth:
    """Admin client for growing topics. Each call raises `TopicsUnavailable` when the brokers do not answer."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._group = settings.group
        self._patience_s = settings.answer_ms_max / 1000
        self._admin = AdminClient(admin_config(settings))

    def grow(self, topic: str, topic_partitions: int) -> None:
        """Raises the number of topic partitions. Succeeds as well if another process has just done so.

        Raises:
            GrowthRefused: No permission, or against the brokers' policy.
        """
        wanted = [NewPartitions(topic, topic_partitions)]
        try:
            self._answer(self._admin.create_partitions(wanted, request_timeout=self._patience_s)[topic])
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == KafkaError.INVALID_PARTITIONS:
                return  # Another process was faster; the caller reads the present number next.
            if error.code() in REFUSED:
                raise GrowthRefused(f"topic {topic}: {error.str()}") from failure
            raise TopicsUnavailable(f"topic {topic}: {error.str()}") from failure

    def held(self, topic: str) -> frozenset[int] | None:
        """Returns the topic partitions assigned to members of the group; None if the group has no members or cannot be
        read.
        """
        try:
            group = self._answer(
                self._admin.describe_consumer_groups([self._group], request_timeout=self._patience_s)[self._group]
            )
        except KafkaException:
            return None
        if not group.members:
            return None
        assigned = (member.assignment for member in group.members if member.assignment is not None)
        return frozenset(part.partition for each in assigned for part in each.topic_partitions if part.topic == topic)

    def _answer(self, future: Any) -> Any:
        try:
            return future.result(timeout=self._patience_s + 1)
        except TimeoutError as failure:
            raise TopicsUnavailable(f"brokers: no answer within {self._patience_s:g} s") from failure
