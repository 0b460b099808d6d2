"""The life of a node's process: signals, a start that a signal may cut short, and exit codes. Knows no adapter."""

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
"""The second one ends the process: more than two are never of interest."""
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


def stop_on_signals(orders: int | None = None) -> asyncio.Event:
    """Returns what the first order sets, so that the node drains; a second one ends the process at once.

    Args:
        orders: Descriptor of a pipe on which whoever looks after this process passes on the signals that it gets itself, a byte
            with the number of each. Its end is an order as well: nobody looks after this process any more.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    # Each way has a count of its own: a service manager may signal all processes of a service, and who looks after this one passes the
    # same order on. They come in any order and, on a machine that is full, far apart: no time between two orders would tell.
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


THRESHOLDS: Final = (50_000, 10, 10)
"""More objects than these since the last look (the interpreter's own: 700). A look at so many takes some 5 ms; what cycles hold
meanwhile is some 20 MB at most."""


@contextmanager
def seldom_looked_for() -> Iterator[None]:
    """For a process's life: what exists when this begins (modules, classes, clients) is not looked at any more."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
