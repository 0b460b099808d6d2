"""Which topic partitions of the events topic a holder reads: those that the brokers tell of, asked at each take-over and each
minute after it.

Beside the watch of sources and not a part of it: a topic of the users' own that does not answer costs seconds, and the events topic
waits for none of them.
"""

from __future__ import annotations

from typing import Final

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.ingest.event_decoding import OwnEvents
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.ingest.topic_follower import TopicFollower
from tidegate_core.rows.effects import EndOffsets, ReadEndOffsets
from tidegate_core.shard.events.subscription_index import SubscriptionIndex

CHECK_MS: Final = 5_000
"""While brokers tell of a topic that is not there any more, or of none, they are asked so often; else only each minute."""


class EventsWatch:
    """One per life of a partition actor.

    Args:
        host: Shared parts of the partition actor.
        index: Who listens.
        requests: Position of the ownership topic partition: its epoch says whether this is the holder still.
        cursors: Of the actor; those of the events topic are added to it and taken out of it.
    """

    def __init__(
        self,
        host: ActorContext,
        index: SubscriptionIndex,
        requests: TopicCursor,
        cursors: dict[tuple[str, int], TopicCursor],
    ) -> None:
        self._host = host
        self._topic = host.holding.events_topic
        self._topics = TopicFollower(host, index, requests, cursors, OwnEvents())
        self._look = Signal("events topic")

    @property
    def is_idle(self) -> bool:
        """No position is being taken over or moved."""
        return self._topics.is_idle

    def look_for_another(self, topic: str, *, outlived: str | None) -> None:
        """Asks at once, and not in its turn, if the events topic is meant; `outlived` as of `TopicFollower.recheck`."""
        if self._topics.recheck(topic, outlived=outlived):
            self._host.operations.raise_(self._look)

    def close(self) -> None:
        """No further topic partition is taken over; what is read goes on until the actor ends."""
        self._topics.close()

    def serve(self) -> Operation[None]:
        """Looks for good."""
        self._host.call_at(self._host.now + CHECK_MS, self._ring, routine=True)
        while not self._topics.is_closed:
            if self._topics.is_due(self._topic):
                asked = yield from self._host.read_for_good(ReadEndOffsets(self._topic, may_be_missing=True))
                assert isinstance(asked, EndOffsets)
                if asked.offsets:  # Else it is not there, as between its end and its being made anew.
                    yield from self._topics.follow(self._topic, asked)
            yield self._look

    def _ring(self) -> None:
        at = self._host.now + CHECK_MS + self._host.jitter("events topic", CHECK_MS // 10)
        self._host.call_at(at, self._ring, routine=True)
        self._host.operations.raise_(self._look)
