"""Metrics of store calls, the same in every process that calls the store."""

from __future__ import annotations

from collections.abc import Callable

from tidegate_telemetry.metrics import Metrics


def calls_measured(metrics: Metrics) -> Callable[[str, str, float], None]:
    """Returns the observer of finished calls (operation, `ok` or a code, seconds); any thread."""

    def observe(operation: str, outcome: str, seconds: float) -> None:
        metrics.observe("tidegate_store_call_seconds", seconds, operation=operation)
        if outcome != "ok":
            metrics.count("tidegate_store_call_failures_total", operation=operation, code=outcome)

    return observe


def units_counted(metrics: Metrics) -> Callable[[str, str, str, float], None]:
    """Returns the observer of costs (operation, table, `read` or `write`, units); any thread."""

    def count(operation: str, table: str, kind: str, units: float) -> None:
        metrics.count("tidegate_store_units_total", units, operation=operation, table=table, kind=kind)

    return count
