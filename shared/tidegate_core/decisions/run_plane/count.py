"""Events that reached the inbox are counted as evidence; enough of it makes a job (I3, SEMANTICS 5 and 6).

The inbox rows that are counted are deleted in the very transaction that moves the evidence: replayed rows are gone, and a
row that is there has not been counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tidegate_core.decisions.run_plane.definitions import spec_of
from tidegate_core.decisions.run_plane.expire import abort_evidence
from tidegate_core.decisions.run_plane.jobs import evidence_ref
from tidegate_core.model.facts import Fact, RunFact, fact_from_json
from tidegate_core.model.identity import run_id, seal_mark
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.codec import from_item
from tidegate_core.records.receipts import expiry
from tidegate_core.records.run_plane import Evidence, EvidenceChunk, InboxRow, Job, ScheduleState, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import EventTrigger

Entry = dict[str, Any]

CHUNK_TTL_DAYS = 30
"""Chunks are write-once and outlive their run; TTL removes them. Longer than anything waits (`pending_timeout`)."""
CHUNK_BYTES_MAX = 60_000
"""Below DESIGN's 64 KB a chunk; one entry is far smaller (an event is at most 1 MiB, but its facts are not kept whole)."""
ACTIONS_PER_CORRELATED_EVENT = 4
"""An event under a correlation key of its own: evidence, chunk, job, time-out."""
ACTIONS_OF_A_COUNT = 70
"""Below DynamoDB's 100 actions with the lease, the state and what else the group holds."""
INBOX_ROWS_PER_DECISION = 20
"""Inbox rows that one decision counts; each may hold several events of one schedule."""


@dataclass(frozen=True, slots=True)
class CountEvents:
    """Counts inbox rows of one schedule, oldest first."""

    ref: str
    rows: tuple[Key, ...]
    again: Callable[[tuple[Key, ...]], None]
    stale: tuple[Key, ...] = ()
    name: str = "count"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.ref.split("/", 1)
        state_key = keys.schedule_state(unit.shard, namespace, schedule)
        state = unit.record(ScheduleState, state_key)
        rows = [from_item(InboxRow, item) for item in unit.items(self.rows) if item is not None]
        spec = None
        if state is not None and state.status == "active":
            spec = spec_of(unit, namespace, schedule, state.version)
        trigger = None if spec is None else spec.trigger
        rows, rest = _affordable(rows, isinstance(trigger, EventTrigger) and trigger.correlate is not None)
        for row in rows:
            unit.delete(row.key(unit.shard))
        if rest:
            unit.after(lambda: self.again(tuple(row.key(unit.shard) for row in rest)))
        if state is None or spec is None or not isinstance(trigger, EventTrigger):
            return
        count = _Count(unit, state, spec, trigger, now)
        for row in rows:
            for matched in json.loads(row.body):
                # A match of an older generation: it was made before the update, so it is not for the new one.
                if (matched["incarnation"], matched["generation"]) == (state.incarnation, state.generation):
                    count.add(matched)
        count.close(state_key)


def _affordable(rows: list[InboxRow], correlated: bool) -> tuple[list[InboxRow], list[InboxRow]]:
    """Splits the rows into those that one transaction can count, at least one, and the rest."""
    cost = 0
    for number, row in enumerate(rows):
        events = len(json.loads(row.body))
        cost += 1 + (ACTIONS_PER_CORRELATED_EVENT * events if correlated else 1)
        if number and cost > ACTIONS_OF_A_COUNT:
            return rows[:number], rows[number:]
    return rows, []


class _Count:
    """One pass over matched events, collected per correlation so that each evidence item is written once."""

    def __init__(
        self, unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, trigger: EventTrigger, now: int
    ) -> None:
        self._unit = unit
        self._state = state
        self._spec = spec
        self._trigger = trigger
        self._now = now
        self._fresh: dict[str, list[Entry]] = {}
        self._seals = state.seals

    def add(self, matched: Entry) -> None:
        fact = fact_from_json(matched["fact"])
        leaf = self._trigger.leaves()[matched["leaf"]]
        key = leaf.accepts(fact, self._state.namespace)
        if key is None:
            return
        correlation = leaf.correlation_of(fact) if self._trigger.correlate else ""
        if isinstance(fact, RunFact) and leaf is self._trigger:
            # Fired by one run each: a second upstream run must not be absorbed by the job that waits for the first.
            correlation = fact.run_id
        self._fresh.setdefault(correlation, []).append(entry_of(fact, matched, key))

    def close(self, state_key: Key) -> None:
        for correlation, entries in self._fresh.items():
            for group in self._by_deadline(correlation, entries):
                self._extend(self._evidence(correlation, group[0]["at"]), group)
        if self._seals != self._state.seals:
            self._unit.put(replace(self._state, seals=self._seals), state_key)

    def _by_deadline(self, correlation: str, entries: list[Entry]) -> list[list[Entry]]:
        """Splits entries where the time-out of what they would add to lies between them.

        Evidence is judged by append times: an event behind the deadline belongs to the next evidence, however late either
        of them is counted.
        """
        evidence = self._stored(correlation)
        deadline = None if evidence is None or evidence.job else evidence.deadline
        if evidence is None or deadline is None or all(entry["at"] < deadline for entry in entries):
            return [entries]
        timely = [entry for entry in entries if entry["at"] < deadline]
        late = [entry for entry in entries if entry["at"] >= deadline]
        if timely:
            self._extend(evidence, timely)
        grown = self._stored(correlation)
        if grown is not None and not grown.job:
            abort_evidence(self._unit, grown, self._trigger, self._now)
        return [late]

    def _stored(self, correlation: str) -> Evidence | None:
        key = keys.evidence(self._unit.shard, self._state.namespace, self._state.name, correlation)
        evidence = self._unit.record(Evidence, key)
        return evidence if evidence is not None and evidence.version == self._state.version else None

    def _evidence(self, correlation: str, first_at: int) -> Evidence:
        stored = self._stored(correlation)
        if stored is not None:
            return stored
        self._seals += 1
        return self._opened(correlation, self._seals, first_at)

    def _opened(self, correlation: str, seal: int, first_at: int) -> Evidence:
        """New evidence; its id is that of the job that it will become."""
        mark = seal_mark(seal, correlation or None)
        job_id = run_id(self._unit.shard, self._state.incarnation, self._spec.trigger.type, mark)
        timeout = self._trigger.timeout_ms
        evidence = Evidence(
            id=job_id,
            namespace=self._state.namespace,
            name=self._state.name,
            incarnation=self._state.incarnation,
            version=self._state.version,
            correlation=correlation,
            counts=(0,) * len(self._trigger.leaves()),
            chunks=0,
            first_at=first_at,
            deadline=None if timeout is None else first_at + timeout,
        )
        if evidence.deadline is not None:
            ref = evidence_ref(evidence.namespace, evidence.name, correlation)
            row = TimerRow(at=evidence.deadline, kind="E", ref=ref, detail=correlation)
            self._unit.set_row(row, row.key(self._unit.shard))
        return evidence

    def _extend(self, evidence: Evidence, entries: list[Entry]) -> None:
        seen = seen_keys(self._unit, evidence)
        counts = list(evidence.counts)
        for entry in entries:
            # The same data partition again replaces its entry (the later chunk wins), the count stays.
            if (entry["leaf"], entry["key"]) not in seen:
                seen.add((entry["leaf"], entry["key"]))
                counts[entry["leaf"]] += 1
        chunks = evidence.chunks
        for group in _in_chunks(entries):
            chunk = EvidenceChunk(
                evidence_id=evidence.id, chunk=chunks, entries=group, expires_at=expiry(self._now, CHUNK_TTL_DAYS)
            )
            self._unit.put_new(chunk, chunk.key(self._unit.shard))
            chunks += 1
        grown = replace(evidence, counts=tuple(counts), chunks=chunks)
        if not grown.job and self._trigger.missing(counts) is None:
            grown = self._satisfied(grown, entries)
        self._unit.put(grown, grown.key(self._unit.shard))

    def _satisfied(self, evidence: Evidence, entries: list[Entry]) -> Evidence:
        """The job exists from now on and absorbs until its admission (`take: all`)."""
        if evidence.deadline is not None:
            ref = evidence_ref(evidence.namespace, evidence.name, evidence.correlation)
            self._unit.forget_row(keys.timer(self._unit.shard, evidence.deadline, "E", ref))
        upstream = _only_upstream(self._trigger, entries)
        job = Job(
            id=evidence.id,
            namespace=evidence.namespace,
            name=evidence.name,
            incarnation=evidence.incarnation,
            version=evidence.version,
            generation=self._state.generation,
            state="pending_constraint",
            trigger="events",
            nominal=self._now,
            satisfied_at=self._now,
            deadline=self._now + self._spec.pending_timeout,
            correlation=(evidence.correlation if self._trigger.correlate else (upstream or {}).get("correlation"))
            or None,
            evidence_id=evidence.id,
            evidence_correlation=evidence.correlation,
            upstream=None if upstream is None else json.dumps(upstream, sort_keys=True, separators=(",", ":")),
        )
        self._unit.put_new(job, job.key(self._unit.shard))
        return replace(evidence, deadline=None, job=True)


def _in_chunks(entries: list[Entry]) -> list[str]:
    """Returns the entries as JSON lists of at most `CHUNK_BYTES_MAX`."""
    chunks: list[list[str]] = [[]]
    size = 0
    for entry in entries:
        text = json.dumps(entry, separators=(",", ":"))
        if chunks[-1] and size + len(text) > CHUNK_BYTES_MAX:
            chunks.append([])
            size = 0
        chunks[-1].append(text)
        size += len(text) + 1
    return [f"[{','.join(chunk)}]" for chunk in chunks]


def seen_keys(unit: UnitOfWork, evidence: Evidence) -> set[tuple[int, str]]:
    """Returns (leaf, key) of every entry that was counted so far."""
    return {(entry["leaf"], entry["key"]) for entry in entries_of(unit, evidence.id, evidence.chunks)}


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


def _only_upstream(trigger: EventTrigger, entries: list[Entry]) -> Entry | None:
    """Returns the upstream run of a trigger that is fired by runs; of several the latest."""
    runs = [entry for entry in entries if entry["kind"] == "run"]
    if not runs:
        return None
    last = runs[-1]
    wanted = ("run_id", "attempt", "state", "namespace", "schedule", "args", "outputs", "correlation")
    return {name: last[name] for name in wanted}
