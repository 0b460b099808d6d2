"""Deadlines of evidence, and ticks: each waits until all that could still come before it is counted (SEMANTICS 6.2, 6.5).

Each namespace by itself: a source of one that is not read holds up no other.
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
"""Of several that find out for one namespace the next one begins no later."""


class Deadlines:
    """Those of one shard that are due, and events that are to be counted behind one.

    Args:
        host: Shared parts of the partition actor.
        shard: Its number.
        lane: Decides on them.
        inbox: What is there before a deadline is decided before it.
        memory: Of the shard.
    """

    def __init__(self, host: ActorContext, shard: int, lane: ShardWriter, inbox: Inbox, memory: ShardCache) -> None:
        self._host = host
        self._shard = shard
        self._lane = lane
        self._inbox = inbox
        self._memory = memory
        self._under_way: Counter[str] = Counter()
        memory.settled.connect(lambda namespace: host.start_safely("settle", namespace, self._settle(namespace)))

    def take(self, rows: Sequence[TimerRow]) -> None:
        """Takes timer rows of kind `E` that are due.

        Of a backlog, which one decision has no room for, the rest has its turn at once: what could come before it is counted.
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
        self._lane.add(deadline_decision(row, unread, through, self._memory))
        return True

    def _expire(self, rows: Sequence[TimerRow], through: Instant) -> Operation[None]:
        """A time-out that something in the log could still prevent waits until that was counted.

        It is judged by the broker's clock; when this node's is ahead, what is appended now may still be in time. Of what is
        overdue nothing may: after an outage many are, one behind the other.
        """
        ahead: Duration = through + CLOCK_OFF_MS_MAX - self._host.now
        if ahead > 0:
            yield from self._host.sleep(ahead)
        unread = yield from self._settled(list(map(_schedule_of, rows)), through)
        for row in rows:
            self._lane.add(deadline_decision(row, unread, through, self._memory))

    def _settle(self, namespace: str) -> Operation[None]:
        """Finds out for those whose events wait, and for whom nobody does, or up to an earlier instant only.

        Beside those that are under way, and not behind them: where something is unread they take five minutes, and the next would take as
        long. The more there are, the later the next one begins.
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
        except Exception as error:  # noqa: BLE001 - they are counted in the order in which they are there
            self._host.failed("settle", str(self._shard), error)
            self._count(refs, through, ("what could not be looked at",))
        finally:
            self._under_way[namespace] -= 1

    def _settled(self, refs: Sequence[str], through: Instant) -> Operation[tuple[str, ...]]:
        """Waits until all of these schedules that was appended by then lies in the inbox; what waits there is counted next."""
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
