"""Follows topics of events as the brokers report them: reads new topic partitions, and a recreated topic instead of the deleted one.

The watches of the events topic and of sources use it (`topic_watch.py`). It acquires cursors by raising their epochs; all further writes are
those of the cursors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tidegate_core.engine.actor_context import ActorContext, Fenced
from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest.event_decoding import TopicReading
from tidegate_core.ingest.event_ingest import EventIngest
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.rows.effects import EndOffsets, Items, Read, StopReading
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.writes.fencing import whole

ASK_AGAIN_MS: Final = 60_000
"""Interval between questions about a topic; growth and a recreated topic are noticed that late. Each owner asks once for each topic."""


class TopicFollower:
    """One per watch and life of a partition actor.

    Args:
        host: Shared parts of the partition actor.
        index: Subscriptions of the node.
        requests: Cursor of the ownership topic partition; its epoch tells whether this node still owns it.
        cursors: Cursors of the actor; those of these topics are added and removed here.
        reading: Decoder from records to events.
    """

    def __init__(
        self,
        host: ActorContext,
        index: SubscriptionIndex,
        requests: TopicCursor,
        cursors: dict[tuple[str, int], TopicCursor],
        reading: TopicReading,
    ) -> None:
        self._host = host
        self._index = index
        self._requests = requests
        self._cursors = cursors
        self._reading = reading
        self._ingests: dict[tuple[str, int], EventIngest] = {}
        self._asked_at: dict[str, int] = {}
        self._outlived: dict[str, tuple[str, int]] = {}
        self._doubted: set[str] = set()
        self._taking_over = False
        self.is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no cursor is being acquired or moved."""
        return not self._taking_over and all(ingest.cursor.is_idle for ingest in self._ingests.values())

    @property
    def names(self) -> frozenset[str]:
        """Topics of which at least one topic partition is read."""
        return frozenset(name for name, _ in self._ingests)

    @property
    def aside(self) -> frozenset[str]:
        """Topics with a suspended cursor; it goes on after the topic is left and followed again."""
        return frozenset(name for (name, _), ingest in self._ingests.items() if ingest.cursor.stands_aside)

    def is_due(self, topic: str) -> bool:
        """Whether the brokers have to be asked about the topic: at first sight, each minute, and until they have answered."""
        return self._host.now - self._asked_at.get(topic, -ASK_AGAIN_MS) >= ASK_AGAIN_MS

    def recheck(self, topic: str, *, outlived: str | None) -> bool:
        """Makes a topic due at once, because it may be gone; False: it is none of these topics.

        Args:
            topic: Name of the topic.
            outlived: Id of a former topic of that name. The topic stays due until the brokers report another id.
        """
        if topic not in self._asked_at and topic not in self.names:
            return False
        if outlived is not None:
            self._outlived[topic] = (outlived, self._host.now)
        self._asked_at.pop(topic, None)
        self._doubted.add(topic)
        return True

    def close(self) -> None:
        """Acquires no further topic partition; cursors go on until the actor ends."""
        self.is_closed = True

    def follow(self, topic: str, asked: object, version: int = 0) -> Operation[None]:
        """Reads the topic partitions that belong to this owner.

        The owner of a topic partition depends on the partition map alone. So two owners read none twice, even if the brokers report
        different sizes to them.

        Args:
            topic: Name of the topic.
            asked: Answer of the brokers.
            version: Version of the sources before the brokers were asked.
        """
        self._doubted.discard(topic)
        if not isinstance(asked, EndOffsets):
            return  # No answer: the next check asks again.
        # Not after the take-over: that may take a minute, and the topic may grow in it.
        told_at = self._host.now
        if not asked.offsets:
            self._asked_at[topic] = told_at  # The topic is missing.
            return
        facts = facts_of(topic, asked)
        if self._is_another(facts) or self._is_there_after_all(facts):
            yield from self.leave(topic)
        new = [number for number in self._mine(facts) if (topic, number) not in self._ingests]
        if new:
            yield from self._check_holding()
        firsts = yield from self._reading.first_offsets(self._host, topic)
        taken: list[TopicCursor] = []
        for number in new:
            if self.is_closed or not firsts:
                return
            self._taking_over = True
            self._reading.begins(facts.id, number, version)
            taken.append((yield from self._take_over(facts, number, firsts)))
            self._taking_over = False
        # All at once: events that came to several topic partitions at one time are to be counted together.
        for cursor in taken if not self.is_closed else ():
            self._read(cursor)
        outlived, _ = self._outlived.get(topic, ("", 0))
        # If the brokers reported the former topic, or a recheck came in between, the next check asks again.
        if outlived != facts.id and topic not in self._doubted:
            self._asked_at[topic] = told_at

    def leave(self, topic: str) -> Operation[None]:
        """Stops reading a topic, after the batches in progress."""
        self._asked_at.pop(topic, None)
        self._outlived.pop(topic, None)
        for name, number in sorted(where for where in self._ingests if where[0] == topic):
            ingest = self._ingests.pop((name, number))
            del self._cursors[name, number]
            self._host.emit(StopReading(name, number))
            yield from ingest.cursor.end()
            self._host.note("topic_left", topic=name, topic_partition=number)

    def _is_another(self, facts: TopicFacts) -> bool:
        read = [ingest.cursor.topic for ingest in self._ingests.values()]
        return any(topic.name == facts.name and topic.id != facts.id for topic in read)

    def _is_there_after_all(self, facts: TopicFacts) -> bool:
        """Whether the former topic is the present one after all. All brokers know a topic within a minute, so the other id was reported late."""
        outlived, since = self._outlived.get(facts.name, ("", 0))
        return outlived == facts.id and self._host.now - since >= ASK_AGAIN_MS

    def _mine(self, facts: TopicFacts) -> range:
        holding = self._host.holding
        return range(holding.topic_partition, facts.topic_partitions, holding.topic_partitions)

    def _check_holding(self) -> Operation[None]:
        """Raises Fenced in a former owner: if it raised further epochs, it would obstruct the present owner."""
        found = yield from self._host.read_for_good(Read((self._requests.key,)))
        assert isinstance(found, Items)
        stored = found.found.get(self._requests.key)
        if stored is None or whole(stored, "epoch") != self._requests.at.epoch:
            raise Fenced(self._requests.key)

    def _take_over(self, facts: TopicFacts, number: int, firsts: Sequence[Mapping[str, int]]) -> Operation[TopicCursor]:
        cursor = TopicCursor(self._host, facts, number, self._host.holding.events_dlq_topic)
        if not (yield from cursor.raise_epoch()):
            raise Fenced(cursor.key)
        # No source maps records below all first offsets; the cursor may be that of sources of long ago.
        first = min(vector.get(f"{facts.id}/{number}", 0) for vector in firsts)
        if cursor.at.next < first:
            yield from cursor.move(first, cursor.at.last_append_time)
        return cursor

    def _read(self, cursor: TopicCursor) -> None:
        topic, number = cursor.topic.name, cursor.topic_partition
        ingest = EventIngest(cursor, self._index, self._reading)
        self._ingests[topic, number] = ingest
        self._cursors[topic, number] = cursor
        self._host.operations.start(ingest.serve())
        cursor.start_reading()
        self._host.note("topic_read", topic=topic, topic_partition=number, position=cursor.at.next)


def facts_of(topic: str, ends: EndOffsets) -> TopicFacts:
    """Returns a topic's name, id and number of topic partitions, as its end offsets show them."""
    places = [place.split("/") for place in ends.offsets]
    return TopicFacts(topic, places[0][0], 1 + max(int(number) for _, number in places))
