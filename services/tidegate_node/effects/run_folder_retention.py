"""Removes old run folders, so that they do not fill the disk.

Runs as a background task of the node. It removes only folders whose end the owners have certainly seen.
"""

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
"""Time between two sweeps. At 100 runs a second 3 GB accumulate in it; such a site stores logs elsewhere, or provides
the disk space."""
STORE_LOOKS: Final = 20
"""Checks of the store between two sweeps, because the store may be away for less time than a sweep's pause."""
SEEN_AFTER_MS: Final = 3_600_000
"""Age after which owners have seen an end, if the store has answered for that long."""
AWAY_AFTER_MS: Final = 60_000
"""Silence after which the store counts as away; it is called every few seconds."""


class RunFolderRetention:
    """One per process; of several on one host only one sweeps at a time.

    Args:
        folders: Run folders of this host.
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
            except Exception as failure:  # noqa: BLE001 - a failing disk is reported, and must not end the node
                self._notices("task_failed", task="keeping", exc_info=failure)
            for _ in range(STORE_LOOKS):
                await asyncio.sleep(LOOK_EVERY_S / STORE_LOOKS)
                self._look_at_store()

    async def look(self) -> None:
        """Makes one sweep."""
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
        """Updates the time up to which owners have seen all ends. An end shortly before or during an absence of the
        store may stay unseen for a while. A start of this process counts as such an absence.
        """
        now = self._clock.monotonic_ms()
        if now - self._answered_at() > AWAY_AFTER_MS:
            self._answers_since = None
        elif self._answers_since is None:
            self._answers_since = now
        elif now - self._answers_since >= SEEN_AFTER_MS:
            self._seen_through_ms = self._clock.now_ms() - SEEN_AFTER_MS
