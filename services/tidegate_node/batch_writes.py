"""Sends unconditional batches: in chunks side by side, smaller and fewer at once while the store answers too late.

Used by `store_effects.py`. Says of a batch only whether all of it is acknowledged; what is not may be there all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate_core.effects import Invalid
from tidegate_core.store.values import Delete, Put
from tidegate_node.batch_room import BatchRoom
from tidegate_ports.store import StoreRequestInvalid, StoreUnavailable

WRITES_PER_CALL_MAX: Final = 25
"""DynamoDB's limit: a chunk is one call, so that what one of them waits for holds up no other."""
CHUNKS_AT_ONCE_MAX: Final = 8
"""Calls of one batch under way together: a large one must not take all places from the other shards."""
WRITE_ATTEMPTS_MAX: Final = 8
"""Sends of one chunk during which its whole batch gets nothing done: about 6 s with the pauses, so that throttling is not given up
at once. Where some of it gets on nobody gives up: the batch's author would send all of it again."""

Actions: TypeAlias = Sequence[Put | Delete]
Send: TypeAlias = Callable[[Actions], Awaitable[Actions]]
"""Makes one call and returns what is left of it. Raises StoreUnavailable, StoreRequestInvalid."""
Pause: TypeAlias = Callable[[int], Awaitable[None]]
"""Waits behind a call that left something; told how many in a row got nothing done."""


class _MayNotSend(Exception):
    """Whoever asked for it must not write now."""


@dataclass(slots=True)
class _Batch:
    """One batch on its way.

    Attributes:
        chunks: Room of its chunks.
        calls: Room of the calls of all batches.
        may_send: Whether a call may be made now.
        rows_max: Of one call: what took too long as a whole comes about in halves, each within the time.
        written: Rows that are acknowledged so far.
    """

    chunks: asyncio.Semaphore
    calls: BatchRoom
    may_send: Callable[[], bool]
    rows_max: int = WRITES_PER_CALL_MAX
    written: int = 0


class BatchWrites:
    """One per process.

    Args:
        send: Makes a call.
        room: Of the calls of all batches.
        pause: Between two calls of a chunk.
    """

    def __init__(self, send: Send, room: BatchRoom, pause: Pause) -> None:
        self._send = send
        self._room = room
        self._pause = pause

    async def write(self, actions: Actions, may_send: Callable[[], bool] = lambda: True) -> bool | Invalid:
        """Returns whether all is acknowledged; a chunk that can never work spoils no other.

        Args:
            actions: Its rows.
            may_send: Asked right before each call; what it forbids is not acknowledged.
        """
        # One row is no more than a plain put: signs of life, and what people look at, do not wait behind hundreds.
        calls = self._room if len(actions) > 1 else BatchRoom(1)
        batch = _Batch(asyncio.Semaphore(CHUNKS_AT_ONCE_MAX), calls, may_send)
        chunks = [actions[start : start + WRITES_PER_CALL_MAX] for start in range(0, len(actions), WRITES_PER_CALL_MAX)]
        done = await asyncio.gather(*(self._write_chunk(chunk, batch) for chunk in chunks))
        invalid = next((each for each in done if isinstance(each, Invalid)), None)
        return all(done) if invalid is None else invalid

    async def _write_chunk(self, chunk: Actions, batch: _Batch) -> bool | Invalid:
        pending = chunk
        failures = idle = 0
        while pending and idle < WRITE_ATTEMPTS_MAX:
            written = batch.written
            try:
                async with batch.chunks:
                    left, untouched = await self._write_some(pending, batch)
            except StoreRequestInvalid as invalid:
                return Invalid(str(invalid))
            except _MayNotSend:
                return False
            failures = 0 if len(left) + len(untouched) < len(pending) else failures + 1
            # Of the whole batch. Each round that gets on has fewer left, so this ends.
            idle = 0 if batch.written > written else idle + 1
            pending = [*left, *untouched]
            if left:
                await self._pause(failures)
        return not pending

    async def _write_some(self, pending: Actions, batch: _Batch) -> tuple[Actions, Actions]:
        """Makes one call with the first of them. Returns what is left of those, and the others."""
        async with batch.calls.place() as call:
            if not batch.may_send():
                raise _MayNotSend
            some = pending[: batch.rows_max]
            try:
                left = await self._send(some)
            except StoreUnavailable:
                left = some
                batch.rows_max = max(1, min(batch.rows_max, len(some) // 2))
            if len(left) == len(some):
                # Not answered in time, or turned away as a whole: the store has more to do than it can.
                batch.calls.too_late(call)
            elif not left:
                batch.calls.kept_up()
                batch.rows_max = min(batch.rows_max + 1, WRITES_PER_CALL_MAX)
        batch.written += len(some) - len(left)
        return left, pending[len(some) :]
