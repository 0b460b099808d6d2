"""Topics whose records become events, followed as the brokers tell of them: what they have grown by is read as well, and the
one that was made anew instead of the one that is gone.

Two watches use it: the one of the events topic and the one of sources' topics.
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
"""How soon growth of a topic, or one that was made anew, is noticed: one question to the brokers for each topic and holder."""


class TopicFollower:
    """One per watch and life of a partition actor.

    Args:
        host: Shared parts of the partition actor.
        index: Who listens.
        requests: Position of the ownership topic partition: its epoch says whether this is the holder still.
        cursors: Of the actor; those of these topics are added to it and taken out of it.
        reading: From records to events.
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
        """No position is being taken over or moved."""
        return not self._taking_over and all(ingest.cursor.is_idle for ingest in self._ingests.values())

    @property
    def names(self) -> frozenset[str]:
        """Topics of which something is read."""
        return frozenset(name for name, _ in self._ingests)

    @property
    def aside(self) -> frozenset[str]:
        """Those of which something stands aside: it goes on once they are left and followed anew."""
        return frozenset(name for (name, _), ingest in self._ingests.items() if ingest.cursor.stands_aside)

    def is_due(self, topic: str) -> bool:
        """Whether the brokers are to be asked about it: at first sight, each minute, and until they have answered."""
        return self._host.now - self._asked_at.get(topic, -ASK_AGAIN_MS) >= ASK_AGAIN_MS

    def recheck(self, topic: str, *, outlived: str | None) -> bool:
        """What is read of it may not be there any more: it is to be asked about at once; False when it is no topic of these.

        Args:
            topic: Its name.
            outlived: Id of the topic of whose name another one was read: asked until the brokers tell another id.
        """
        if topic not in self._asked_at and topic not in self.names:
            return False
        if outlived is not None:
            self._outlived[topic] = (outlived, self._host.now)
        self._asked_at.pop(topic, None)
        self._doubted.add(topic)
        return True

    def close(self) -> None:
        """No further topic partition is taken over; what is read goes on until the actor ends."""
        self.is_closed = True

    def follow(self, topic: str, asked: object, version: int = 0) -> Operation[None]:
        """Reads those of the topic's partitions that are this holder's, as the brokers have told them.

        Two holders that were told different numbers of them read nothing twice: whose one is depends on the map's number alone.

        Args:
            topic: Its name.
            asked: What the brokers answered.
            version: Of the sources as they were before the brokers were asked.
        """
        self._doubted.discard(topic)
        if not isinstance(asked, EndOffsets):
            return  # No answer: asked again at the next look.
        # And not once all of it is read: a take-over may take a minute, and the topic grow meanwhile.
        told_at = self._host.now
        if not asked.offsets:
            self._asked_at[topic] = told_at  # It is not there.
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
        # Together: what came at one time to several of them is to be counted together as well.
        for cursor in taken if not self.is_closed else ():
            self._read(cursor)
        outlived, _ = self._outlived.get(topic, ("", 0))
        # Else they have told of the old one, or there is doubt again: they are asked at the next look.
        if outlived != facts.id and topic not in self._doubted:
            self._asked_at[topic] = told_at

    def leave(self, topic: str) -> Operation[None]:
        """Ends what is read of a topic; a batch that is under way comes to its end."""
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
        """All brokers know of a topic within a minute: it was another one's id that was told late, and nothing of it is read since."""
        outlived, since = self._outlived.get(facts.name, ("", 0))
        return outlived == facts.id and self._host.now - since >= ASK_AGAIN_MS

    def _mine(self, facts: TopicFacts) -> range:
        holding = self._host.holding
        return range(holding.topic_partition, facts.topic_partitions, holding.topic_partitions)

    def _check_holding(self) -> Operation[None]:
        """A former holder that raised further epochs would only be in the way of the present one."""
        found = yield from self._host.read_for_good(Read((self._requests.key,)))
        assert isinstance(found, Items)
        stored = found.found.get(self._requests.key)
        if stored is None or whole(stored, "epoch") != self._requests.at.epoch:
            raise Fenced(self._requests.key)

    def _take_over(self, facts: TopicFacts, number: int, firsts: Sequence[Mapping[str, int]]) -> Operation[TopicCursor]:
        cursor = TopicCursor(self._host, facts, number, self._host.holding.events_dlq_topic)
        if not (yield from cursor.raise_epoch()):
            raise Fenced(cursor.key)
        # What lies below the first offsets of all sources is nobody's; the position may be that of sources of long ago.
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
    """Returns what the ends of a topic that is there say about it."""
    places = [place.split("/") for place in ends.offsets]
    return TopicFacts(topic, places[0][0], 1 + max(int(number) for _, number in places))
