"""Keeps the disk from filling with what runs leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from tidegate_ports.bus import Notices
from tidegate_ports.clock import Clock
from tidegate_ports.common.daemon_threads import apart
from tidegate_ports.run_folders import RunFolders
from tidegate_telemetry.metrics import Metrics

LOOK_EVERY_S: Final = 600.0
"""What 100 runs a second leave behind in that time takes 3 GB; whoever runs so many keeps logs elsewhere, or gives the disk."""
STORE_LOOKS: Final = 20
"""Between two looks at the folders: the store may be away for less."""
SEEN_AFTER_MS: Final = 3_600_000
"""Owners have seen an end that is as old as this, where the store has answered for as long."""
AWAY_AFTER_MS: Final = 60_000
"""The store is asked for something every few seconds."""


class RunFolderRetention:
    """One per process; of several on one host one looks at a time.

    Args:
        folders: Of this host.
        answered_at: When the store last answered this process, on the monotonic clock.
    """

    def __init__(
        self,
        folders: RunFolders,
        answered_at: Callable[[], int],
        clock: Clock,
        metrics: Metrics,
        notices: Notices,
    ) -> None:
        self._folders = folders
        self._answered_at = answered_at
        self._answers_since: int | None = None
        self._seen_through_ms = 0
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
            for _ in range(STORE_LOOKS):
                await asyncio.sleep(LOOK_EVERY_S / STORE_LOOKS)
                self._look_at_store()

    async def look(self) -> None:
        """One round."""
        self._look_at_store()
        look = partial(self._folders.sweep, self._clock.now_ms(), self._seen_through_ms)
        swept = await apart(look, "tidegate-keeping")
        if swept is None:
            return
        self._metrics.set("tidegate_run_folders", swept.kept)
        self._metrics.set("tidegate_run_folders_bytes", swept.kept_bytes)
        if swept.removed:
            self._metrics.count("tidegate_run_folders_removed_total", swept.removed)
            self._notices("run_folders_removed", attempts=swept.removed, bytes=swept.removed_bytes)
        if swept.is_over:
            self._notices("run_folders_full", attempts=swept.kept, bytes=swept.kept_bytes)

    def _look_at_store(self) -> None:
        """What ended while the store was away, or shortly before, nobody has seen for a while: also behind a start of this process."""
        now = self._clock.monotonic_ms()
        if now - self._answered_at() > AWAY_AFTER_MS:
            self._answers_since = None
        elif self._answers_since is None:
            self._answers_since = now
        elif now - self._answers_since >= SEEN_AFTER_MS:
            self._seen_through_ms = self._clock.now_ms() - SEEN_AFTER_MS
