"""From a client's thread to the asyncio loop, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

Post: TypeAlias = Callable[..., None]
"""`post(function, *arguments)`: run it on the loop, after everything that was posted before."""


def post_to(loop: asyncio.AbstractEventLoop) -> Post:
    def post(function: Callable[..., object], *arguments: object) -> None:
        try:
            loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            # The loop is closed: the process ends, and nobody is left to be told.
            return

    return post
