"""How many batch calls a node has under way: fewer while the store answers too late, one more for each round that it keeps up with.

A call whose answer did not come in time is still worked on by the store, and its repeat comes on top: senders that go on as before
bury a store that would manage everything one by one. So the room halves with each round that was too late and grows by one with
each that was answered, as TCP's window does. It also leaves threads free: what reads and transacts never waits behind batches.

Used by `store_effects.py`, on the event loop only.
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
    """One call on its way.

    Attributes:
        round: The room's narrowing that it began behind: of calls that were under way together only one narrows it.
    """

    round: int


class AdaptiveConcurrency:
    """Room of all batches of a process; places are given in the order in which they were asked for.

    Args:
        most: Calls under way together while the store keeps up, from 1.
    """

    def __init__(self, most: int) -> None:
        self._most = max(ROOM_MIN, most)
        self._room = float(self._most)
        self._under_way = 0
        self._round = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def size(self) -> int:
        """Calls that may be under way together now."""
        return int(self._room)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Call]:
        """Waits for a place and keeps it for the block."""
        await self._enter()
        try:
            yield Call(self._round)
        finally:
            self._under_way -= 1
            self._let_in()

    def kept_up(self) -> None:
        """A call was answered: a round of such calls makes room for one more."""
        self._room = min(float(self._most), self._room + 1 / self._room)
        self._let_in()

    def too_late(self, call: Call) -> None:
        """A call was not answered, or was turned away as a whole."""
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
                # Let in and ended in the same moment: the place is the next one's.
                self._under_way -= 1
                self._let_in()
            raise

    def _let_in(self) -> None:
        while self._waiting and self._under_way < self.size:
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)
