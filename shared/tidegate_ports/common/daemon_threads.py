"""Runs blocking work on daemon threads, which do not keep the process alive.

This module is no port; it stands here because adapters and services share it. Threads of a pool, also those of `asyncio.to_thread`, keep a process from
ending until they return. Some work may hang for ever, for example a program that provides AWS keys.
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
    """Runs the work on a daemon thread of that name; returns its result or raises its exception.

    Raises:
        RuntimeError: The host has no thread left at the moment.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_it: Callable[[], None]) -> None:
        if not done.done():  # A cancelled caller waits no more.
            set_it()

    def go() -> None:
        set_it: Callable[[], None]
        try:
            set_it = partial(done.set_result, work())
        except Exception as error:  # noqa: BLE001 - passed on to the caller
            set_it = partial(done.set_exception, error)
        with suppress(RuntimeError):  # The loop has ended since.
            loop.call_soon_threadsafe(tell, set_it)

    threading.Thread(target=go, name=name, daemon=True).start()
    return await done
