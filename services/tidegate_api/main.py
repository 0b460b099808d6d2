"""The process `tidegate api`: reads its settings, serves until SIGTERM, and finishes open requests."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import uvicorn

from tidegate_api.bootstrap import SettingsRefused, build, load
from tidegate_api.settings import SettingsInvalid
from tidegate_telemetry.idle_connections import ImpatientProtocol
from tidegate_telemetry.log_setup import Notifier, set_up_logs
from tidegate_telemetry.metric_names import API_METRICS
from tidegate_telemetry.metrics import Metrics

EXIT_CONFIG = 78
"""EX_CONFIG: a restart with the same settings would fail again."""


def run() -> int:
    """Serves until SIGTERM or SIGINT; returns the exit code."""
    metrics = Metrics(API_METRICS)
    try:
        settings = load()
        set_up_logs(settings.log.level, settings.log.format)
        app = build(settings, Notifier(metrics), metrics)
    except (SettingsInvalid, SettingsRefused) as error:
        sys.stderr.write(f"tidegate api: {error}\n")
        return EXIT_CONFIG
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=settings.api.host,
            port=settings.api.port,
            http=ImpatientProtocol,
            limit_concurrency=settings.api.connections_max,
            timeout_graceful_shutdown=settings.api.drain_s,
            log_config=None,  # Uvicorn logs through the process's own log setup.
            access_log=False,  # The middleware logs each request as a named event with its id.
            server_header=False,
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # Uvicorn raises the signal again after its drain. Without this handler a planned stop would end as a failure.
        signal.signal(number, _stopped)
    try:
        server.run()
    except SystemExit:
        if server.lifespan.should_exit:
            return 1  # A log line names the service that did not start.
        where = f"{settings.api.host}:{settings.api.port}"
        sys.stderr.write(f"tidegate api: api.host and api.port: cannot listen on {where}; the log has the reason\n")
        return EXIT_CONFIG
    return 0 if server.started else 1


def _stopped(_number: int, _frame: FrameType | None) -> None:
    """Does nothing. While the server runs, its own handlers replace this one."""


if __name__ == "__main__":
    sys.exit(run())
