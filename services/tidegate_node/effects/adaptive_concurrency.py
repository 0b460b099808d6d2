"""Bounds the concurrent batch calls of a node: fewer while the store answers too late, one more after each round that
it keeps up with.

Used by `store_effects.py`, on the event loop only. The store still works on a call whose answer was late, and the
repeat adds to that work. Senders that continue at the same rate overload a store that could handle everything one by
one. So the bound halves with each late round and grows by one with each answered round, like TCP's window. It also
leaves threads free: reads and transactions never wait for batches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

ROOM_MIN: Final = 1


@dataclass(slots=True)
class Call:
    """One pending call.

    Attributes:
        round: Number of reductions when the call began. Of calls that were pending together only one reduces the bound.
    """

    round: int


class AdaptiveConcurrency:
    """Limits the concurrent batch calls of a process. Callers enter in the order in which they asked.

    Args:
        most: Calls that may be pending together while the store keeps up, from 1.
    """

    def __init__(self, most: int) -> None:
        self._most = max(ROOM_MIN, most)
        self._room = float(self._most)
        self._under_way = 0
        self._round = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def size(self) -> int:
        """Number of calls that may be pending together now."""
        return int(self._room)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Call]:
        """Waits for a place and holds it during the block."""
        await self._enter()
        try:
            yield Call(self._round)
        finally:
            self._under_way -= 1
            self._let_in()

    def kept_up(self) -> None:
        """A call was answered; a full round of answered calls adds one place."""
        self._room = min(float(self._most), self._room + 1 / self._room)
        self._let_in()

    def too_late(self, call: Call) -> None:
        """A call was not answered, or was refused as a whole."""
        if call.round == self._round:
            self._round += 1
            self._room = max(float(ROOM_MIN), self._room / 2)

    async def _enter(self) -> None:
        if not self._waiting and self._under_way < self.size:
            self._under_way += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting.remove(turn)
            else:
                # The place was granted and the wait cancelled at the same moment: pass the place on.
                self._under_way -= 1
                self._let_in()
            raise

    def _let_in(self) -> None:
        while self._waiting and self._under_way < self.size:
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)
