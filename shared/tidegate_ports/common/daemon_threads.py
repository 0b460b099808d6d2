"""Blocking work for which nobody waits any more once the process ends.

No port, but adapters and services do it alike. A pool's threads, those of `asyncio.to_thread` among them, keep a process from ending until
they come back, and a program that gives AWS keys, say, may hang for ever.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def apart(work: Callable[[], T], name: str) -> T:
    """Does it on a daemon thread of that name, and returns or raises what it does.

    Raises:
        RuntimeError: The host has no more threads at the moment.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_it: Callable[[], None]) -> None:
        if not done.done():  # Else nobody waits any more.
            set_it()

    def go() -> None:
        set_it: Callable[[], None]
        try:
            set_it = partial(done.set_result, work())
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits is told
            set_it = partial(done.set_exception, error)
        with suppress(RuntimeError):  # The loop has ended meanwhile.
            loop.call_soon_threadsafe(tell, set_it)

    threading.Thread(target=go, name=name, daemon=True).start()
    return await done
