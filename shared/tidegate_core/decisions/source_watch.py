"""Which topics of the users' own a holder reads, because sources name them (decision 19).

The list of sources is read whenever somebody pokes, and every few seconds: a lost poke costs latency only, because a source's
first offsets lie in the store. Topics are asked for at first sight and each minute, for what has grown or was made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate_core.decisions.event_index import EventIndex
from tidegate_core.decisions.event_ingest import EventIngest
from tidegate_core.decisions.event_reading import SourceEvents
from tidegate_core.decisions.host import Fenced, Host
from tidegate_core.decisions.inputs import TopicFacts
from tidegate_core.decisions.log_ends import present_sources
from tidegate_core.decisions.operations import Operation, Signal
from tidegate_core.decisions.topic_cursor import TopicCursor
from tidegate_core.effects import EndOffsets, Items, Read, ReadEndOffsets, StopReading
from tidegate_core.transactions.ownership import whole

LOOK_MS = 5_000
"""A source whose poke was lost is read so much later."""
ASK_AGAIN_MS = 60_000
"""How soon growth of a topic, or one that was made anew, is noticed: one question to the brokers for each topic and holder."""


class SourceWatch:
    """One per life of a partition actor.

    Args:
        host: Shared parts of the partition actor.
        index: Who listens.
        requests: Position of the ownership topic partition: its epoch says whether this is the holder still.
        cursors: Of the actor; those of source topics are added to it and taken out of it.
    """

    def __init__(
        self, host: Host, index: EventIndex, requests: TopicCursor, cursors: dict[tuple[str, int], TopicCursor]
    ) -> None:
        self._host = host
        self._index = index
        self._requests = requests
        self._cursors = cursors
        self._reading = SourceEvents()
        self._poked = Signal("sources")
        self._ingests: dict[tuple[str, int], EventIngest] = {}
        self._asked_at: dict[str, int] = {}
        self._outlived: dict[str, str] = {}
        self._closed = False
        self._taking_over = False

    @property
    def is_idle(self) -> bool:
        """No position is being taken over or moved."""
        return not self._taking_over and all(ingest.cursor.is_idle for ingest in self._ingests.values())

    def look(self) -> None:
        """There may be something new."""
        self._host.operations.raise_(self._poked)

    def look_for_another(self, topic: str, *, outlived: str | None) -> None:
        """What is read of it may not be there any more: asks about it at once, and not in its turn.

        Args:
            topic: Its name.
            outlived: Id of the topic that was made anew for certain: asked until the brokers tell another one.
        """
        if topic in self._asked_at:
            if outlived is not None:
                self._outlived[topic] = outlived
            del self._asked_at[topic]
            self.look()

    def close(self) -> None:
        """No further topic partition is taken over; what is read goes on until the actor ends."""
        self._closed = True

    def serve(self) -> Operation[None]:
        """Looks for good."""
        self._host.call_at(self._host.now + LOOK_MS, self._ring, routine=True)
        while not self._closed:
            yield from self._follow_all()
            yield self._poked

    def _ring(self) -> None:
        at = self._host.now + LOOK_MS + self._host.jitter("sources", LOOK_MS // 10)
        self._host.call_at(at, self._ring, routine=True)
        self.look()

    def _follow_all(self) -> Operation[None]:
        present = yield from present_sources(self._host)
        topics = sorted({each.spec.topic for each in present.entries if each.is_open})
        for topic in sorted({name for name, _ in self._ingests} - set(topics)):
            yield from self._leave(topic)
        due = [topic for topic in topics if self._host.now - self._asked_at.get(topic, -ASK_AGAIN_MS) >= ASK_AGAIN_MS]
        if due:
            # Side by side: one that is not there, or does not answer, costs seconds.
            answers = yield tuple(ReadEndOffsets(topic, may_be_missing=True) for topic in due)
            for topic, asked in zip(due, answers, strict=True):
                yield from self._follow(topic, asked, present.version)

    # -- topics ---------------------------------------------------------------------------------------------------------

    def _follow(self, topic: str, asked: object, version: int) -> Operation[None]:
        """Reads those of the topic's partitions that are this holder's, as the brokers told them after this version of the sources."""
        if not isinstance(asked, EndOffsets):
            return  # No answer: asked again at the next look.
        if not asked.offsets:
            self._asked_at[topic] = self._host.now  # It is not there.
            return
        facts = _facts_of(topic, asked)
        if any(name == topic and ingest.cursor.topic.id != facts.id for (name, _), ingest in self._ingests.items()):
            yield from self._leave(topic)
        holding = self._host.holding
        mine = range(holding.topic_partition, facts.topic_partitions, holding.topic_partitions)
        new = [number for number in mine if (topic, number) not in self._ingests]
        if new:
            yield from self._check_holding()
        sources = yield from self._reading.sources_of(self._host, topic)
        for number in new:
            if self._closed or not sources:
                return
            self._taking_over = True
            self._reading.begins(facts.id, number, version)
            yield from self._begin(facts, number, [first for _, first in sources])
            self._taking_over = False
        if self._outlived.get(topic) != facts.id:  # Else they tell of the old one: asked again at the next look.
            self._outlived.pop(topic, None)
            self._asked_at[topic] = self._host.now

    def _check_holding(self) -> Operation[None]:
        """A former holder that raised further epochs would only be in the way of the present one."""
        found = yield from self._host.read_for_good(Read((self._requests.key,)))
        assert isinstance(found, Items)
        stored = found.found.get(self._requests.key)
        if stored is None or whole(stored, "epoch") != self._requests.at.epoch:
            raise Fenced(self._requests.key)

    def _begin(self, facts: TopicFacts, number: int, vectors: Sequence[Mapping[str, int]]) -> Operation[None]:
        cursor = TopicCursor(self._host, facts, number, self._host.holding.events_dlq_topic)
        if not (yield from cursor.raise_epoch()):
            raise Fenced(cursor.key)
        # What lies below the first offsets of all sources is nobody's; the position may be that of sources of long ago.
        first = min(vector.get(f"{facts.id}/{number}", 0) for vector in vectors)
        if cursor.at.next < first:
            yield from cursor.move(first, cursor.at.last_append_time)
        if self._closed:
            return
        ingest = EventIngest(cursor, self._index, self._reading)
        self._ingests[facts.name, number] = ingest
        self._cursors[facts.name, number] = cursor
        self._host.operations.start(ingest.serve())
        cursor.start_reading()
        self._host.note("source_read", topic=facts.name, topic_partition=number, position=cursor.at.next)

    def _leave(self, topic: str) -> Operation[None]:
        """Ends what is read of a topic; a batch that is under way comes to its end."""
        self._asked_at.pop(topic, None)
        for name, number in sorted(where for where in self._ingests if where[0] == topic):
            ingest = self._ingests.pop((name, number))
            del self._cursors[name, number]
            self._host.tell(StopReading(name, number))
            yield from ingest.cursor.end()
            self._host.note("source_left", topic=name, topic_partition=number)


def _facts_of(topic: str, ends: EndOffsets) -> TopicFacts:
    places = [place.split("/") for place in ends.offsets]
    return TopicFacts(topic, places[0][0], 1 + max(int(number) for _, number in places))
