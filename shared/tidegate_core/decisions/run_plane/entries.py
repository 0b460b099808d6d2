"""Entries of evidence: what is kept of each event that was counted, in write-once chunks of JSON (DESIGN 7)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from tidegate_core.model.facts import Fact, RunFact
from tidegate_core.store import keys
from tidegate_core.transactions.unit_of_work import UnitOfWork

Entry: TypeAlias = dict[str, Any]

CHUNK_BYTES_MAX = 60_000
"""Below DESIGN's 64 KB a chunk, where entries are small; a run's has its arguments and outputs, and a chunk of its own."""


def as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def in_chunks(entries: list[Entry]) -> list[str]:
    """Returns the entries as JSON lists of at most `CHUNK_BYTES_MAX`."""
    chunks: list[list[str]] = [[]]
    size = 0
    for entry in entries:
        text = as_json(entry)
        length = len(text.encode()) + 1
        if chunks[-1] and size + length > CHUNK_BYTES_MAX:
            chunks.append([])
            size = 0
        chunks[-1].append(text)
        size += length
    return [f"[{','.join(chunk)}]" for chunk in chunks]


def entries_of(unit: UnitOfWork, evidence_id: str, chunks: int) -> list[Entry]:
    """Returns the entries of the first `chunks` chunks; a later entry of the same leaf and key replaces an earlier one."""
    if chunks == 0:
        return []
    low, high = chunk_range(evidence_id)
    items = unit.range(low, high)
    return merged_entries([str(item["entries"]) for item in items[:chunks]])


def chunk_range(evidence_id: str) -> tuple[str, str]:
    return f"EC#{evidence_id}#", f"EC#{evidence_id}#{keys.LAST}"


def merged_entries(chunks: list[str]) -> list[Entry]:
    """Returns the entries of chunks in order; a later one of the same leaf and key replaces an earlier one."""
    latest: dict[tuple[int, str], Entry] = {}
    for chunk in chunks:
        for entry in json.loads(chunk):
            latest[(entry["leaf"], entry["key"])] = entry
    return list(latest.values())


def entry_of(fact: Fact, matched: Entry, key: str) -> Entry:
    """Returns what is kept of an event: what the manifest shows and the templates need."""
    entry: Entry = {"leaf": matched["leaf"], "key": key, "at": matched["at"], "origin": matched["origin"]}
    if isinstance(fact, RunFact):
        run = {"run_id": fact.run_id, "attempt": fact.attempt, "state": fact.state, "schedule": fact.schedule}
        return {
            **entry,
            "kind": "run",
            **run,
            "args": list(fact.args),
            "outputs": fact.outputs,
            "correlation": fact.correlation,
            "namespace": fact.namespace,
        }
    return {
        **entry,
        "kind": "data_partition",
        "dataset": fact.dataset,
        "partition": fact.data_partition,
        "version": fact.version,
        "bytes": fact.bytes,
        "rows": fact.rows,
        "event_id": fact.id,
    }


def upstream_of(entries: Sequence[Entry]) -> Entry | None:
    """Returns the upstream run of a trigger that is fired by runs; of several the latest."""
    runs = [entry for entry in entries if entry["kind"] == "run"]
    if not runs:
        return None
    last = max(runs, key=lambda entry: int(entry["at"]))
    wanted = ("run_id", "attempt", "state", "namespace", "schedule", "args", "outputs", "correlation")
    return {name: last[name] for name in wanted}
