"""Who waits for a turn, in order: a turn for each, and whose turn it is may take along who waits behind.

Used by `batch_writes.py` and `read_batcher.py`, on the event loop only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

_Waiting = TypeVar("_Waiting")
_Answer = TypeVar("_Answer")


class FairQueue(Generic[_Waiting]):
    """One queue.

    Args:
        take: Takes the first ones of `waiting` out of it, and deals with them; finds nothing to do where they went along with others.
    """

    def __init__(self, take: Callable[[], Coroutine[None, None, None]]) -> None:
        self.waiting: deque[_Waiting] = deque()
        self._take = take
        self._under_way: set[asyncio.Task[None]] = set()

    def add(self, waiting: _Waiting, *, in_front: bool = False) -> None:
        """Has it wait, with a turn of its own to come."""
        if in_front:
            self.waiting.appendleft(waiting)
        else:
            self.waiting.append(waiting)
        turn = asyncio.get_running_loop().create_task(self._take())
        self._under_way.add(turn)
        turn.add_done_callback(self._under_way.discard)


def tell(asked: asyncio.Future[_Answer], answer: _Answer) -> None:
    """Answers who asked, unless it has gone."""
    if not asked.done():
        asked.set_result(answer)


def tell_error(asked: asyncio.Future[_Answer], error: BaseException) -> None:
    """The same with an error; where the call itself was cancelled, its author has gone with it, and nobody would hear of one."""
    if asked.done():
        return
    if isinstance(error, asyncio.CancelledError):
        asked.cancel()
    else:
        asked.set_exception(error)
