"""The process `tidegate node`: reads the settings, then runs a node until a signal ends it."""

from __future__ import annotations

import asyncio
import os

from tidegate_node import bootstrap
from tidegate_node.process_lifecycle import stop_on_signals, unless_stopped
from tidegate_node.startup_checks import EXIT_CONFIGURATION
from tidegate_node.worker_processes import Workers, environments_of
from tidegate_telemetry.log_setup import Notifier, set_up_logs
from tidegate_telemetry.metrics import Metrics


def run(settings: bootstrap.Settings | None = None, workers: int = 1, orders: int | None = None) -> int:
    """Returns the exit code: 0 ended by a signal, 70 a bug, 75 try again later, 78 the configuration must change.

    Args:
        settings: Settings to use instead of the environment's.
        workers: Number of node processes; above 1 this process only supervises them (`worker_processes.py`).
        orders: Descriptor on which a supervisor passes orders to this process.
    """
    if settings is None:
        try:
            settings = bootstrap.load()
        except bootstrap.SettingsRefused as refusal:
            set_up_logs()
            Notifier(Metrics())("settings_refused", message="; ".join(refusal.lines))
            return EXIT_CONFIGURATION
    if workers == 1:
        return bootstrap.run(settings, orders)
    set_up_logs(settings.log.level, settings.log.format)
    told = environments_of(workers, settings.node, settings.health.port, os.environ)
    notices = Notifier(Metrics(), node=settings.node)

    async def life() -> int:
        status = await Workers(told, notices).run()
        # No worker is left to receive a second signal, so it ends this process.
        await unless_stopped(bootstrap.programs_end(settings, notices).wait(status), stop_on_signals())
        return status

    return asyncio.run(life())
