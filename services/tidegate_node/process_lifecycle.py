"""Lifecycle of a node's process: signals, an interruptible start, and exit codes. It knows no adapter."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from tidegate_node.node import Node
from tidegate_node.startup_checks import EXIT_CONFIGURATION, EXIT_TRY_LATER, NotYet, StartRefused
from tidegate_ports.bus import Notices

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
ORDERS_AT_ONCE_MAX: Final = 64
"""Orders read at a time. The second order ends the process, so more than two never matter."""
EXIT_SIGNAL_BASE: Final = 128
"""A process that a signal ended is reported as 128 + the signal's number."""

Begun = TypeVar("Begun")


def exit_code_of(life: Coroutine[Any, Any, int], notices: Notices) -> int:
    """Runs a node on a new event loop. A refused start is logged and mapped to its exit code."""
    try:
        return asyncio.run(life)
    except StartRefused as refusal:
        notices("node_refused", message=str(refusal))
        return EXIT_CONFIGURATION
    except NotYet as silence:
        notices("node_refused", message=f"gave up waiting: {silence}")
        return EXIT_TRY_LATER


def stop_on_signals(orders: int | None = None) -> asyncio.Event:
    """Returns an event that the first order sets, so that the node drains. A second order ends the process at once.

    Args:
        orders: Descriptor of a pipe on which a supervisor passes on its signals, one byte with the number for each. The
            end of the
            pipe is an order too: the supervisor is gone.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    # Signals and the pipe are counted separately. A service manager may signal all processes of a service, and the
    # supervisor passes the same order on. They arrive in any order and, on a busy machine, far apart. So no time span
    # could tell one order from two.
    told: set[str] = set()

    def on_order(way: str, number: int) -> None:
        if way in told:
            os._exit(EXIT_SIGNAL_BASE + number)
        told.add(way)
        stop.set()

    def on_pipe(pipe: int) -> None:
        passed_on = os.read(pipe, ORDERS_AT_ONCE_MAX)
        for number in passed_on:
            on_order("pipe", number)
        if not passed_on:
            loop.remove_reader(pipe)
            stop.set()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_order, "signal", number)
    if orders is not None:
        loop.add_reader(orders, on_pipe, orders)
    return stop


async def unless_stopped(starting: Coroutine[Any, Any, Begun], stop: asyncio.Event) -> Begun | None:
    """Returns the result of `starting`, or None if the order to stop came first. Raises the errors of `starting`."""
    start, stopped = asyncio.ensure_future(starting), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({start, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return start.result() if start.done() else None
    finally:
        start.cancel()
        stopped.cancel()


async def run_until(stop: asyncio.Event, node: Node) -> int:
    """Runs the node, passes the order to stop to it, and returns its exit code."""
    stopped = asyncio.ensure_future(stop.wait())
    stopped.add_done_callback(lambda _: node.stop())
    try:
        return await node.run()
    finally:
        stopped.cancel()


THRESHOLDS: Final = (50_000, 10, 10)
"""Allocations between two garbage collections (the interpreter's default is 700). A collection of so many objects takes
some 5 ms. Cycles hold some 20 MB at most between collections.
"""


@contextmanager
def seldom_looked_for() -> Iterator[None]:
    """Reduces garbage collection for the lifetime of a process. Objects that exist at the start (modules, classes,
    clients) are exempt.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
