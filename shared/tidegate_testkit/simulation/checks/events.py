"""I3: each event counts exactly once for each schedule that was active when it came, in evidence and in programs' manifests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import Evidence
from tidegate_testkit.simulation.checks.history import SKEW_MS, all_rows, segments_of, steps_of

if TYPE_CHECKING:
    from tidegate_testkit.simulation.schedules import Life
    from tidegate_testkit.simulation.world import World


@dataclass(slots=True)
class _Counted:
    """What a schedule has counted, by evidence (which bears its job's id)."""

    entries: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def times(self) -> Counter[str]:
        return Counter(_mark(entry) for entries in self.entries.values() for entry in entries)


def check_events(world: World) -> Iterator[str]:
    counted = _counted(world)
    open_evidence = [
        from_item(Evidence, item) for item in world.cluster.store.memory.items() if str(item["sk"]).startswith("E#")
    ]
    for user in world.users:
        if user.life.definition.is_timed:
            continue
        mine = counted.get(user.life.name, _Counted())
        yield from _check_counts(world, user.life, mine)
        yield from _check_manifests(world, user.life, mine)
        for evidence in open_evidence:
            if evidence.name == user.life.name:
                yield from _check_open(user.life, evidence)


def _counted(world: World) -> dict[str, _Counted]:
    """Reads the write-once chunks; which schedule they are of was seen when they were written."""
    counted: dict[str, _Counted] = {}
    for item in world.cluster.store.memory.items():
        if str(item["sk"]).startswith("EC#"):
            evidence_id = str(item["evidence_id"])
            name = world.cluster.record.evidence[evidence_id]
            entries = counted.setdefault(name, _Counted()).entries.setdefault(evidence_id, [])
            entries.extend(json.loads(str(item["entries"])))
    return counted


def _mark(entry: dict[str, Any]) -> str:
    return f"{entry['leaf']} {entry.get('event_id') or entry.get('run_id')}"


def _check_counts(world: World, life: Life, mine: _Counted) -> Iterator[str]:
    times = mine.times()
    for mark, number in times.items():
        if number > 1:
            yield f"I3: {life.name} counted {mark} {number} times"
    for mark in _surely_counted(world, life):
        if times[mark] == 0:
            yield f"I3: {life.name} never counted {mark}"
    segments = segments_of(steps_of(life))
    for mark in times:
        announced = world.producers.announced.get(mark.split(" ", 1)[1])
        if announced is not None and not any(
            segment.maybe(instant) for instant in announced.appended for segment in segments
        ):
            yield f"I3: {life.name} counted {mark}, which came when it was not active"


def _surely_counted(world: World, life: Life) -> Iterator[str]:
    """What came while the schedule was active, and stayed active: nothing may have discarded it."""
    last = [segment for segment in segments_of(steps_of(life)) if segment.end is None]
    if not last:
        return
    trigger = life.definition.trigger
    leaves = trigger.get("triggers", [trigger])
    for number, leaf in enumerate(leaves):
        if leaf["type"] == "data_partitions":
            for announced in world.producers.announced.values():
                if announced.dataset == leaf["dataset"] and last[0].surely(announced.appended[0]):
                    yield f"{number} {announced.id}"
        else:
            for row in all_rows(world):
                admitted = row.admitted_at or 0
                listened = row.name == leaf["schedule"] and row.state in leaf["states"]
                if listened and last[0].surely(admitted - SKEW_MS):
                    yield f"{number} {row.job_id}"


def _check_manifests(world: World, life: Life, mine: _Counted) -> Iterator[str]:
    trigger = life.definition.trigger
    seen: Counter[str] = Counter()
    for body in world.cluster.record.bodies:
        if body.schedule != life.name or body.context["trigger"] != "events":
            continue
        entries = mine.entries.get(body.run_id, [])
        told = sorted(str(row["event_id"]) for row in body.manifest())
        upstream = body.context["upstream"]
        if told != sorted(str(entry["event_id"]) for entry in entries if entry["kind"] == "data_partition"):
            yield f"I3: {body.run_id} of {life.name} was told of {told}, its evidence is {entries}"
        if trigger["type"] == "data_partitions" and len(told) < trigger["count"]:
            yield f"I3: {body.run_id} of {life.name} fired with {len(told)} of {trigger['count']}"
        if trigger["type"] == "all_of" and told != [f"{dataset}/{body.context['correlation']!s}" for dataset in "bc"]:
            yield f"I3: {body.run_id} of {life.name} for {body.context['correlation']!s} was told of {told}"
        if trigger["type"] == "run_status" and not isinstance(upstream, dict):
            yield f"I3: {body.run_id} of {life.name} was told of no upstream run"
        seen.update(told)
    for event, number in seen.items():
        if number > 1:
            yield f"I3: {number} programs of {life.name} were told of {event}"


def _check_open(life: Life, evidence: Evidence) -> Iterator[str]:
    """At rest no evidence is left that would do: its job would have to exist, and that would not be rest."""
    trigger = life.definition.trigger
    needed = [leaf.get("count", 1) for leaf in trigger.get("triggers", [trigger])]
    if evidence.job or all(count >= need for count, need in zip(evidence.counts, needed, strict=True)):
        yield f"liveness: {life.name} has evidence {evidence.counts} of {needed} and no run came of it"
