"""Launch order and context document of an attempt, built at submission from templates that were resolved at admission.

Called by `attempts.py`. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import LaunchOrder
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Value
from tidegate_core.shard.events.evidence_log import DEDUPE_UNKNOWN, is_of_a_tick


def launch_order(run: Run, entries: Sequence[dict[str, Any]]) -> LaunchOrder:
    """Returns the order for the launcher; `entries` are the sealed evidence of the run."""
    order = run.order_document
    return LaunchOrder(
        run_id=run.id,
        attempt=run.attempt,
        program_type=order["program_type"],
        file=order["file"],
        args=tuple(order["args"]),
        conf=order["conf"],
        env=order["env"],
        context=context_document(run, order["properties"], entries, order.get("covered", [])),
        due=run.nominal if run.due is None else run.due,
        priority=run.priority,
    )


def context_document(
    run: Run, properties: dict[str, str], entries: Sequence[dict[str, Any]], covered: list[Value]
) -> dict[str, Value]:
    """Returns the document that `tidegate_spark.context()` reads."""
    interval: Value = None
    if run.interval_start is not None and run.interval_end is not None:
        interval = {"start": format_instant(run.interval_start), "end": format_instant(run.interval_end)}
    manifest: list[Value] = [_manifest_row(entry) for entry in entries if entry["kind"] == "data_partition"]
    upstream: Value = json.loads(run.upstream) if run.upstream else None
    return {
        "schedule": {
            "id": run.ref,
            "namespace": run.namespace,
            "name": run.name,
            "version": run.version,
            "properties": dict(properties),
        },
        "job": {
            "id": run.id,
            "generation": run.generation,
            "created": format_instant(run.satisfied_at),
            "satisfied_at": format_instant(run.satisfied_at),
        },
        "run": {"id": run.id, "attempt": run.attempt},
        "trigger": run.trigger,
        "nominal": format_instant(run.nominal),
        "interval": interval,
        "correlation": run.correlation,
        "covered": covered,
        "manifest": manifest,
        "events": [_event_row(entry) for entry in entries if entry["kind"] == "event"],
        "ticks": [_tick_row(entry) for entry in sorted(filter(is_of_a_tick, entries), key=itemgetter("at"))],
        "missing": list(run.missing),
        "upstream": upstream,
    }


def _tick_row(entry: dict[str, Any]) -> dict[str, Value]:
    return {"instant": format_instant(entry["at"]), "leaf": entry["leaf"]}


def _event_row(entry: dict[str, Any]) -> dict[str, Value]:
    return {name: entry.get(name) for name in ("name", "subject", "data", "event_id", "origin")} | _mark(entry)


def _manifest_row(entry: dict[str, Any]) -> dict[str, Value]:
    return {
        "dataset": entry["dataset"],
        "partition": entry["partition"],
        "version": entry.get("version"),
        "bytes": entry.get("bytes"),
        "rows": entry.get("rows"),
        "event_id": entry.get("event_id"),
        "origin": entry.get("origin"),
        **_mark(entry),
    }


def _mark(entry: dict[str, Any]) -> dict[str, Value]:
    return {DEDUPE_UNKNOWN: True} if entry.get(DEDUPE_UNKNOWN) else {}
