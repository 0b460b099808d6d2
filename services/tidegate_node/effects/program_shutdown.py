"""Handles the host's programs when a node's process ends and the programs cannot outlive it."""

from __future__ import annotations

import asyncio
from typing import Final

from tidegate_ports.bus import Notices
from tidegate_ports.clock import Clock
from tidegate_ports.host_programs import HostPrograms

LOOK_EVERY_S: Final = 0.5


class ProgramsEnd:
    """Waits for the host's programs, then ends them. They need no node for that: they report to the API, and the run's
    owner records the end.

    Args:
        programs: Programs of this host.
        wait_s: Time that programs may continue; 0 leaves them alone, for a host that outlives its nodes.
        grace_s: Time between the request to end and the forced end, as after a cancel.
    """

    def __init__(self, programs: HostPrograms, wait_s: float, grace_s: float, clock: Clock, notices: Notices) -> None:
        self._programs = programs
        self._wait_s = wait_s
        self._grace_s = grace_s
        self._clock = clock
        self._notices = notices

    async def wait(self, status: int) -> None:
        """Returns when no program is left, or the time is up. The node has already ended and owns no shard.

        Args:
            status: Exit status of the node. Programs get time only after an ordered end (0). Otherwise the process is
                restarted, and all its work would wait for them.
        """
        if self._wait_s <= 0:
            return
        try:
            await self._wait(self._wait_s if status == 0 else 0.0)
        except Exception as failure:  # noqa: BLE001 - a silent host must not keep the process from ending
            self._notices("task_failed", task="programs_end", exc_info=failure)

    async def _wait(self, wait_s: float) -> None:
        left = await asyncio.to_thread(self._programs.under_way)
        if not left:
            return
        self._notices("programs_awaited", programs=left, wait_s=wait_s)
        if not await self._left_after(wait_s, ask=False):
            return
        self._notices("programs_told_to_end", programs=left, grace_s=self._grace_s)
        left = await self._left_after(self._grace_s, ask=True)
        if left:
            self._notices("programs_left", programs=left)

    async def _left_after(self, seconds: float, *, ask: bool) -> int:
        """Polls until no program is left or the time has passed; returns the number of programs left."""
        give_up = self._clock.monotonic_ms() + seconds * 1_000
        while True:
            if ask:
                await asyncio.to_thread(self._programs.ask_to_end)
            left = await asyncio.to_thread(self._programs.under_way)
            pause_s = min(LOOK_EVERY_S, (give_up - self._clock.monotonic_ms()) / 1_000)
            if not left or pause_s <= 0:
                return left
            await asyncio.sleep(pause_s)
