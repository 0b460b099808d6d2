"""The topics of events that an owner reads: the events topic (`EventsWatch`), and the topics of sources (`SourceWatch`).

A partition actor has one of each. Both ask the brokers about a topic at first sight and each minute, for growth and for a topic that was
recreated; a `TopicFollower` reads the topic partitions that belong to the owner. The two are separate because a user's topic that does not
answer costs seconds, and the events topic must not wait for it. Neither writes anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.ingest.event_decoding import OwnEvents, SourceEvents
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.ingest.topic_follower import TopicFollower
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EndOffsets, ReadEndOffsets
from tidegate_core.rows.source_list import Source, Sources, UnreadableSource
from tidegate_core.shard.events.subscription_index import SubscriptionIndex

CHECK_MS: Final = 5_000
"""Interval between questions about the events topic while the brokers report no topic, or one that is gone; otherwise a minute."""


class EventsWatch:
    """Follows the events topic; one per life of a partition actor.

    Args:
        host: Shared parts of the partition actor.
        index: Subscriptions of the node.
        requests: Cursor of the ownership topic partition; its epoch tells whether this node still owns it.
        cursors: Cursors of the actor; those of the events topic are added and removed here.
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
        """Whether no cursor is being acquired or moved."""
        return self._topics.is_idle

    def look_for_another(self, topic: str, *, outlived: str | None) -> None:
        """Asks the brokers at once if the events topic is meant; `outlived` as in `TopicFollower.recheck`."""
        if self._topics.recheck(topic, outlived=outlived):
            self._host.operations.raise_(self._look)

    def close(self) -> None:
        """Acquires no further topic partition; cursors go on until the actor ends."""
        self._topics.close()

    def serve(self) -> Operation[None]:
        """Asks the brokers whenever it is due, until it is closed."""
        self._host.call_at(self._host.now + CHECK_MS, self._ring, routine=True)
        while not self._topics.is_closed:
            if self._topics.is_due(self._topic):
                asked = yield from self._host.read_for_good(ReadEndOffsets(self._topic, may_be_missing=True))
                assert isinstance(asked, EndOffsets)
                if asked.offsets:  # Without offsets the topic is missing, for example while it is recreated.
                    yield from self._topics.follow(self._topic, asked)
            yield self._look

    def _ring(self) -> None:
        at = self._host.now + CHECK_MS + self._host.jitter("events topic", CHECK_MS // 10)
        self._host.call_at(at, self._ring, routine=True)
        self._host.operations.raise_(self._look)


class SourceWatch:
    """Follows the topics of all open sources; one per life of a partition actor.

    Args:
        host: Shared parts of the partition actor.
        index: Subscriptions of the node.
        requests: Cursor of the ownership topic partition; its epoch tells whether this node still owns it.
        cursors: Cursors of the actor; those of source topics are added and removed here.
        read_sources: Has the sources read, and `follow` called with them, at once.
    """

    def __init__(
        self,
        host: ActorContext,
        index: SubscriptionIndex,
        requests: TopicCursor,
        cursors: dict[tuple[str, int], TopicCursor],
        read_sources: Callable[[], None],
    ) -> None:
        self._host = host
        self._topics = TopicFollower(host, index, requests, cursors, SourceEvents())
        self._read_sources = read_sources
        self._told: set[tuple[str, str, int]] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no cursor is being acquired or moved."""
        return self._topics.is_idle

    def look_for_another(self, topic: str, *, outlived: str | None) -> None:
        """Asks the brokers at once if a source's topic is meant; `outlived` as in `TopicFollower.recheck`."""
        if self._topics.recheck(topic, outlived=outlived):
            self._read_sources()

    def close(self) -> None:
        """Acquires no further topic partition; cursors go on until the actor ends."""
        self._topics.close()

    def follow(self, present: Sources, _: int) -> Operation[None]:
        """Reads the topics of the present sources and leaves all others. Called every few seconds and at each change."""
        opened = [each for each in present.entries if each.is_open]
        unreadable = self._unreadable(opened)
        topics = sorted({each.topic for each in opened} - unreadable)
        for topic in sorted((self._topics.names - set(topics)) | self._topics.aside):
            yield from self._topics.leave(topic)
        due = [topic for topic in topics if self._topics.is_due(topic)]
        if due:
            # All at once: a topic that is missing or does not answer costs seconds.
            answers = yield tuple(ReadEndOffsets(topic, may_be_missing=True) for topic in due)
            for topic, asked in zip(due, answers, strict=True):
                yield from self._topics.follow(topic, asked, present.version)

    def _unreadable(self, opened: Sequence[Source]) -> set[str]:
        """Returns the topics of sources that only a newer release can read. Their records wait for it, or for a readable definition."""
        waiting: set[str] = set()
        told, self._told = self._told, set()
        for each in opened:
            try:
                _ = each.spec
            except UnreadableSource as error:
                waiting.add(each.topic)
                which = (each.namespace, each.name, each.version)
                self._told.add(which)
                if which not in told:
                    self._host.failed("source", keys.schedule_ref(each.namespace, each.name), error)
        return waiting
