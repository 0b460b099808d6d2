"""Sends unconditional batches in concurrent chunks; the chunks get smaller and fewer while the store answers too late.

Used by `store_effects.py`. Waiting rows join the next call as far as it has room. So a shard's few rows need a separate
call only while no other shard writes.

It reports only whether all rows of a batch are acknowledged. Rows that are not acknowledged may still be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate_core.rows.effects import Invalid
from tidegate_core.rows.store_operations import Delete, Key, Put
from tidegate_node.effects.adaptive_concurrency import AdaptiveConcurrency, Call
from tidegate_node.effects.fair_queue import FairQueue, tell, tell_error
from tidegate_ports.store import NotSent, StoreRequestInvalid, StoreUnavailable

WRITES_PER_CALL_MAX: Final = 25
"""DynamoDB's limit. A chunk is one call, so that a slow row delays no other chunk."""
CHUNKS_AT_ONCE_MAX: Final = 8
"""Concurrent calls of one batch: a large batch must not take all places from the other shards."""
WRITE_ATTEMPTS_MAX: Final = 8
"""Sends of one chunk without progress of its whole batch: about 6 s with the pauses, so that throttling does not end it
at once. A batch with progress is never given up, because its author would send all of it again.
"""

Actions: TypeAlias = Sequence[Put | Delete]
Send: TypeAlias = Callable[[Actions, Callable[[], bool]], Awaitable[Actions]]
"""Makes one call and returns the rows that are left. The callback right before the send can forbid it. Raises NotSent,
StoreUnavailable, StoreRequestInvalid.
"""
Pause: TypeAlias = Callable[[int], Awaitable[None]]
"""Waits after a call that left rows; the argument is the number of calls in a row without progress."""


class _MayNotSend(Exception):
    """The author of the batch may not write now."""


@dataclass(slots=True)
class _Batch:
    """One pending batch.

    Attributes:
        chunks: Semaphore of its concurrent chunks.
        may_send: Callback: whether a call may be made now.
        rows_max: Rows in a call with rows of this batch; halved after a late call, so that each part is fast enough.
        written: Rows that are acknowledged so far.
    """

    chunks: asyncio.Semaphore
    may_send: Callable[[], bool]
    rows_max: int = WRITES_PER_CALL_MAX
    written: int = 0


@dataclass(slots=True, eq=False)
class _Part:
    """Rows of one batch that wait for a call.

    Attributes:
        taken: Number of the first rows that are in the call.
        left: Those of these rows that the call left.
        alone: Whether they need a separate call: a shared call was refused, and the faulty row is unknown.
    """

    batch: _Batch
    rows: Actions
    left: asyncio.Future[Actions]
    taken: int = 0
    alone: bool = False

    @property
    def sent(self) -> Actions:
        """Rows that go with the call."""
        return self.rows[: self.taken]


class BatchWrites:
    """One per process.

    Args:
        send: Function that makes a call.
        room: Bound on the calls of all batches.
        pause: Pause between two calls of a chunk.
    """

    def __init__(self, send: Send, room: AdaptiveConcurrency, pause: Pause) -> None:
        self._send = send
        self._room = room
        self._pause = pause
        self._turns: FairQueue[_Part] = FairQueue(self._take_turn)

    async def write(self, actions: Actions, may_send: Callable[[], bool] = lambda: True) -> bool | Invalid:
        """Returns whether all rows are acknowledged. An invalid chunk does not affect the others.

        Args:
            actions: Rows of the batch.
            may_send: Callback before each call and again as it leaves; forbidden rows are not acknowledged.
        """
        batch = _Batch(asyncio.Semaphore(CHUNKS_AT_ONCE_MAX), may_send)
        chunks = [actions[start : start + WRITES_PER_CALL_MAX] for start in range(0, len(actions), WRITES_PER_CALL_MAX)]
        # A single row is a plain put: heartbeat rows and node status do not wait for hundreds of rows.
        send = self._send_at_once if len(actions) == 1 else self._send_in_turn
        done = await asyncio.gather(*(self._write_chunk(chunk, batch, send) for chunk in chunks))
        invalid = next((each for each in done if isinstance(each, Invalid)), None)
        return all(done) if invalid is None else invalid

    async def _write_chunk(
        self, chunk: Actions, batch: _Batch, send: Callable[[_Part], Coroutine[None, None, None]]
    ) -> bool | Invalid:
        pending = chunk
        failures = idle = 0
        while pending and idle < WRITE_ATTEMPTS_MAX:
            written = batch.written
            try:
                async with batch.chunks:
                    part = _Part(batch, pending, asyncio.get_running_loop().create_future())
                    await send(part)
                    left = await part.left
            except StoreRequestInvalid as invalid:
                return Invalid(str(invalid))
            except _MayNotSend:
                return False
            others = pending[part.taken :]
            failures = 0 if len(left) + len(others) < len(pending) else failures + 1
            # Counted for the whole batch. Each round with progress leaves fewer rows, so this ends.
            idle = 0 if batch.written > written else idle + 1
            pending = [*left, *others]
            if left:
                await self._pause(failures)
        return not pending

    async def _send_at_once(self, part: _Part) -> None:
        part.taken = len(part.rows)
        await self._call([part])

    async def _send_in_turn(self, part: _Part) -> None:
        self._turns.add(part)

    async def _take_turn(self) -> None:
        async with self._room.place() as call:
            parts = self._next_parts()
            if parts:
                await self._call(parts, call)

    def _next_parts(self) -> list[_Part]:
        """Returns the parts of the next call, in order of arrival, without duplicate keys."""
        parts: list[_Part] = []
        keys: set[Key] = set()
        count, rows_max = 0, WRITES_PER_CALL_MAX
        waiting = self._turns.waiting
        while waiting:
            part = waiting[0]
            rows_max = min(rows_max, part.batch.rows_max)
            part.taken = min(rows_max, len(part.rows))
            of_part = {action.key for action in part.sent}
            if parts and (part.alone or count + len(part.rows) > rows_max or keys & of_part):
                break  # It gets a separate turn.
            parts.append(waiting.popleft())
            count += part.taken
            keys |= of_part
            if part.alone:
                break
        return parts

    async def _call(self, parts: Sequence[_Part], place: Call | None = None) -> None:
        """Makes one call, and reports to each part which of its rows are left.

        Args:
            parts: Parts whose rows go with the call.
            place: Place of the call in the bound; None if it needs none.
        """
        sent = [part for part in parts if self._may_send(part)]
        rows = [action for part in sent for action in part.sent]
        if not rows:
            return
        try:
            left = await self._send(rows, lambda: all(_is_wanted(part) for part in sent))
        except NotSent:
            # The call also waited for the store's own bound. The permitted parts are sent again without the forbidden
            # one.
            await self._call(sent, place)
            return
        except StoreUnavailable:
            left = rows
            for part in sent:
                part.batch.rows_max = max(1, min(part.batch.rows_max, len(rows) // 2))
        except StoreRequestInvalid as invalid:
            self._refused(sent, invalid)
            return
        except BaseException as error:
            for part in sent:
                tell_error(part.left, error)
            if not isinstance(error, Exception):
                raise
            return  # The waiting parts have the error.
        if not left:
            for part in sent:
                part.batch.rows_max = min(part.batch.rows_max + 1, WRITES_PER_CALL_MAX)
        if place is not None:
            self._tell_room(place, len(left), len(rows))
        keys = {action.key for action in left}
        for part in sent:
            of_part = [action for action in part.sent if action.key in keys]
            part.batch.written += part.taken - len(of_part)
            tell(part.left, of_part)

    def _tell_room(self, place: Call, left: int, rows: int) -> None:
        if left == rows:
            # Late, or refused as a whole: the store is overloaded.
            self._room.too_late(place)
        elif not left:
            self._room.kept_up()

    def _may_send(self, part: _Part) -> bool:
        if _is_wanted(part):
            return True
        tell_error(part.left, _MayNotSend())
        return False

    def _refused(self, parts: Sequence[_Part], invalid: StoreRequestInvalid) -> None:
        """One row is invalid. If several batches share the call, each is sent separately."""
        if len(parts) == 1:
            tell_error(parts[0].left, invalid)
            return
        for part in reversed(parts):
            part.alone = True
            self._turns.add(part, in_front=True)


def _is_wanted(part: _Part) -> bool:
    """Whether the author still waits for the rows and may still write."""
    return not part.left.done() and part.batch.may_send()
