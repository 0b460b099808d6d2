"""Rows of messages whose create has not been read under the present map (decision 27).

Under a former map a shard belonged to another topic partition, whose holder wrote rows for its creates directly. Those of records
behind its last position say nothing: whoever reads these records now hands them over through the inbox, and only then
they count. Until then their rows are left out, as if they were not there; no checkpoint waits for them, because what comes through
the inbox gets a slot of its own where the old one was passed.

Where the topic was made anew nobody will read these records any more: their rows never count, and a repeat of such a request, which its
sender makes because nobody has answered, is a request like a first one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.message import MessageTimer
from tidegate_core.shard.map_transition import Positions, former_positions, read_positions
from tidegate_core.writes.fencing import cursor_of


class FormerOwnerRows:
    """One per delivery plane.

    Args:
        host: Shared parts of the partition actor.
        positions: Where the positions of the map before stood when they carried this one: each create below them is in the inbox, or
            was dealt with.
    """

    def __init__(self, host: ActorContext, positions: Positions) -> None:
        self._host = host
        self._positions = dict(positions)
        self._look_at_inbox: Callable[[], Operation[None]] | None = None

    def connect(self, look_at_inbox: Callable[[], Operation[None]]) -> None:
        """How to have all messages at hand that lie in the shard's inbox now."""
        self._look_at_inbox = look_at_inbox

    def without(self, timers: Sequence[MessageTimer]) -> Operation[Sequence[MessageTimer]]:
        """Returns those of the rows that count."""
        if not self._positions:
            return timers
        timers = [timer for timer in timers if not self.is_gone(timer.origin)]
        if not any(self._is_unread(timer) for timer in timers):
            return timers
        wanted = former_positions(self._host)
        items = yield from read_positions(self._host, tuple(wanted))
        # The inbox after the positions: what they have passed is there, unless it was dealt with.
        assert self._look_at_inbox is not None
        yield from self._look_at_inbox()
        self._positions |= {wanted[key].place: cursor_of(key, item).next for key, item in items.items()}
        return [timer for timer in timers if not self._is_unread(timer)]

    def is_gone(self, origin: str) -> bool:
        """Whether the create was not read before its topic was made anew: nobody will ever read it, and what is written of it is as if
        it were not there, also for a repeat of its request.
        """
        position = Position.parse(origin)
        return position.topic_id != self._host.holding.requests.id and self._is_behind(position)

    def was_made_anew(self, position: Position) -> bool:
        """Whether the topic of this create, which somebody has read in time, was made anew: another record of its request may be gone."""
        if position.topic_id == self._host.holding.requests.id:
            return False  # Each create passes here.
        return any(topic_id == position.topic_id for topic_id, _ in self._positions)

    def _is_unread(self, timer: MessageTimer) -> bool:
        return self._is_behind(Position.parse(timer.origin))

    def _is_behind(self, position: Position) -> bool:
        passed = self._positions.get((position.topic_id, position.topic_partition))
        return passed is not None and position.offset >= passed
