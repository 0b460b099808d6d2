"""The process `tidegate node`: settings from the environment, then a node until a signal ends it."""

from __future__ import annotations

from tidegate_node import bootstrap
from tidegate_node.startup import EXIT_CONFIGURATION
from tidegate_telemetry.logs import Notifier, set_up_logs
from tidegate_telemetry.metrics import Metrics


def run(settings: bootstrap.Settings | None = None) -> int:
    """Returns the exit code: 0 ended by a signal, 70 a bug, 75 try again later, 78 the configuration must change.

    Args:
        settings: Instead of those of the environment.
    """
    if settings is None:
        try:
            settings = bootstrap.load()
        except bootstrap.SettingsRefused as refusal:
            set_up_logs()
            Notifier(Metrics())("settings_refused", message="; ".join(refusal.lines))
            return EXIT_CONFIGURATION
    return bootstrap.run(settings)
