"""A client that does not come into its group although brokers answer it: seen behind a broker's restart, while others joined at once."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaException

from tidegate_kafka.lanes import Client
from tidegate_kafka.settings import KafkaSettings

ASK_EVERY_MS: Final = 1_000
"""How often a client outside of its group asks whether a broker answers."""
ASK_S_MAX: Final = 0.25
"""Patience with one question. It holds the thread up, which then serves nothing."""


class Joining:
    """Whether the client is in its group, and for how long it has not come into it.

    What the brokers do not answer is no fault of the client's: while they are away, no time passes here. With KIP-848 a member without a share
    is told nothing, so that nobody knows whether it has joined.

    Attributes:
        joined: The group has given the client its share, be it an empty one, and has not expelled it since.
    """

    def __init__(self, settings: KafkaSettings, topic: str, now_ms: int) -> None:
        self._insists = settings.group_protocol == "classic"
        self._patience_ms = settings.joining_ms_max
        self._topic = topic
        self._outside_since = now_ms
        self._asked_at = now_ms
        self.joined = False

    def given(self) -> None:
        self.joined = True

    def expelled(self, now_ms: int) -> None:
        """It may be said again: no new time begins."""
        if self.joined:
            self._outside_since = self._asked_at = now_ms
        self.joined = False

    def is_overdue(self, client: Client, now_ms: int) -> bool:
        """Takes up to `ASK_S_MAX` once in `ASK_EVERY_MS` while the client is outside."""
        if self.joined or not self._insists:
            return False
        if now_ms >= self._asked_at + ASK_EVERY_MS:
            self._asked_at = now_ms
            if not _answers(client, self._topic):
                self._outside_since = now_ms
        return now_ms > self._outside_since + self._patience_ms


def _answers(client: Client, topic: str) -> bool:
    try:
        client.list_topics(topic, ASK_S_MAX)
    except KafkaException:
        return False
    return True
