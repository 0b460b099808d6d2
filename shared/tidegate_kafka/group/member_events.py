"""Carries events from a member's thread to its listener on the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidegate_kafka.clients.client_thread import Life
from tidegate_kafka.clients.loop_bridge import Post
from tidegate_kafka.consumer.consumer_commands import ConsumerCommands
from tidegate_kafka.consumer.reader_progress import Progress
from tidegate_kafka.consumer.topic_ids import TopicIds
from tidegate_kafka.group.pending_drain import PendingDrain
from tidegate_ports.bus import MembershipListener, Record, Topic


class Found(NamedTuple):
    """Records read from a topic partition, or, without records, a position that its log does not hold."""

    topic_partition: int
    era: int
    life: Life
    records: Sequence[Record]
    gone: int = -1


class MemberEvents:
    """Passes a member's events to the listener on the loop, and drops events that a later command made void.

    Attributes:
        ids: Finds the topic that records lie in before they are handed on.
        progress: Position up to which the listener has records, and how many it has not finished.
        life: State of the client that reads now.
    """

    def __init__(self, listener: MembershipListener, orders: ConsumerCommands, topic: Topic, post: Post) -> None:
        self._listener = listener
        self._orders = orders
        self._topic = topic
        self._post = post
        self.ids: TopicIds[Found] | None = None
        self.progress = Progress()
        self.life = Life()
        self._given = 0
        self._heard = 0
        self._given_as: dict[int, int] = {}

    def begin_again(self) -> None:
        """Registers a new client. Records of the former client were handed on already, or are dropped."""
        self.life = Life()

    def gives(self, topic_partitions: Sequence[int]) -> None:
        """Announces an assignment; to be called before the topic partitions count as owned, and before `assigned`."""
        for number in topic_partitions:
            self._given_as[number] = self._given + 1
        self._given += 1

    def assigned(self, topic_partitions: Sequence[int]) -> None:
        self._post(self._assigned, self._given, tuple(topic_partitions))

    def heard_of(self, owned: frozenset[int]) -> frozenset[int]:
        """Returns those topic partitions whose newest assignment has reached the listener.

        Until then the listener still holds the state of the former assignment, and another node may have been the owner
        since.
        """
        heard = self._heard
        if heard == self._given:
            return owned
        return frozenset(number for number in owned if self._given_as[number] <= heard)

    def revoked(self, topic_partitions: Sequence[int], drain: PendingDrain) -> None:
        self._post(self._gone, topic_partitions, drain)

    def lost(self, topic_partitions: Sequence[int]) -> None:
        self._post(self._gone, topic_partitions, None)

    def records(self, topic_partition: int, era: int, records: Sequence[Record]) -> None:
        self._post(self._found, Found(topic_partition, era, self.life, records))

    def position_gone(self, topic_partition: int, era: int, offset: int) -> None:
        self._post(self._found, Found(topic_partition, era, self.life, (), offset))

    def _assigned(self, given: int, topic_partitions: Sequence[int]) -> None:
        self._heard = given
        self._listener.assigned(topic_partitions)

    def _gone(self, topic_partitions: Sequence[int], drain: PendingDrain | None) -> None:
        for number in topic_partitions:
            self._orders.forget((self._topic.name, number))
            self.progress.ended(number)
        if drain is None:
            self._listener.lost(tuple(topic_partitions))
        else:
            self._listener.revoked(tuple(topic_partitions), drain)

    def _found(self, found: Found) -> None:
        if self.ids is None:
            self.hand_on(found, None)
        else:
            self.ids.put(self._topic.name, found)

    def hand_on(self, found: Found, topic_id: str | None) -> None:
        """Hands a result to the listener, unless a newer command voids it. After a failure nothing more is handed
        on.
        """
        if found.life.bug is not None or self._orders.era((self._topic.name, found.topic_partition)) != found.era:
            return
        if not found.records:
            self.progress.ended(found.topic_partition)
            self._listener.position_gone(found.topic_partition, found.gone)
            return
        records = found.records
        if topic_id is not None:
            records = [each if each.topic_id == topic_id else each._replace(topic_id=topic_id) for each in records]
        try:
            self.progress.handed(found.topic_partition, records[-1].offset + 1, len(records))
            self._listener.records(found.topic_partition, records)
        except Exception as bug:  # noqa: BLE001 - reported when the client ends (`Life.check`)
            found.life.bug = bug
