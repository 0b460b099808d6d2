"""Posts function calls from a client's thread to the asyncio loop, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

Post: TypeAlias = Callable[..., None]
"""`post(function, *arguments)`: runs the function on the loop, after all earlier posts."""


def post_to(loop: asyncio.AbstractEventLoop) -> Post:
    def post(function: Callable[..., object], *arguments: object) -> None:
        try:
            loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            # The loop is closed because the process ends, so the call has no receiver.
            return

    return post
