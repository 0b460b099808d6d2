"""Stored rows that an owner does not send: fenced versions, and creates that are not durable or not read.

The window asks these rules when it loads a page, and each delivery asks the fences again. Only `read_fences` and
`FormerOwnerRows.without` read the store; nothing here writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.wire.due_queue import Place, QueuedMessage, Stage
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import MessageFence, MessageTimer
from tidegate_core.shard.map_transition import Positions, former_positions, read_positions
from tidegate_core.writes.fencing import cursor_of

FENCES_MAX = 100_000
"""Fences in memory (10 MB), the latest ones: far more than the owner raises while it loads one page."""


class _Raising(NamedTuple):
    """The fence that is being raised, and the versions that it adds: from `before`, and below `live_from`."""

    id: str
    before: str
    live_from: str


class MessageFences:
    """Fences that this owner has raised. A page that was requested earlier does not know them; older fences are in the store."""

    def __init__(self) -> None:
        self._known: dict[str, MessageFence] = {}
        self._raising = _Raising("", "", "")

    def begin(self, fence: MessageFence, before: MessageFence | None) -> None:
        """Notes that the fence is being raised. It counts once the store has answered. The owner raises one fence at a time."""
        # A repeated raise adds no version: the fence was stored, so the versions that it covers were never loaded.
        self._raising = _Raising(fence.id, "" if before is None else before.live_from, fence.live_from)

    def end(self) -> None:
        """Notes that the raise has succeeded or failed."""
        self._raising = _Raising("", "", "")

    def remember(self, fence: MessageFence) -> None:
        """Merges the fence with what memory knows of it."""
        before = self._known.pop(fence.id, fence)
        higher = fence if fence.live_from >= before.live_from else before
        refused = fence.refused | before.refused
        self._known[fence.id] = MessageFence(id=fence.id, live_from=higher.live_from, late=higher.late, refused=refused)
        if len(self._known) > FENCES_MAX:
            del self._known[next(iter(self._known))]

    def keep_out(self, found: MessageFence | None, version: str) -> bool:
        """Returns whether the stored fence keeps a version from being loaded.

        A fence that is being raised keeps out none of the versions that it adds. The request that raises it asks afterwards
        what became of each version; one that is passed and was never loaded would look as if it had been sent.
        """
        if found is None:
            return False
        raising = self._raising
        if found.id == raising.id and raising.before <= version < raising.live_from:
            return version in found.refused
        return found.covers(version)

    def cover(self, message_id: str, version: str) -> bool:
        """Returns whether this version was cancelled, replaced or refused."""
        fence = self._known.get(message_id)
        return fence is not None and fence.covers(version)


def read_fences(host: ActorContext, shard: int, message_ids: Collection[str]) -> Operation[dict[str, MessageFence]]:
    """Reads the fences of messages, consistently; most messages have none."""
    if not message_ids:
        return {}
    wanted = tuple(sorted(keys.message_fence(shard, each) for each in message_ids))
    answer = yield from host.read_for_good(Read(wanted))
    assert isinstance(answer, Items)
    return {fence.id: fence for fence in (from_item(MessageFence, item) for item in answer.found.values())}


class UncommittedCreates:
    """Messages whose rows are written and whose create is not durable: they wait.

    A message that is sent earlier could be sent twice: a successor replays the creates from the durable position on.

    Args:
        host: Shared parts of the partition actor.
        position: Durable position of the owner's requests topic partition.
    """

    def __init__(self, host: ActorContext, position: int) -> None:
        self._host = host
        self._position = position
        self._inboxed: set[str] = set()
        self._rows: deque[QueuedMessage] = deque()

    def expect(self, origin: str) -> None:
        """Notes a create in the inbox: its rows, also those of a former owner, wait until the inbox row is gone."""
        self._inboxed.add(origin)

    def expects(self, origin: str) -> bool:
        """Returns whether the create is in the inbox."""
        return origin in self._inboxed

    def is_behind(self, origin: str) -> bool:
        """Returns whether the create is in the owner's topic partition, at the durable position or after it."""
        return isinstance(self._reason(origin), int)

    def take(self, row: QueuedMessage) -> None:
        """Sets a written row to READY, or to WRITTEN while its create is not durable."""
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
        """Returns the waiting rows before the place."""
        return (row for row in self._rows if row.stage is Stage.WRITTEN and row.place < place)

    def _reason(self, origin: str) -> int | str | None:
        """Returns what must be durable first (see `QueuedMessage.waits_for`)."""
        if origin in self._inboxed:
            # This comes first: a former map may have handed a create of this very topic partition over to the inbox.
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


class FormerOwnerRows:
    """Rows of creates that no owner has read under the present partition map.

    Under a former map, the shard belonged to another topic partition. The owner of then wrote rows directly, also for records
    after its last durable position. Such rows do not count: the present reader of those records hands them over through the
    inbox. Until then the rows are left out. No checkpoint waits for them, because a create from the inbox gets a new slot
    where the old slot is passed.

    If the topic was recreated, nothing reads these records any more, and their rows never count. A sender without an answer
    repeats its request; the repeat then counts as the first record of the request.

    Args:
        host: Shared parts of the partition actor.
        positions: Former positions at which each topic partition took over the present map. Each create below them is in the
            inbox or complete.
    """

    def __init__(self, host: ActorContext, positions: Positions) -> None:
        self._host = host
        self._positions = dict(positions)
        self._read_inbox: Callable[[], Operation[None]] | None = None

    def connect(self, read_inbox: Callable[[], Operation[None]]) -> None:
        """Sets the operation that reads all messages from the shard's inbox."""
        self._read_inbox = read_inbox

    def without(self, timers: Sequence[MessageTimer]) -> Operation[Sequence[MessageTimer]]:
        """Returns the rows that count."""
        if not self._positions:
            return timers
        timers = [timer for timer in timers if not self.is_gone(timer.origin)]
        if not any(self._is_unread(timer) for timer in timers):
            return timers
        wanted = former_positions(self._host)
        items = yield from read_positions(self._host, tuple(wanted))
        # The inbox is read after the positions: each create that they have passed is in it, or is complete.
        assert self._read_inbox is not None
        yield from self._read_inbox()
        self._positions |= {wanted[key].place: cursor_of(key, item).next for key, item in items.items()}
        return [timer for timer in timers if not self._is_unread(timer)]

    def is_gone(self, origin: str) -> bool:
        """Returns whether the create was unread when its topic was recreated. Its rows then count as absent, also for a repeat."""
        position = Position.parse(origin)
        return position.topic_id != self._host.holding.requests.id and self._is_behind(position)

    def was_recreated(self, position: Position) -> bool:
        """Returns whether the topic of this create was recreated later: another record of its request may be gone with it."""
        if position.topic_id == self._host.holding.requests.id:
            return False  # Each create passes here.
        return any(topic_id == position.topic_id for topic_id, _ in self._positions)

    def _is_unread(self, timer: MessageTimer) -> bool:
        return self._is_behind(Position.parse(timer.origin))

    def _is_behind(self, position: Position) -> bool:
        passed = self._positions.get((position.topic_id, position.topic_partition))
        return passed is not None and position.offset >= passed
