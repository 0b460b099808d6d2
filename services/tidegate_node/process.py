"""The life of a node's process: signals, a start that a signal may cut short, and exit codes. Knows no adapter."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from tidegate_node.node import Node
from tidegate_node.startup import EXIT_CONFIGURATION, EXIT_TRY_LATER, NotYet, StartRefused
from tidegate_ports.bus import Notices

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
EXIT_SIGNAL_BASE: Final = 128
"""A process that a signal ended is shown as 128 + its number."""

Begun = TypeVar("Begun")


def exit_code_of(life: Coroutine[Any, Any, int], notices: Notices) -> int:
    """Runs a node's whole life on a loop of its own; a start that is refused is said, and becomes its exit code."""
    try:
        return asyncio.run(life)
    except StartRefused as refusal:
        notices("node_refused", message=str(refusal))
        return EXIT_CONFIGURATION
    except NotYet as silence:
        notices("node_refused", message=f"gave up waiting: {silence}")
        return EXIT_TRY_LATER


def stop_on_signals() -> asyncio.Event:
    """Returns what the first signal sets, so that the node drains; a second one ends the process at once."""
    stop = asyncio.Event()

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(EXIT_SIGNAL_BASE + number)
        stop.set()

    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    return stop


async def unless_stopped(starting: Coroutine[Any, Any, Begun], stop: asyncio.Event) -> Begun | None:
    """Returns what starting comes to, or None when the order to stop came first. Raises what starting raises."""
    start, stopped = asyncio.ensure_future(starting), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({start, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return start.result() if start.done() else None
    finally:
        start.cancel()
        stopped.cancel()


async def run_until(stop: asyncio.Event, node: Node) -> int:
    """Runs the node, and passes the order to stop on to it; returns its exit code."""
    stopped = asyncio.ensure_future(stop.wait())
    stopped.add_done_callback(lambda _: node.stop())
    try:
        return await node.run()
    finally:
        stopped.cancel()
