"""I3: each event counts exactly once for each schedule that was active when it came, in evidence and in programs' manifests.

What is no event has a dead letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.simulation.checks.evidence import holding
from tests.simulation.checks.fires import trigger_of
from tests.simulation.checks.request_history import SKEW_MS, Segment
from tests.simulation.users.schedule_definitions import NAMESPACE, needed_of
from tests.simulation.world.cluster import EVENTS, EVENTS_DLQ

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case, Entry
    from tests.simulation.users.schedule_users import Life
    from tests.simulation.world.observations import Body
    from tidegate_core.rows.evidence import Evidence


def check_events(case: Case) -> Iterator[str]:
    for life in case.lives:
        if life.definition.is_timed:
            continue
        yield from _check_counts(case, life)
        yield from _check_manifests(case, life)
        for evidence in case.open_evidence.get(life.name, []):
            yield from _check_open(case, life, evidence)
    yield from _check_dead_letters(case)


def _check_dead_letters(case: Case) -> Iterator[str]:
    """With its original bytes, wherever it was read; in a topic that was made anew it may never have been."""
    topics = case.world.cluster.broker.topics
    buried = {record.value for log in topics[EVENTS_DLQ].logs for record in log}
    for value, records in case.world.producers.broken_at.items():
        was_read = case.world.at_rest and any(each.topic_id == topics[EVENTS].id for each in records)
        if was_read and value not in buried:
            yield f"dead letters: broken event {value!r} has none, its records: {[each.text() for each in records]}"


def _mark(entry: Entry) -> str:
    told = entry.get("event_id") or entry.get("run_id") or entry["at"]  # A tick is its instant.
    return f"{entry['leaf']} {told}"


def _check_counts(case: Case, life: Life) -> Iterator[str]:
    times = Counter(_mark(entry) for entries in case.entries_of.get(life.name, {}).values() for entry in entries)
    for mark, number in times.items():
        if number > 1:
            yield f"I3: {life.name} counted {mark} {number} times"
    for mark in _surely_counted(case, life):
        if times[mark] == 0:
            yield f"I3: {life.name} never counted {mark}"
    segments = case.segments(life)
    for mark in times:
        announced = case.world.producers.announced.get(mark.split(" ", 1)[1])
        if announced is not None and not any(
            segment.maybe(instant) for instant in announced.appended for segment in segments
        ):
            yield f"I3: {life.name} counted {mark}, which came when it was not active"


def _surely_counted(case: Case, life: Life) -> Iterator[str]:
    """What came while the schedule was active, and stayed active: nothing may have discarded it."""
    last = [segment for segment in case.segments(life) if segment.end is None]
    if not last:
        return
    trigger = trigger_of(life, last[0])
    for number, leaf in enumerate(trigger.get("triggers", [trigger])):
        if leaf["type"] == "data_partitions":
            for announced in case.world.producers.announced.values():
                if announced.lost:
                    continue
                if announced.by_source and not _is_mapped(case, announced.appended[0]):
                    continue
                if announced.dataset != leaf["dataset"] or not _is_heard(case, last[0], announced.appended[0]):
                    continue
                if not case.was_left_halfway(announced):
                    yield f"{number} {announced.id}"
        elif leaf["type"] == "run_status":
            lost = {each.upstream for each in case.record.upstreams_of(life.name)}
            for row in case.rows_of.get(leaf["schedule"], []) if leaf["schedule"] not in lost else []:
                counts = row.state in leaf["states"] or (leaf["states"] == ["started"] and row.started_at is not None)
                if counts and _is_heard(case, last[0], (row.admitted_at or 0) - SKEW_MS):
                    yield f"{number} {row.job_id}"


def _is_mapped(case: Case, instant: int) -> bool:
    return any(user.is_mapped(instant) for user in case.world.sources)


def _is_heard(case: Case, segment: Segment, instant: int) -> bool:
    return segment.surely(instant) and case.wide.over_before(NAMESPACE, instant)


def _check_manifests(case: Case, life: Life) -> Iterator[str]:
    seen: Counter[str] = Counter()
    counted = set[str]()
    for body in case.record.bodies:
        if body.schedule == life.name and body.context["trigger"] == "events":
            entries = case.entries_of.get(life.name, {}).get(body.run_id, [])
            told = sorted(str(row["event_id"]) for row in body.manifest())
            yield from _check_told(case, body, told, entries)
            if body.run_id not in counted:  # A further attempt is told the same.
                seen.update(told)
            counted.add(body.run_id)
    for event, number in seen.items():
        if number > 1:
            yield f"I3: {number} programs of {life.name} were told of {event}"


def _check_told(case: Case, body: Body, told: list[str], entries: list[Entry]) -> Iterator[str]:
    trigger, name = case.shape_of(body).trigger, f"{body.run_id} of {body.schedule}"
    if told != sorted(str(entry["event_id"]) for entry in holding(entries) if entry["kind"] == "data_partition"):
        yield f"I3: {name} was told of {told}, its evidence is {entries}"
    with_less = "at_least_every" in trigger and body.context["missing"]
    if trigger["type"] == "data_partitions" and len(told) < trigger["count"] and not with_less:
        yield f"I3: {name} fired with {len(told)} of {trigger['count']}"
    if trigger.get("correlate") and told != [f"{dataset}/{body.context['correlation']!s}" for dataset in "bc"]:
        yield f"I3: {name} for {body.context['correlation']!s} was told of {told}"
    if trigger["type"] == "run_status":
        upstream = body.context["upstream"]
        runs = [entry["run_id"] for entry in entries]
        if not isinstance(upstream, dict) or [upstream["run_id"]] != runs:
            yield f"I3: {name} was told of {upstream!r} upstream, its evidence is of {runs}"


def _check_open(case: Case, life: Life, evidence: Evidence) -> Iterator[str]:
    """At rest no evidence is left that would do: its job would have to exist, and that would not be rest."""
    trigger = case.shape(life, evidence.version).trigger
    leaves, needed = needed_of(trigger)
    held = [count >= leaf.get("count", 1) for count, leaf in zip(evidence.counts, leaves, strict=True)]
    if evidence.job or sum(held) >= needed:
        yield f"liveness: {life.name} has evidence {evidence.counts} for {trigger} and no run came of it"
