"""Keeps the disk from filling with what runs leave behind."""

from __future__ import annotations

import asyncio
from typing import Final

from tidegate_ports.bus import Notices
from tidegate_ports.clock import Clock
from tidegate_ports.run_folders import RunFolders
from tidegate_telemetry.metrics import Metrics

LOOK_EVERY_S: Final = 600.0
"""What 100 runs a second leave behind in that time takes 3 GB; whoever runs so many keeps logs elsewhere, or gives the disk."""


class Keeping:
    """One per process; of several on one host one looks at a time."""

    def __init__(self, folders: RunFolders, clock: Clock, metrics: Metrics, notices: Notices) -> None:
        self._folders = folders
        self._clock = clock
        self._metrics = metrics
        self._notices = notices

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            try:
                await self.look()
            except Exception as failure:  # noqa: BLE001 - a disk that answers nobody is told, and must not end the node
                self._notices("task_failed", task="keeping", exc_info=failure)
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """One round."""
        swept = await asyncio.to_thread(self._folders.sweep, self._clock.now_ms())
        if swept is None:
            return
        self._metrics.set("tidegate_run_folders", swept.kept)
        self._metrics.set("tidegate_run_folders_bytes", swept.kept_bytes)
        if swept.removed:
            self._metrics.count("tidegate_run_folders_removed_total", swept.removed)
            self._notices("run_folders_removed", attempts=swept.removed, bytes=swept.removed_bytes)
        if swept.is_over:
            self._notices("run_folders_full", attempts=swept.kept, bytes=swept.kept_bytes)
