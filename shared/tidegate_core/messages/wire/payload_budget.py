"""Bounds the memory of payloads per shard, and caches values by size.

Delivery and the scheduler load payloads here, within a budget; the rows in memory hold what they use of it. `LruCache` keeps
templates and triggers of recurring messages. Nothing here writes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, TypeVar

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.due_queue import QueuedMessage
from tidegate_core.messages.wire.timer_window import WINDOW_MS
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message
from tidegate_core.rows.store_operations import Key

PAYLOADS_AHEAD_MS = 5_000


PAYLOADS_AHEAD_ROWS_MAX = 500


PAYLOADS_AHEAD_BYTES_MAX = 32_000_000
"""Limit of payloads that are loaded ahead. Due messages have the other half of the budget, so they never wait for these."""


PAYLOAD_BYTES_MAX = 64_000_000
"""Limit of payloads in memory or being read, per shard. Above it, due messages wait until others are delivered."""


class Payloads:
    """The budget of payloads in memory, and their loading.

    Attributes:
        bytes_held: Bytes that all rows use.
    """

    def __init__(self, host: ActorContext, shard: int) -> None:
        self._host = host
        self._shard = shard
        self.bytes_held = 0

    @property
    def room(self) -> int:
        """Bytes left for due messages."""
        return PAYLOAD_BYTES_MAX - self.bytes_held

    @property
    def room_ahead(self) -> int:
        """Bytes left for messages that are loaded ahead."""
        return PAYLOADS_AHEAD_BYTES_MAX - self.bytes_held

    def keep(self, row: QueuedMessage, message: Message) -> None:
        """Keeps the payload of a new row if the row is near and there is room; otherwise it is read again later."""
        if row.slot <= self._host.now + WINDOW_MS and row.size <= self.room_ahead:
            self.give(row, message)

    def hold(self, row: QueuedMessage) -> None:
        """Reserves bytes for a payload that will be loaded."""
        if row.held == 0:
            self._hold(row, row.size)

    def drop(self, row: QueuedMessage) -> None:
        """Frees the row's bytes."""
        self.bytes_held -= row.held
        row.held = 0
        row.message = None

    def drop_if_scarce(self, row: QueuedMessage) -> None:
        """Frees the payload of a row that waits again if the half for due messages is in use."""
        if self.room_ahead < 0:
            self.drop(row)

    def load(self, rows: Sequence[QueuedMessage]) -> Operation[list[QueuedMessage]]:
        """Reads the payloads of rows; returns the rows without a message row: their create never became durable."""
        waiting_for: dict[Key, list[QueuedMessage]] = {}
        for row in rows:
            # A row may have ended while the fires of the same call waited for their definitions: it must not reserve bytes.
            if row.message is None and not row.stage.is_closed:
                waiting_for.setdefault(keys.message(self._shard, row.id, row.version), []).append(row)
                self.hold(row)
        if not waiting_for:
            return []
        answer = yield from self._host.read_for_good(Read(tuple(waiting_for)))
        assert isinstance(answer, Items)
        missing: list[QueuedMessage] = []
        for key, waiting in waiting_for.items():
            item = answer.found.get(key)
            for row in waiting:
                if row.stage.is_closed:
                    continue  # It ended during the read, and its bytes are free.
                if item is None:
                    missing.append(row)
                elif row.message is None:
                    self.give(row, from_item(Message, item))
        return missing

    def give(self, row: QueuedMessage, message: Message) -> None:
        """Sets the row's payload."""
        row.message = message
        self._hold(row, len(message.payload))

    def _hold(self, row: QueuedMessage, size: int) -> None:
        self.bytes_held += size - row.held
        row.held = size


K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """The values that were read last, up to a total size. The caller computes a missing value again. For one thread.

    Args:
        size_max: Largest total size, in the unit of `keep`.
    """

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V, size: int) -> None:
        """Adds a value, and drops the values that were not read for longest; a value above `size_max` is not kept."""
        self._drop(key)
        self._values[key] = (value, size)
        self.size += size
        while self.size > self._size_max:
            self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        dropped = self._values.pop(key, None)
        self.size -= 0 if dropped is None else dropped[1]
