"""Detects topic partitions whose records expire at one client although they have a leader.

The library can send for ever to a broker that no longer leads a topic partition. It keeps the greatest leader epoch
that it learned, and ignores metadata with a lower one. A recreated topic begins at epoch 0, possibly with another
leader, so the client never learns of that leader (librdkafka 2.16; `topic_recreation.py` describes the same for
readers). Metadata that arrives in the wrong order has the same effect. All other topic partitions continue, so no other
sign shows the fault. Only a new client helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tidegate_kafka.clients.connectivity import stranger_says
from tidegate_kafka.clients.settings import KafkaSettings

ASK_EVERY_MS: Final = 5_000
"""Shortest gap between two queries for a leader."""
ASK_S_MAX: Final = 0.5
"""Time-out of the query, connection included. It blocks the client's thread."""
PATIENCE_MS: Final = 15_000
"""Time that a leader must have been reported before it counts. It exceeds the life of any record, so that an expired
record was handed over within it. It also exceeds the 9 s for which brokers still name a dead leader.
"""
PATIENCE_MS_MAX: Final = 3_600_000
"""Upper bound of the doubled patience. If a new client does not help, the next one comes after twice the time. Causes
are too few replicas in sync, or a leader that this host cannot reach.
"""
PLACES_MAX: Final = 1_000
"""Most suspected topic partitions; with more, the client is not the cause. The oldest are forgotten."""

Place: TypeAlias = tuple[str, int]
"""Topic and topic partition."""
HasLeader: TypeAlias = Callable[[KafkaSettings, Place], bool]
"""Returns whether a newly created client learns of a leader for a topic partition. Blocks for `ASK_S_MAX` at most."""


def has_leader(settings: KafkaSettings, place: Place) -> bool:
    """Queries with a probe client: the metadata of the suspected client is in doubt."""
    topic, number = place

    def is_told(stranger: AdminClient) -> bool:
        try:
            found = stranger.list_topics(topic, ASK_S_MAX).topics[topic].partitions.get(number)
        except KafkaException:
            return False
        return found is not None and found.leader >= 0

    return stranger_says(settings, is_told)


@dataclass(slots=True)
class _Standing:
    """State of one suspected topic partition.

    Attributes:
        has_expired: Whether a record has expired since the leader was last queried.
        led_since: Start of the time in which every query found a leader.
        renewals: Clients created because of it since a record was last acknowledged.
    """

    has_expired: bool = False
    led_since: int | None = None
    renewals: int = 0


class StalledPartitions:
    """Suspected topic partitions of one publisher, over all of its clients; used on its thread."""

    def __init__(self, settings: KafkaSettings, has_leader: HasLeader) -> None:
        self._settings = settings
        self._has_leader = has_leader
        self._patience_ms = max(PATIENCE_MS, settings.delivery_ms_max)
        self._places: dict[Place, _Standing] = {}
        self._next_at = 0

    @property
    def suspects(self) -> bool:
        """Whether records of some topic partitions expired and none was acknowledged since; acknowledgements must be
        reported.
        """
        return bool(self._places)

    def begin_again(self) -> None:
        """Registers a new client. Failures of the former client do not count against it."""
        for standing in self._places.values():
            standing.has_expired, standing.led_since = False, None

    def expired(self, topic: str, topic_partition: int) -> None:
        """Records that a record was not acknowledged within its life."""
        if topic_partition < 0:
            return  # The client did not even know the topic partition.
        self._places.setdefault((topic, topic_partition), _Standing()).has_expired = True
        while len(self._places) > PLACES_MAX:
            del self._places[next(iter(self._places))]

    def acknowledged(self, topic: str, topic_partition: int) -> None:
        self._places.pop((topic, topic_partition), None)

    def look(self, now_ms: int) -> Place | None:
        """Returns a topic partition that requires a new client, or None. Queries at most one leader, at most every
        `ASK_EVERY_MS`.
        """
        if not self._places or now_ms < self._next_at:
            return None
        suspected = [place for place, standing in self._places.items() if standing.has_expired]
        if not suspected:
            return None
        self._next_at = now_ms + ASK_EVERY_MS
        # Stay with one until it is decided: a new client serves all. Those that a new client did not help come last.
        place = min(suspected, key=lambda each: self._places[each].renewals)
        standing = self._places[place]
        standing.has_expired = False
        if not self._has_leader(self._settings, place):
            standing.led_since = None
            self._places[place] = self._places.pop(place)  # Moves to the end of the queue.
        elif standing.led_since is None:
            standing.led_since = now_ms
        elif now_ms - standing.led_since >= min(self._patience_ms << standing.renewals, PATIENCE_MS_MAX):
            standing.renewals += 1
            return place
        return None
