"""Detects a client that does not join its group although brokers answer: seen after a broker's restart, while other
clients joined.
"""

from __future__ import annotations

from typing import Final

from tidegate_kafka.clients.connectivity import Connectivity, OthersFind
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.partition_flows import Client

ASK_EVERY_MS: Final = 1_000
"""Interval of the query whether a client outside its group finds a broker. The client's thread has nothing to serve
then."""


class Joining:
    """Whether the client is in its group, and how long it has been outside.

    Time in which the client finds no broker does not count against it; that case is `Connectivity`'s. With KIP-848 a
    member without a share gets no callback, so its join cannot be seen. With neither protocol does a member without a
    share learn that its session has ended (librdkafka 2.16). So connectivity is queried as long as nothing proves the
    membership.

    Attributes:
        joined: Whether the group has given the client a share, possibly an empty one, and has not expelled it since.
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
        """Records an assignment; may be repeated."""
        if not self.joined:
            self._reach = Connectivity(self._settings, self._others, now_ms)
        self.joined = True

    def proven(self, now_ms: int) -> None:
        """Records that the coordinator has confirmed the membership."""
        self._reach.heard(now_ms)

    def expelled(self, now_ms: int) -> None:
        """Records an expulsion. May be repeated; a repetition does not restart the time outside."""
        if self.joined:
            self._outside_since = now_ms
            self._reach = Connectivity(self._settings, self._others, now_ms, ASK_EVERY_MS)
        self.joined = False

    def is_overdue(self, client: Client, now_ms: int) -> bool:
        """Returns whether the join is overdue. Queries the brokers while the client is outside or its membership
        unproven.

        Raises:
            CutOff: The client finds no broker, but other clients do.
        """
        if self._reach.look(client, now_ms) is False:
            self._outside_since = now_ms
        return not self.joined and self._insists and now_ms > self._outside_since + self._patience_ms
