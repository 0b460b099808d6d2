"""A composite that was not satisfied in time is aborted (SEMANTICS 6.6), once nothing that could prevent it is unread.

Downtime must not change results: evidence is judged by append times, so the decision waits until every topic partition of
the events topic has been read up to its end as of the deadline, at most 5 minutes; then the ledger row lists what
it did not wait for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_core.decisions.host import Host
from tidegate_core.decisions.inputs import TopicFacts
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.run_plane.definitions import spec_of
from tidegate_core.decisions.run_plane.jobs import end_evidence, write_ledger
from tidegate_core.effects import EndOffsets, Items, Read, ReadEndOffsets
from tidegate_core.records.run_plane import Evidence, Job, TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import EventTrigger

WATERMARK_PATIENCE_MS = 5 * 60_000
WATERMARK_LOOK_MS = 500


@dataclass(frozen=True, slots=True)
class ExpireEvidence:
    """Decides on a timer row of kind `E`.

    Attributes:
        unread: Topic partitions of the events topic that were not read in time, for the ledger.
    """

    row: TimerRow
    unread: tuple[int, ...] = ()
    stale: tuple[Key, ...] = ()
    name: str = "expire"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        ref, _ = self.row.ref.rsplit("#", 1)
        namespace, schedule = ref.split("/", 1)
        evidence = unit.record(Evidence, keys.evidence(unit.shard, namespace, schedule, self.row.detail or ""))
        unit.forget_row(self.row.key(unit.shard))
        if evidence is None or evidence.job or evidence.deadline != self.row.at:
            return
        spec = spec_of(unit, namespace, schedule, evidence.version)
        assert spec is not None
        assert isinstance(spec.trigger, EventTrigger)
        abort_evidence(unit, evidence, spec.trigger, now, self.unread)


def abort_evidence(
    unit: UnitOfWork, evidence: Evidence, trigger: EventTrigger, now: int, unread: tuple[int, ...] = ()
) -> None:
    """Ends evidence that did not become a job in time: ledger row in, evidence out."""
    detail = trigger.missing(evidence.counts) or ""
    if unread:
        detail += f"; did not wait for topic partitions {', '.join(map(str, unread))} of the events topic"
    job = Job(
        id=evidence.id,
        namespace=evidence.namespace,
        name=evidence.name,
        incarnation=evidence.incarnation,
        version=evidence.version,
        generation=0,
        state="pending_trigger",
        trigger="events",
        nominal=evidence.first_at,
        satisfied_at=now,
        deadline=now,
        correlation=evidence.correlation or None,
    )
    write_ledger(unit, job, "expired", "trigger_timeout", now, detail)
    end_evidence(unit, evidence)


def wait_for_watermark(host: Host) -> Operation[tuple[int, ...]]:
    """Waits until all events that are in the log now have been handed to the inboxes; returns who was not in time."""
    events = host.holding.events
    ends = yield from host.read_for_good(ReadEndOffsets(events.name))
    assert isinstance(ends, EndOffsets)
    give_up = host.now + WATERMARK_PATIENCE_MS
    while True:
        unread = yield from _unread(host, events, ends.offsets)
        if not unread or host.now >= give_up:
            return unread
        yield from host.sleep(WATERMARK_LOOK_MS)


def _unread(host: Host, events: TopicFacts, ends: Mapping[str, int]) -> Operation[tuple[int, ...]]:
    cluster = host.holding.cluster_id
    wanted = {each: keys.topic_position(cluster, events.id, each) for each in range(events.topic_partitions)}
    found = yield from host.read_for_good(Read(tuple(wanted.values())))
    assert isinstance(found, Items)
    behind: list[int] = []
    for topic_partition, key in wanted.items():
        position = found.found.get(key, {}).get("next", 0)
        assert isinstance(position, int)
        if position < ends.get(f"{events.id}/{topic_partition}", 0):
            behind.append(topic_partition)
    return tuple(behind)
