"""Deadlines of evidence, and ticks: each waits until every earlier event is counted, or is in the inbox.

The shard actor hands over due timer rows of kind `E`, and the shard's low watermarks report events that wait for their turn. Namespaces wait
separately: if a source of one is not read, the others go on. The decisions that follow write; this module does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from tidegate_core.engine.actor_context import ActorContext, Fenced
from tidegate_core.engine.membership_lease import CLOCK_OFF_MS_MAX
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.evidence.expiry import deadline_decision
from tidegate_core.evidence.watermark import wait_for_watermark
from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.instants import Instant
from tidegate_core.ownership.inbox import Inbox
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.shard_cache import ShardCache

Each = TypeVar("Each")

APART_MS_MAX = 30_000
"""Longest interval between the starts of two waits for one namespace."""


class Deadlines:
    """Due deadlines of one shard, and events that are counted after one.

    Args:
        host: Shared parts of the partition actor.
        shard: Number of the shard.
        writer: Writer for the decisions.
        inbox: Inbox of the shard; events in it are counted before a later deadline.
        memory: Cache of the shard.
    """

    def __init__(self, host: ActorContext, shard: int, writer: ShardWriter, inbox: Inbox, memory: ShardCache) -> None:
        self._host = host
        self._shard = shard
        self._writer = writer
        self._inbox = inbox
        self._memory = memory
        self._under_way: Counter[str] = Counter()
        memory.settled.connect(lambda namespace: host.start_safely("settle", namespace, self._settle(namespace)))

    def take(self, rows: Sequence[TimerRow]) -> None:
        """Takes due timer rows of kind `E`.

        If one decision has no room for a whole backlog, the rest follows at once: every earlier event is counted by then.
        """
        now = self._host.now
        past = now - CLOCK_OFF_MS_MAX
        waiting = [row for row in rows if not self._follows_on(row)]
        for through, due in (
            (past, [row for row in waiting if row.at <= past]),
            (now, [row for row in waiting if row.at > past]),
        ):
            for each in _by_namespace(due, lambda row: row.ref):
                self._host.start_safely("expire", each[0].ref, self._expire(each, through))

    def _follows_on(self, row: TimerRow) -> bool:
        through, unread = self._memory.settled.through(_schedule_of(row))
        if row.at > through:
            return False
        self._writer.add(deadline_decision(row, unread, through, self._memory))
        return True

    def _expire(self, rows: Sequence[TimerRow], through: Instant) -> Operation[None]:
        """Decides deadlines once every event that could still prevent them is counted.

        A deadline is compared with the broker's clock. If this node's clock is ahead, an event that is appended now may still be in time. No new
        event is in time for an overdue deadline; after an outage there are many.
        """
        ahead: Duration = through + CLOCK_OFF_MS_MAX - self._host.now
        if ahead > 0:
            yield from self._host.sleep(ahead)
        unread = yield from self._settled(list(map(_schedule_of, rows)), through)
        for row in rows:
            self._writer.add(deadline_decision(row, unread, through, self._memory))

    def _settle(self, namespace: str) -> Operation[None]:
        """Waits for the watermark of schedules whose events wait, unless another wait covers them up to the same instant.

        Waits run concurrently. If a topic is unread, one takes five minutes, and in sequence the next would take five more. The more waits run, the
        later the next one begins.
        """
        while self._memory.settled.is_to_begin(namespace):
            apart = min(CLOCK_OFF_MS_MAX << self._under_way[namespace], APART_MS_MAX)
            if apart > CLOCK_OFF_MS_MAX:
                yield from self._host.sleep(apart - CLOCK_OFF_MS_MAX)
            through = self._host.now
            yield from self._host.sleep(CLOCK_OFF_MS_MAX)
            refs = self._memory.settled.take_unasked(namespace, through)
            if refs:
                self._host.start_safely("settle", refs[0], self._settle_these(namespace, refs, through))

    def _settle_these(self, namespace: str, refs: Sequence[str], through: Instant) -> Operation[None]:
        self._under_way[namespace] += 1
        try:
            yield from self._settled(refs, through)
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001 - the events are counted all the same, in the order in which they are there
            self._host.failed("settle", str(self._shard), error)
            self._count(refs, through, ("what could not be looked at",))
        finally:
            self._under_way[namespace] -= 1

    def _settled(self, refs: Sequence[str], through: Instant) -> Operation[tuple[str, ...]]:
        """Waits until all events of these schedules that were appended by that instant are in the inbox, then has them counted."""
        unread = yield from wait_for_watermark(self._host, self._shard, refs, through)
        yield from self._inbox.check()
        self._count(refs, through, unread)
        return unread

    def _count(self, refs: Sequence[str], through: Instant, unread: tuple[str, ...]) -> None:
        self._memory.settled.remember(refs, through, unread)
        self._inbox.count(self._memory.settled.take_waiting(refs, through))


def _by_namespace(those: Iterable[Each], ref_of: Callable[[Each], str]) -> list[list[Each]]:
    found: dict[str, list[Each]] = {}
    for each in those:
        found.setdefault(ref_of(each).split("/", 1)[0], []).append(each)
    return list(found.values())


def _schedule_of(row: TimerRow) -> str:
    return row.ref.rsplit("#", 1)[0]
