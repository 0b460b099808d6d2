"""BUDGET"""

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
"""Payloads that wait for their time; what is due has the other half of the budget for certain, so it never waits for these."""


PAYLOAD_BYTES_MAX = 64_000_000
"""Payloads in memory per shard, on their way from the store included; above it what is due waits for what is being sent."""


class Payloads:
    """The budget of payloads in memory, and their loading.

    Attributes:
        bytes_held: Sum of what the rows hold.
    """

    def __init__(self, host: ActorContext, shard: int) -> None:
        self._host = host
        self._shard = shard
        self.bytes_held = 0

    @property
    def room(self) -> int:
        """Bytes for what is due now."""
        return PAYLOAD_BYTES_MAX - self.bytes_held

    @property
    def room_ahead(self) -> int:
        """Bytes for what is due later."""
        return PAYLOADS_AHEAD_BYTES_MAX - self.bytes_held

    def keep(self, row: QueuedMessage, message: Message) -> None:
        """Keeps the payload of a row that was just made, when it is near and there is room; else it is read again."""
        if row.slot <= self._host.now + WINDOW_MS and row.size <= self.room_ahead:
            self.give(row, message)

    def hold(self, row: QueuedMessage) -> None:
        """Sets room aside for a payload that will be loaded."""
        if row.held == 0:
            self._hold(row, row.size)

    def drop(self, row: QueuedMessage) -> None:
        """Gives back what the row holds."""
        self.bytes_held -= row.held
        row.held = 0
        row.message = None

    def drop_if_scarce(self, row: QueuedMessage) -> None:
        """For rows that wait again: they must not hold the half that belongs to what is being sent."""
        if self.room_ahead < 0:
            self.drop(row)

    def load(self, rows: Sequence[QueuedMessage]) -> Operation[list[QueuedMessage]]:
        """Reads the message rows of timer rows; returns the rows that have none (their create never became durable)."""
        waiting_for: dict[Key, list[QueuedMessage]] = {}
        for row in rows:
            # One may have ended while fires that were named with it waited for their definitions: it will never give anything back.
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
                    continue  # Taken back meanwhile: it holds nothing any more.
                if item is None:
                    missing.append(row)
                elif row.message is None:
                    self.give(row, from_item(Message, item))
        return missing

    def give(self, row: QueuedMessage, message: Message) -> None:
        """The row has its payload."""
        row.message = message
        self._hold(row, len(message.payload))

    def _hold(self, row: QueuedMessage, size: int) -> None:
        self.bytes_held += size - row.held
        row.held = size


K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """What is not kept has to be made anew by whoever asks.

    Args:
        size_max: Of all values together, in the unit in which `keep` is told their sizes.
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
        """Takes a value in, and drops those that were not asked for the longest; one that alone is too large is not kept."""
        self._drop(key)
        self._values[key] = (value, size)
        self.size += size
        while self.size > self._size_max:
            self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        dropped = self._values.pop(key, None)
        self.size -= 0 if dropped is None else dropped[1]
