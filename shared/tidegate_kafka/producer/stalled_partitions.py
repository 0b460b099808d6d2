"""Topic partitions to which one client's records expire, one after another, although they have a leader.

The library can send to a broker for ever that leads a topic partition no more. It keeps the greatest leader epoch that it was told, and takes
news with a lesser one for old ones: of a topic that was made anew, whose epochs begin at 0 again and whose leader is another broker, it learns
nothing (librdkafka 2.16, issue 4898; `topic_recreation.py` tells the same of readers). News that overtake each other have the same end (issues 5430
and 5593). All other topic partitions go on, so that nothing else shows it. Nothing but a new client helps.
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
"""How often somebody is asked for one leader at most."""
ASK_S_MAX: Final = 0.5
"""Patience with the answer, a connection included. It holds the client's thread up."""
PATIENCE_MS: Final = 15_000
"""A leader is told for so long before it counts: longer than any record lives, so that one of those that expired was handed over meanwhile, and
longer than brokers name one that has fallen (9 s).
"""
PATIENCE_MS_MAX: Final = 3_600_000
"""Where a new client changed nothing (too few replicas are in sync, the leader is out of this host's reach) the next one comes after twice as
long, and so on up to this.
"""
PLACES_MAX: Final = 1_000
"""More at a time are no fault of a client's; the oldest are forgotten."""

Place: TypeAlias = tuple[str, int]
"""Topic and topic partition."""
HasLeader: TypeAlias = Callable[[KafkaSettings, Place], bool]
"""Whether a client that was made just now is told of a leader of a topic partition. Blocking, `ASK_S_MAX` at most."""


def has_leader(settings: KafkaSettings, place: Place) -> bool:
    """Asks a stranger: what the client in doubt knows is what is in doubt."""
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
    """Attributes:
    has_expired: A record has, since the leader was asked for last.
    led_since: There was a leader whenever it was asked for, since then.
    renewals: Clients that were made for it without a record being taken.
    """

    has_expired: bool = False
    led_since: int | None = None
    renewals: int = 0


class StalledPartitions:
    """Of one publisher, whose clients follow each other; on its thread."""

    def __init__(self, settings: KafkaSettings, has_leader: HasLeader) -> None:
        self._settings = settings
        self._has_leader = has_leader
        self._patience_ms = max(PATIENCE_MS, settings.delivery_ms_max)
        self._places: dict[Place, _Standing] = {}
        self._next_at = 0

    @property
    def suspects(self) -> bool:
        """Some have not been acknowledged since they expired: what is acknowledged is to be told."""
        return bool(self._places)

    def begin_again(self) -> None:
        """There is a new client: what the one before it could not deliver says nothing of this one."""
        for standing in self._places.values():
            standing.has_expired, standing.led_since = False, None

    def expired(self, topic: str, topic_partition: int) -> None:
        """A record was not acknowledged within its life."""
        if topic_partition < 0:
            return  # The client did not even know where it belongs.
        self._places.setdefault((topic, topic_partition), _Standing()).has_expired = True
        while len(self._places) > PLACES_MAX:
            del self._places[next(iter(self._places))]

    def acknowledged(self, topic: str, topic_partition: int) -> None:
        self._places.pop((topic, topic_partition), None)

    def look(self, now_ms: int) -> Place | None:
        """Returns a topic partition for whose sake another client is to be made. Asks for one leader at most, now and then."""
        if not self._places or now_ms < self._next_at:
            return None
        suspected = [place for place, standing in self._places.items() if standing.has_expired]
        if not suspected:
            return None
        self._next_at = now_ms + ASK_EVERY_MS
        # One until it is clear about it: a new client serves them all. Those for which it did not come last.
        place = min(suspected, key=lambda each: self._places[each].renewals)
        standing = self._places[place]
        standing.has_expired = False
        if not self._has_leader(self._settings, place):
            standing.led_since = None
            self._places[place] = self._places.pop(place)  # Behind all others.
        elif standing.led_since is None:
            standing.led_since = now_ms
        elif now_ms - standing.led_since >= min(self._patience_ms << standing.renewals, PATIENCE_MS_MAX):
            standing.renewals += 1
            return place
        return None
