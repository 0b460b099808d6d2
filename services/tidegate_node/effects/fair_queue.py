"""Fair queue of requests: each request gets a turn, and a turn may also serve the requests after it.

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
        take: Serves the first entries of `waiting`; does nothing if earlier turns have served them.
    """

    def __init__(self, take: Callable[[], Coroutine[None, None, None]]) -> None:
        self.waiting: deque[_Waiting] = deque()
        self._take = take
        self._under_way: set[asyncio.Task[None]] = set()

    def add(self, waiting: _Waiting, *, in_front: bool = False) -> None:
        """Adds an entry, with one more turn."""
        if in_front:
            self.waiting.appendleft(waiting)
        else:
            self.waiting.append(waiting)
        turn = asyncio.get_running_loop().create_task(self._take())
        self._under_way.add(turn)
        turn.add_done_callback(self._under_way.discard)


def tell(asked: asyncio.Future[_Answer], answer: _Answer) -> None:
    """Answers a request, unless its author is gone."""
    if not asked.done():
        asked.set_result(answer)


def tell_error(asked: asyncio.Future[_Answer], error: BaseException) -> None:
    """Answers a request with an error. A cancelled call cancels the request, because its author is gone too."""
    if asked.done():
        return
    if isinstance(error, asyncio.CancelledError):
        asked.cancel()
    else:
        asked.set_exception(error)
