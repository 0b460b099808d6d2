"""The evidence log: entries of counted events, in write-once chunks of JSON."""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.language.events.events import CustomEvent
from tidegate_core.language.events.trigger_facts import Fact, RunFact
from tidegate_core.language.triggers.latches import Counted, Latches, Moment
from tidegate_core.language.triggers.trigger import LeafTrigger
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Batch, Delete
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.writes.unit_of_work import UnitOfWork

Entry: TypeAlias = dict[str, Any]

CHUNK_BYTES_MAX = 60_000
"""Bytes of a chunk with small entries, below the limit of 64 KB.

The entry of a run has arguments and outputs, and its own chunk.
"""
EVENT_DATA_BYTES_MAX = 2_048
"""Bytes of a custom event's data in the job's context, which may hold thousands of events."""
STILL = "still"
"""Field: total time for which the schedule's clocks were stopped at the append, in ms; absent when 0."""
TICK = "tick"
"""Kind of the entry of a tick."""
DEDUPE_UNKNOWN = "dedupe_unknown"
"""Field: the id of this event was counted before, beyond the horizon of repeats. So it may be a repeat or not."""
FORGET = "forget"
"""Kind of a line that is no event: a latch has expired."""


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


def chunk_range(evidence_id: str) -> tuple[str, str]:
    return f"{keys.EVIDENCE_CHUNK_PREFIX}{evidence_id}#", f"{keys.EVIDENCE_CHUNK_PREFIX}{evidence_id}#{keys.LAST}"


def chunks_of(unit: UnitOfWork, evidence_id: str, chunks: int) -> list[str]:
    """Returns all chunks of evidence in the order of counting, as JSON lists of entries."""
    if chunks == 0:
        return []
    return [str(item["entries"]) for item in unit.range(*chunk_range(evidence_id))[:chunks]]


def merged_entries(chunks: list[str]) -> list[Entry]:
    """Returns the entries of chunks in order; of those with equal leaf and key only the one appended last."""
    return merged(entry for chunk in chunks for entry in json.loads(chunk))


def merged(log: Iterable[Entry]) -> list[Entry]:
    """Returns the valid entries of a log: without replaced, withdrawn and forgotten ones."""
    return [versions[-1] for versions in _holding(log)]


def with_former_versions(log: Iterable[Entry]) -> list[Entry]:
    """Returns the valid entries of a log, each preceded by the entries that it replaced."""
    return [entry for versions in _holding(log) for entry in versions]


def _holding(log: Iterable[Entry]) -> list[list[Entry]]:
    """Follows the automaton (`language/triggers/latches.py`): append times decide, not the order of reading."""
    latest: dict[tuple[int, str], list[Entry]] = {}
    taken_back: dict[tuple[int, str | None], Moment] = {}
    for entry in log:
        leaf, about, at = entry["leaf"], entry.get("partition"), moment_of(entry)
        if entry.get("kind") == FORGET:
            latest = {place: versions for place, versions in latest.items() if place[0] != leaf}
            continue
        if entry.get("gone") or entry.get("anew"):
            taken_back[leaf, about] = max(at, taken_back.get((leaf, about), at))
            for place in [each for each in latest if each[0] == leaf and latest[each][-1].get("partition") == about]:
                latest[place] = [each for each in latest[place] if moment_of(each) > at]
                if not latest[place]:
                    del latest[place]
        if not entry.get("gone") and at >= taken_back.get((leaf, about), at):
            insort(latest.setdefault((leaf, entry["key"]), []), entry, key=moment_of)
    return list(latest.values())


def forgetting(leaf: int, at: int) -> Entry:
    """Returns the line of the log that invalidates everything that the leaf has counted."""
    return {"leaf": leaf, "key": "", "at": at, "kind": FORGET}


def tick_entry(leaf: int, at: int) -> Entry:
    """Returns the entry of a tick of a time leaf."""
    return {"leaf": leaf, "key": TICK, "at": at, "kind": TICK}


def is_of_a_tick(entry: Entry) -> bool:
    return entry.get("kind") == TICK


def before(entries: Iterable[Entry], instant: int) -> list[Entry]:
    """Returns the entries that were appended before an instant."""
    return [entry for entry in entries if entry["at"] < instant]


def on_the_clock(entry: Entry) -> int:
    """Returns the append time on the clock of the schedule's time-outs, which stops in `hold` and `freeze`."""
    return int(entry["at"]) - int(entry.get(STILL, 0))


def moment_of(entry: Entry) -> Moment:
    """Returns the position in the order of append times, also within a suspension."""
    return on_the_clock(entry), int(entry["at"])


def counted_of(entry: Entry) -> Counted:
    """Returns an entry in the automaton's form."""
    return Counted(
        leaf=entry["leaf"],
        key=entry["key"],
        at=on_the_clock(entry),
        weight=entry.get("weight", 1),
        about=entry.get("partition", ""),
        gone=entry.get("gone", False),
        anew=entry.get("anew", False),
        appended=entry["at"],
    )


def replayed(latches: Latches, log: Iterable[Entry]) -> Latches:
    """Advances the automaton by the log."""
    for entry in log:
        if entry.get("kind") == FORGET:
            latches.forget(entry["leaf"])
        else:
            latches.add(counted_of(entry))
    return latches


def entry_of(fact: Fact, matched: Entry, leaf: LeafTrigger, key: str) -> Entry:
    """Returns the entry of an event, with the data that automaton, manifest and templates need."""
    entry: Entry = {"leaf": matched["leaf"], "key": key, "at": matched["at"], "origin": matched["origin"]}
    weight = leaf.weight_of(fact)
    if weight != 1:
        entry["weight"] = weight
    if matched.get(DEDUPE_UNKNOWN):
        entry[DEDUPE_UNKNOWN] = True
    if leaf.takes_back(fact):
        entry["gone"] = True
    elif leaf.starts_anew(fact):
        entry["anew"] = True
    return {**entry, **_told(fact)}


def _told(fact: Fact) -> Entry:
    if isinstance(fact, RunFact):
        run = {"run_id": fact.run_id, "attempt": fact.attempt, "state": fact.state, "schedule": fact.schedule}
        return {
            "kind": "run",
            **run,
            "args": list(fact.args),
            "outputs": fact.outputs,
            "correlation": fact.correlation,
            "namespace": fact.namespace,
        }
    if isinstance(fact, CustomEvent):
        # A reader that needs larger data reads it from the log at `origin`.
        small = len(as_json(fact.data).encode()) <= EVENT_DATA_BYTES_MAX
        data = fact.data if small else None
        return {"kind": "event", "name": fact.type, "subject": fact.subject, "data": data, "event_id": fact.id}
    return {
        "kind": "data_partition",
        "dataset": fact.dataset,
        "partition": fact.data_partition,
        "version": fact.version,
        "bytes": fact.bytes,
        "rows": fact.rows,
        "event_id": fact.id,
    }


def upstream_of(entries: Sequence[Entry]) -> Entry | None:
    """Returns the upstream run of a trigger on runs; the latest of several."""
    runs = [entry for entry in entries if entry["kind"] == "run"]
    if not runs:
        return None
    last = max(runs, key=lambda entry: int(entry["at"]))
    wanted = ("run_id", "attempt", "state", "namespace", "schedule", "args", "outputs", "correlation")
    return {name: last[name] for name in wanted}


CHUNKS_PER_BATCH: Final = 1_000


def clean_up(host: ActorContext, shard: int, row: TimerRow) -> Operation[None]:
    """Removes the chunks of evidence that ended long ago.

    The timer row is removed last, so that a successor can finish.
    """
    chunks = range(int(row.detail or "0"))
    for first in chunks[::CHUNKS_PER_BATCH]:
        page = chunks[first : first + CHUNKS_PER_BATCH]
        deletes = tuple(Delete(keys.evidence_chunk(shard, row.ref, chunk)) for chunk in page)
        yield from host.write_for_good(Batch("clean_up", deletes))
    yield from host.write_for_good(Batch("clean_up", (Delete(row.key(shard)),)))
