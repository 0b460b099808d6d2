"""The names of the events that the API logs, each with its level and meaning."""

from __future__ import annotations

from typing import Final

import structlog

from tidegate_ports.bus import Notices
from tidegate_telemetry.names import LogEvent

API_EVENTS: Final = {
    "api_bug": LogEvent("An unforeseen error; the traceback follows. Report it.", "error"),
    "api_request": LogEvent("A request was answered.", "debug"),
    "receipt_not_understood": LogEvent("A record among the receipts is none of ours, or a newer node's.", "warning"),
    "receipts_not_readable": LogEvent("The broker does not say where the receipts end; tried again.", "warning"),
    "receipts_position_gone": LogEvent("Receipts were removed before they were read; read on from the end.", "warning"),
    "run_finished": LogEvent("A program reported its end."),
    "run_started": LogEvent("A program passed the start gate."),
}


class ApiNotices:
    """Writes the API's events at their level; the adapters' go to the notifier that knows those. Fits `Notices`."""

    def __init__(self, others: Notices) -> None:
        self._others = others
        self._log = structlog.get_logger()

    def __call__(self, event: str, **fields: object) -> None:
        known = API_EVENTS.get(event)
        if known is None:
            self._others(event, **fields)
        else:
            getattr(self._log, known.level)(event, **fields)
