"""Threads for the store's blocking calls. The start gate has its own, so that lists never delay the start of a program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tidegate_ports.common.program_file_check import FileLooks

T = TypeVar("T")

LOG_S_MAX = 5.0
"""Seconds for reading one piece of a log, at most 256 KiB; a busy file system answers within a second."""


class Pools:
    """Two bounded thread pools. The server's `connections_max` bounds the calls that wait for them.

    Attributes:
        looks: Checks of files. They use none of these threads, because a file system may hang.
        logs: Reads of logs, also on other threads. They are separate from `looks`: a hanging mount of logs must not stop dry runs.
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
        """Waits for open calls; each has a timeout of some seconds at most."""
        self._gate.shutdown()
        self._read.shutdown()
