"""What a node does, when it is told to end, about programs that cannot outlive it."""

from __future__ import annotations

import asyncio
from typing import Final

from tidegate_ports.bus import Notices
from tidegate_ports.clock import Clock
from tidegate_ports.host_programs import HostPrograms

LOOK_EVERY_S: Final = 0.5


class ProgramsEnd:
    """Waits for the host's programs, then has them end. They need no node for that: they report to the API, which writes the end down with
    whoever owns the run.

    Args:
        programs: Of this host.
        wait_s: How long they may go on; 0 leaves them alone, for a host that outlives its nodes.
        grace_s: How long they may take to end when they are asked to, as behind a cancel.
    """

    def __init__(self, programs: HostPrograms, wait_s: float, grace_s: float, clock: Clock, notices: Notices) -> None:
        self._programs = programs
        self._wait_s = wait_s
        self._grace_s = grace_s
        self._clock = clock
        self._notices = notices

    async def wait(self) -> None:
        """Returns when none is left, or time is up; nothing is this node's any more."""
        if self._wait_s <= 0:
            return
        try:
            await self._wait()
        except Exception as failure:  # noqa: BLE001 - a host that does not tell must not keep the process from ending as it should
            self._notices("task_failed", task="programs_end", exc_info=failure)

    async def _wait(self) -> None:
        left = await asyncio.to_thread(self._programs.under_way)
        if not left:
            return
        self._notices("programs_awaited", programs=left, wait_s=self._wait_s)
        if not await self._left_after(self._wait_s):
            return
        asked = await asyncio.to_thread(self._programs.ask_to_end)
        self._notices("programs_told_to_end", programs=asked, grace_s=self._grace_s)
        left = await self._left_after(self._grace_s)
        if left:
            self._notices("programs_left", programs=left)

    async def _left_after(self, seconds: float) -> int:
        """Looks until none is left, or so many seconds have passed; returns how many there are."""
        give_up = self._clock.monotonic_ms() + seconds * 1_000
        while left := await asyncio.to_thread(self._programs.under_way):
            pause_s = min(LOOK_EVERY_S, (give_up - self._clock.monotonic_ms()) / 1_000)
            if pause_s <= 0:
                break
            await asyncio.sleep(pause_s)
        return left
