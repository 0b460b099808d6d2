"""Which topics of the users' own a holder reads, because sources name them (decision 19).

The list of sources is read whenever somebody pokes, and every few seconds: a lost poke costs latency only, because a source's
first offsets lie in the store. Topics are asked for at first sight and each minute, for what has grown or was made anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.ingest.event_decoding import SourceEvents
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.ingest.topic_follower import TopicFollower
from tidegate_core.rows import keys
from tidegate_core.rows.effects import ReadEndOffsets
from tidegate_core.rows.source_list import Source, UnreadableSource
from tidegate_core.shard.events.end_offsets import present_sources
from tidegate_core.shard.events.subscription_index import SubscriptionIndex

CHECK_MS = 5_000
"""A source whose poke was lost is read so much later."""


class SourceWatch:
    """One per life of a partition actor.

    Args:
        host: Shared parts of the partition actor.
        index: Who listens.
        requests: Position of the ownership topic partition: its epoch says whether this is the holder still.
        cursors: Of the actor; those of source topics are added to it and taken out of it.
    """

    def __init__(
        self,
        host: ActorContext,
        index: SubscriptionIndex,
        requests: TopicCursor,
        cursors: dict[tuple[str, int], TopicCursor],
    ) -> None:
        self._host = host
        self._topics = TopicFollower(host, index, requests, cursors, SourceEvents())
        self._poked = Signal("sources")
        self._told: set[tuple[str, str, int]] = set()

    @property
    def is_idle(self) -> bool:
        """No position is being taken over or moved."""
        return self._topics.is_idle

    def check(self) -> None:
        """There may be something new."""
        self._host.operations.raise_(self._poked)

    def look_for_another(self, topic: str, *, outlived: str | None) -> None:
        """Asks about a topic at once, and not in its turn, if it is one of these; `outlived` as of `TopicFollower.recheck`."""
        if self._topics.recheck(topic, outlived=outlived):
            self.check()

    def close(self) -> None:
        """No further topic partition is taken over; what is read goes on until the actor ends."""
        self._topics.close()

    def serve(self) -> Operation[None]:
        """Looks for good."""
        self._host.call_at(self._host.now + CHECK_MS, self._ring, routine=True)
        while not self._topics.is_closed:
            yield from self._follow_all()
            yield self._poked

    def _ring(self) -> None:
        at = self._host.now + CHECK_MS + self._host.jitter("sources", CHECK_MS // 10)
        self._host.call_at(at, self._ring, routine=True)
        self.check()

    def _follow_all(self) -> Operation[None]:
        present = yield from present_sources(self._host)
        opened = [each for each in present.entries if each.is_open]
        unreadable = self._unreadable(opened)
        topics = sorted({each.topic for each in opened} - unreadable)
        for topic in sorted((self._topics.names - set(topics)) | self._topics.aside):
            yield from self._topics.leave(topic)
        due = [topic for topic in topics if self._topics.is_due(topic)]
        if due:
            # Side by side: one that is not there, or does not answer, costs seconds.
            answers = yield tuple(ReadEndOffsets(topic, may_be_missing=True) for topic in due)
            for topic, asked in zip(due, answers, strict=True):
                yield from self._topics.follow(topic, asked, present.version)

    def _unreadable(self, opened: Sequence[Source]) -> set[str]:
        """Returns topics of sources that a newer release has accepted: their records wait for it, or for a definition that is readable here."""
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
