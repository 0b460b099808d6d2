"""A client that does not come into its group although brokers answer it: seen behind a broker's restart, while others joined at once."""

from __future__ import annotations

from typing import Final

from tidegate_kafka.clients.connectivity import Connectivity, OthersFind
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.partition_flows import Client

ASK_EVERY_MS: Final = 1_000
"""How often a client outside of its group is asked whether it finds a broker. Its thread serves nothing then."""


class Joining:
    """Whether the client is in its group, and for how long it has not come into it.

    What the brokers do not answer is no fault of the client's: while they are away, no time passes here; that it finds none although others do
    is (`Connectivity`). With KIP-848 a member without a share is told nothing, so that nobody knows whether it has joined. Nor is one without a share
    told that its session has run out (librdkafka 2.16), with neither protocol: whether it finds a broker is asked for as long as nothing proves it.

    Attributes:
        joined: The group has given the client its share, be it an empty one, and has not expelled it since.
    """

    def __init__(self, settings: KafkaSettings, now_ms: int, others: OthersFind) -> None:
        self._settings = settings
        self._others = others
        self._insists = settings.group_protocol == "classic"
        self._patience_ms = settings.joining_ms_max
        self._outside_since = now_ms
        self._reach = Connectivity(settings, others, now_ms, ASK_EVERY_MS)
        self.joined = False

    def given(self, now_ms: int) -> None:
        """It may be said again."""
        if not self.joined:
            self._reach = Connectivity(self._settings, self._others, now_ms)
        self.joined = True

    def proven(self, now_ms: int) -> None:
        """The coordinator has confirmed it lately."""
        self._reach.heard(now_ms)

    def expelled(self, now_ms: int) -> None:
        """It may be said again: no new time begins."""
        if self.joined:
            self._outside_since = now_ms
            self._reach = Connectivity(self._settings, self._others, now_ms, ASK_EVERY_MS)
        self.joined = False

    def is_overdue(self, client: Client, now_ms: int) -> bool:
        """Asks now and then, as long as the client is outside, or nothing proves that it is not.

        Raises:
            CutOff: It finds no broker, and others do.
        """
        if self._reach.look(client, now_ms) is False:
            self._outside_since = now_ms
        return not self.joined and self._insists and now_ms > self._outside_since + self._patience_ms
