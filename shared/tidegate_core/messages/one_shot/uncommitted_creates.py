"""Messages whose rows are written and whose create is not durable yet: none of them is sent before (DESIGN 5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.wire.due_queue import Place, QueuedMessage, Stage


class Waiting:
    """Sent before, a message could be sent twice: a successor replays creates that lie at or behind the position.

    Args:
        host: Shared parts of the partition actor.
        position: Durable position of the own requests topic partition.
    """

    def __init__(self, host: ActorContext, position: int) -> None:
        self._host = host
        self._position = position
        self._inboxed: set[str] = set()
        self._rows: deque[QueuedMessage] = deque()

    def expect(self, origin: str) -> None:
        """A create lies in the inbox: what it makes, or made already, waits until that row is gone."""
        self._inboxed.add(origin)

    def expects(self, origin: str) -> bool:
        """Whether the create lies in the inbox."""
        return origin in self._inboxed

    def is_behind(self, origin: str) -> bool:
        """Whether the create lies in the own topic partition, at or behind its position."""
        return isinstance(self._reason(origin), int)

    def take(self, row: QueuedMessage) -> None:
        """Makes a row that is written READY, or has it wait."""
        row.waits_for = self._reason(row.origin)
        row.stage = Stage.READY if row.waits_for is None else Stage.WRITTEN
        if row.stage is Stage.WRITTEN:
            self._rows.append(row)

    def position_is(self, next_offset: int) -> None:
        self._position = next_offset
        self._release(lambda row: isinstance(row.waits_for, int) and row.waits_for < next_offset)

    def inbox_row_gone(self, origin: str) -> None:
        self._inboxed.discard(origin)
        self._release(lambda row: row.waits_for == origin)

    def before(self, place: Place) -> Iterator[QueuedMessage]:
        """Returns the rows that wait and lie before the place."""
        return (row for row in self._rows if row.stage is Stage.WRITTEN and row.place < place)

    def _reason(self, origin: str) -> int | str | None:
        """Returns what must be durable first (see `QueuedMessage.waits_for`)."""
        if origin in self._inboxed:
            # Also of the own topic partition: under another map it was handed over from there to the owner of then.
            return origin
        position = Position.parse(origin)
        requests, own = self._host.holding.requests, self._host.holding.topic_partition
        if (position.topic_id, position.topic_partition) == (requests.id, own):
            return position.offset if position.offset >= self._position else None
        return None

    def _release(self, may_fire: Callable[[QueuedMessage], bool]) -> None:
        still: deque[QueuedMessage] = deque()
        for row in self._rows:
            if row.stage is Stage.WRITTEN and may_fire(row):
                row.waits_for = None
                row.stage = Stage.READY
            elif row.stage is Stage.WRITTEN:
                still.append(row)
        self._rows = still
