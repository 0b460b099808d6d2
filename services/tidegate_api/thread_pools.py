"""Threads for the store's blocking calls: the gate has its own, so that no list ever stands before a program's start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tidegate_ports.common.program_file_check import FileLooks

T = TypeVar("T")

LOG_S_MAX = 5.0
"""How long a piece of a log, 256 KiB at most, may take; a busy file system answers within a second."""


class Pools:
    """Two bounded pools; what waits for them is bounded by the server's `connections_max`.

    Attributes:
        looks: At files, whose systems may not answer: from none of these threads.
        logs: Reads of logs, likewise; apart, so that a mount which hangs below the logs keeps no dry run from its look.
    """

    def __init__(self, gate_threads: int, read_threads: int) -> None:
        self._gate = ThreadPoolExecutor(gate_threads, "tidegate-gate")
        self._read = ThreadPoolExecutor(read_threads, "tidegate-read")
        self.looks = FileLooks()
        self.logs = FileLooks(LOG_S_MAX)

    async def gate(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._gate, call)

    async def read(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._read, call)

    def close(self) -> None:
        """Waits for what is under way: each call has its own time-outs, seconds at most."""
        self._gate.shutdown()
        self._read.shutdown()
