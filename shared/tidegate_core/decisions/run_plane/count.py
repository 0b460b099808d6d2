"""Events that reached the inbox are counted as evidence; enough of it makes a job (I3, SEMANTICS 5 and 6).

The inbox rows that are counted are deleted in the very transaction that moves the evidence: replayed rows are gone, and a
row that is there has not been counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidegate_core.decisions.run_plane.definitions import spec_of
from tidegate_core.decisions.run_plane.entries import Entry, as_json, entries_of, entry_of, in_chunks, upstream_of
from tidegate_core.decisions.run_plane.expire import expire_evidence
from tidegate_core.decisions.run_plane.hearing import heard_since_resume
from tidegate_core.decisions.run_plane.jobs import clean_up_later, end_evidence, evidence_ref
from tidegate_core.decisions.run_plane.standing import fires, present_evidence, stopped
from tidegate_core.model.facts import RunFact, fact_from_json
from tidegate_core.model.identity import run_id, seal_mark
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import Evidence, EvidenceChunk, InboxRow, Job, ScheduleState, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import EventTrigger

ACTIONS_PER_EVENT = 6
"""One that comes behind the time-out of what waits: that evidence with its ledger row, time-out and clean-up, then the new
evidence's chunk and time-out."""
ACTIONS_PER_DECISION = 85
"""Below DynamoDB's 100 actions with the lease and the state."""


@dataclass(frozen=True, slots=True)
class CountEvents:
    """Counts inbox rows of one schedule, oldest first."""

    ref: str
    rows: tuple[Key, ...]
    stale: tuple[Key, ...] = ()
    name: str = "count"

    @property
    def about(self) -> str:
        return self.rows[0].sk if len(self.rows) == 1 else self.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.ref.split("/", 1)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        rows = [from_item(InboxRow, item) for item in unit.items(self.rows) if item is not None]
        for row in rows:
            unit.delete(row.key(unit.shard))
        if state is None or not fires(state) or unit.controls.covers(namespace):
            return
        spec = spec_of(unit, namespace, schedule, state.version)
        if spec is None or not isinstance(spec.trigger, EventTrigger):
            return
        count = _Count(unit, state, spec, spec.trigger, now)
        for row in rows:
            fact = None
            for matched in json.loads(row.body):
                fact = matched.setdefault("fact", fact)  # Leaves that heard the same fact have it once.
                # A match of an older generation: it was made before the update, so it is not for the new one.
                if (matched["incarnation"], matched["generation"]) == (state.incarnation, state.generation):
                    count.add(matched)
        count.close()


def in_decisions(rows: Iterable[tuple[Key, InboxRow]]) -> list[tuple[Key, ...]]:
    """Cuts a schedule's inbox rows into what one decision can count, in the order of their events' append times."""
    groups: list[list[Key]] = []
    cost = ACTIONS_PER_DECISION
    for times, key in sorted((_append_times(row), key) for key, row in rows):
        actions = 1 + ACTIONS_PER_EVENT * len(times)
        if cost + actions > ACTIONS_PER_DECISION:
            groups.append([])
            cost = 0
        groups[-1].append(key)
        cost += actions
    return [tuple(group) for group in groups]


def _append_times(row: InboxRow) -> list[int]:
    try:
        return sorted(int(matched["at"]) for matched in json.loads(row.body))
    except (ValueError, TypeError, KeyError):
        return []  # Whoever counts it fails, and it alone.


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
        self._rows_at: dict[
            str, int | None
        ] = {}  # Where the time-outs' rows stand; the clocks may have stood still since.
        self._seals = state.seals
        self._heard = heard_since_resume(unit, state.namespace)

    def add(self, matched: Entry) -> None:
        leaves = self._trigger.leaves()
        if matched["leaf"] >= len(leaves):
            return  # From an index row of a request that came to nothing.
        fact = fact_from_json(matched["fact"])
        if not self._heard(fact, matched):
            return
        leaf = leaves[matched["leaf"]]
        key = leaf.accepts(fact, self._state.namespace)
        if key is None:
            return
        correlation = leaf.correlation_of(fact) if self._trigger.correlate else ""
        if isinstance(fact, RunFact) and leaf is self._trigger:
            # Fired by one run each: a second upstream run must not be absorbed by the job that waits for the first.
            correlation = fact.run_id
        self._fresh.setdefault(correlation, []).append(entry_of(fact, matched, key))

    def close(self) -> None:
        for correlation, entries in self._fresh.items():
            self._fold(correlation, sorted(entries, key=lambda entry: int(entry["at"])))
        if self._seals != self._state.seals:
            self._unit.put(replace(self._state, seals=self._seals), self._state.key(self._unit.shard))

    # -- evidence -----------------------------------------------------------------------------------------------------

    def _fold(self, correlation: str, entries: list[Entry]) -> None:
        """Adds entries in the order of their append times.

        Evidence is judged by append times: what lies behind its time-out belongs to the next evidence, however late and
        in whatever company it is counted.
        """
        stored = self._stored(correlation)
        held = stored
        entries = self._without_older(stored, entries)
        while entries:
            if held is None:
                held = self._opened(correlation, entries[0]["at"])
            timely = [entry for entry in entries if held.deadline is None or entry["at"] < held.deadline]
            if timely:
                held = self._grown(held, timely)
                entries = entries[len(timely) :]
            else:
                self._give_up(held, stored)
                held = None
        if held is not None and held is not stored:
            self._keep(held, stored)

    def _without_older(self, stored: Evidence | None, entries: list[Entry]) -> list[Entry]:
        """Returns the entries less those that are further before the stored evidence than its time-out.

        They were read late, from another topic partition. Paired with it they would fire a pair that nobody wants.
        """
        timeout = self._trigger.timeout_ms
        if stored is None or stored.job or timeout is None:
            return entries
        while entries and entries[0]["at"] + timeout <= stored.first_at:
            first_at = entries[0]["at"]
            older = [entry for entry in entries if entry["at"] < first_at + timeout]
            alone = self._grown(self._opened(stored.correlation, first_at), older, sealed=True)
            if not alone.job:
                self._give_up(alone, stored)
            entries = entries[len(older) :]
        return entries

    def _stored(self, correlation: str) -> Evidence | None:
        key = keys.evidence(self._unit.shard, self._state.namespace, self._state.name, correlation)
        evidence = self._unit.record(Evidence, key)
        if evidence is None:
            return None
        self._rows_at[evidence.id] = evidence.deadline
        present = present_evidence(self._state, evidence, self._now)
        return present if present.version == self._state.version else None

    def _opened(self, correlation: str, first_at: int) -> Evidence:
        """New evidence; its id is that of the job that it will become."""
        self._seals += 1
        mark = seal_mark(self._seals, correlation or None)
        timeout = self._trigger.timeout_ms
        return Evidence(
            id=run_id(self._unit.shard, self._state.incarnation, self._spec.trigger.type, mark),
            namespace=self._state.namespace,
            name=self._state.name,
            incarnation=self._state.incarnation,
            version=self._state.version,
            correlation=correlation,
            counts=(0,) * len(self._trigger.leaves()),
            chunks=0,
            first_at=first_at,
            deadline=None if timeout is None else first_at + timeout,
            stopped=stopped(self._state, self._now),
        )

    def _grown(self, evidence: Evidence, entries: list[Entry], *, sealed: bool = False) -> Evidence:
        """Writes the entries; once they are enough the job exists, and absorbs until its admission (`take: all`)."""
        known = entries_of(self._unit, evidence.id, evidence.chunks)
        seen = {(entry["leaf"], entry["key"]) for entry in known}
        counts = list(evidence.counts)
        for entry in entries:
            # The same data partition again replaces its entry (the later chunk wins), the count stays.
            if (entry["leaf"], entry["key"]) not in seen:
                seen.add((entry["leaf"], entry["key"]))
                counts[entry["leaf"]] += 1
        chunks = evidence.chunks
        for group in in_chunks(entries):
            chunk = EvidenceChunk(evidence_id=evidence.id, chunk=chunks, entries=group)
            self._unit.put_new(chunk, chunk.key(self._unit.shard))
            chunks += 1
        grown = replace(evidence, counts=tuple(counts), chunks=chunks)
        if grown.job or self._trigger.missing(counts) is not None:
            return grown
        job = self._job(grown, upstream_of([*known, *entries]))
        self._unit.put_new(replace(job, chunks=chunks if sealed else None), job.key(self._unit.shard))
        return replace(grown, deadline=None, job=True)

    def _job(self, evidence: Evidence, upstream: Entry | None) -> Job:
        return Job(
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
            stopped=stopped(self._state, self._now),
            correlation=(evidence.correlation if self._trigger.correlate else (upstream or {}).get("correlation"))
            or None,
            evidence_id=evidence.id,
            evidence_correlation=evidence.correlation,
            upstream=None if upstream is None else as_json(upstream),
        )

    def _give_up(self, evidence: Evidence, stored: Evidence | None) -> None:
        """It did not become a job in time."""
        expire_evidence(self._unit, evidence, self._trigger, self._now)
        if stored is not None and evidence.id == stored.id:
            end_evidence(self._unit, stored, self._now)
        else:
            clean_up_later(self._unit, evidence.id, evidence.chunks, self._now)

    def _keep(self, evidence: Evidence, stored: Evidence | None) -> None:
        self._unit.put(evidence, evidence.key(self._unit.shard))
        before = self._rows_at[evidence.id] if stored is not None and stored.id == evidence.id else None
        if evidence.deadline == before:
            return
        ref = evidence_ref(evidence.namespace, evidence.name, evidence.correlation)
        if before is not None:
            self._unit.forget_row(keys.timer(self._unit.shard, before, "E", ref))
        if evidence.deadline is not None:
            row = TimerRow(at=evidence.deadline, kind="E", ref=ref, detail=evidence.correlation)
            self._unit.set_row(row, row.key(self._unit.shard))
