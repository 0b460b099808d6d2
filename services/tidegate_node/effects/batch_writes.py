"""Sends unconditional batches: in chunks side by side, smaller and fewer at once while the store answers too late.

What waits for its turn goes along with whose turn it is, as far as one call holds it: a shard's few rows cost a call of their own only
while nobody else writes.

Used by `store_effects.py`. Says of a batch only whether all of it is acknowledged; what is not may be there all the same.
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
"""DynamoDB's limit: a chunk is one call, so that what one of them waits for holds up no other."""
CHUNKS_AT_ONCE_MAX: Final = 8
"""Calls of one batch under way together: a large one must not take all places from the other shards."""
WRITE_ATTEMPTS_MAX: Final = 8
"""Sends of one chunk during which its whole batch gets nothing done: about 6 s with the pauses, so that throttling is not given up
at once. Where some of it gets on nobody gives up: the batch's author would send all of it again."""

Actions: TypeAlias = Sequence[Put | Delete]
Send: TypeAlias = Callable[[Actions, Callable[[], bool]], Awaitable[Actions]]
"""Makes one call, unless it is told right before it leaves that it may not, and returns what is left of it. Raises NotSent,
StoreUnavailable, StoreRequestInvalid."""
Pause: TypeAlias = Callable[[int], Awaitable[None]]
"""Waits behind a call that left something; told how many in a row got nothing done."""


class _MayNotSend(Exception):
    """Whoever asked for it must not write now."""


@dataclass(slots=True)
class _Batch:
    """One batch on its way.

    Attributes:
        chunks: Room of its chunks.
        may_send: Whether a call may be made now.
        rows_max: Of a call that it has a part in: what took too long as a whole comes about in halves, each within the time.
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
        taken: So many of them, the first ones, have a place in the call.
        left: What the call left of these.
        alone: They go in a call of their own: one with others can never work, and nobody knows for whom.
    """

    batch: _Batch
    rows: Actions
    left: asyncio.Future[Actions]
    taken: int = 0
    alone: bool = False

    @property
    def sent(self) -> Actions:
        """What goes with the call."""
        return self.rows[: self.taken]


class BatchWrites:
    """One per process.

    Args:
        send: Makes a call.
        room: Of the calls of all batches.
        pause: Between two calls of a chunk.
    """

    def __init__(self, send: Send, room: AdaptiveConcurrency, pause: Pause) -> None:
        self._send = send
        self._room = room
        self._pause = pause
        self._turns: FairQueue[_Part] = FairQueue(self._take_turn)

    async def write(self, actions: Actions, may_send: Callable[[], bool] = lambda: True) -> bool | Invalid:
        """Returns whether all is acknowledged; a chunk that can never work spoils no other.

        Args:
            actions: Its rows.
            may_send: Asked before each call and once more as it leaves; what it forbids is not acknowledged.
        """
        batch = _Batch(asyncio.Semaphore(CHUNKS_AT_ONCE_MAX), may_send)
        chunks = [actions[start : start + WRITES_PER_CALL_MAX] for start in range(0, len(actions), WRITES_PER_CALL_MAX)]
        # One row is no more than a plain put: signs of life, and what people look at, do not wait behind hundreds.
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
            # Of the whole batch. Each round that gets on has fewer left, so this ends.
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
        """Returns the parts of the next call, in the order in which they came; none twice of a key."""
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
                break  # It has a turn of its own.
            parts.append(waiting.popleft())
            count += part.taken
            keys |= of_part
            if part.alone:
                break
        return parts

    async def _call(self, parts: Sequence[_Part], place: Call | None = None) -> None:
        """Makes one call, and tells each part what is left of it.

        Args:
            parts: Whose rows go with it.
            place: That it has in the room; None where it needs none.
        """
        sent = [part for part in parts if self._may_send(part)]
        rows = [action for part in sent for action in part.sent]
        if not rows:
            return
        try:
            left = await self._send(rows, lambda: all(_is_wanted(part) for part in sent))
        except NotSent:
            # A call waits for its turn at the store as well. Those that went along go without the one that must not.
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
            return  # Whoever asked has it.
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
            # Not answered in time, or turned away as a whole: the store has more to do than it can.
            self._room.too_late(place)
        elif not left:
            self._room.kept_up()

    def _may_send(self, part: _Part) -> bool:
        if _is_wanted(part):
            return True
        tell_error(part.left, _MayNotSend())
        return False

    def _refused(self, parts: Sequence[_Part], invalid: StoreRequestInvalid) -> None:
        """One of the rows can never be written: where several batches have a part in it, each is asked for by itself."""
        if len(parts) == 1:
            tell_error(parts[0].left, invalid)
            return
        for part in reversed(parts):
            part.alone = True
            self._turns.add(part, in_front=True)


def _is_wanted(part: _Part) -> bool:
    """Whether whoever asked for it is still there, and may still write."""
    return not part.left.done() and part.batch.may_send()
