"""Sources as a cluster object: requests that create, change or delete an event source.

`ApplyClusterObject` runs the requests; this module decides them. A new source is opened in two steps. The first write lists it; then its owner
reads the end offsets of its topic; the second write names them as the first offsets that the source maps. If a schedule is activated between
the two writes, its owner finds the source in the list, and reads the end offsets of the topic as well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from tidegate_core.commands.cluster_object import (
    ApplyClusterObject,
    ClusterObjectKind,
    Facts,
    Transition,
    own_topics,
    store_end_offsets,
)
from tidegate_core.engine.end_offset_cache import SILENT
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import SourceApply, SourceDelete, SourceRequest
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem, RefusedRecord
from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.source_list import NO_SOURCES, Source, Sources, StoredSources
from tidegate_core.shard.events.end_offsets import ends_at_once, present_sources

SOURCES_MAX = 64
"""Sources of the cluster. A source has 5 KB at most, so they fit DynamoDB's 400 KB; each batch of their topics reads them."""
BODY_BYTES_MAX = 5_000
ITEM_BYTES_MAX = 350_000
"""Bytes of all sources as they are stored: quotes take two bytes each. Tombstones and the rest of the item have what is left of 400 KB."""
TOPIC_PARTITIONS_MAX = 8_000
"""Topic partitions of all sources together: the resume of a scope stores the end offset of each in one item, 42 bytes each."""
ASKED_TOGETHER_MAX = 64
"""Topics of waiting applies that are asked together with a topic that did not answer at once."""
TOMBSTONES_MAX = 64
TOMBSTONE_KEPT_MS = 8 * 86_400_000
"""How long a deleted source leaves a tombstone: longer than the requests topic keeps a request that is older than the delete."""


class SourceKind(ClusterObjectKind[Sources]):
    """All sources of the cluster, as one item."""

    name = SourceRequest.CLUSTER_OBJECT
    label = "move_sources"
    empty = NO_SOURCES
    record = StoredSources

    def value_of(self, stored: StoredSources) -> Sources:
        return stored.sources

    def about(self, request: SourceRequest) -> str:
        return keys.schedule_ref(request.namespace, request.name)

    def transition(
        self, before: Sources, request: SourceApply | SourceDelete, position: Position, facts: Facts
    ) -> Transition[Sources]:
        moved = _moved(before, request, position, facts)
        return moved if moved.after is before else replace(moved, after=_worth_keeping(moved.after, facts.now))

    def known_end_offsets(
        self, writer: ShardWriter, request: SourceApply | SourceDelete, arrived: int
    ) -> Problem | None:
        if isinstance(request, SourceDelete):
            return None
        topic = request.spec.topic
        if writer.host.readings.ends(topic, arrived) == {}:
            return _is_missing(topic)
        return _is_silent(topic) if writer.host.readings.fallback(topic, arrived) == SILENT else None

    def read_end_offsets(
        self, writer: ShardWriter, row: InboxRow, request: SourceApply, arrived: int, asked: int
    ) -> Operation[str | Problem]:
        """Reads the end offsets of the source's topic after the source was listed. Those of other sources count toward the limit only."""
        topic = request.spec.topic
        open_ones = [each for each in (yield from present_sources(writer.host)).entries if each.is_open]
        wanted = dict.fromkeys(sorted({each.topic for each in open_ones}), arrived)
        wanted[topic] = asked
        found = yield from ends_at_once(writer.host, wanted, topic)
        if not found.get(topic):
            return _is_missing(topic) if topic in found else _is_silent(topic)
        together = sum(map(len, found.values()))
        if together > TOPIC_PARTITIONS_MAX:
            had = f"would be read beside others: {together} topic partitions together, at most {TOPIC_PARTITIONS_MAX} are allowed"
            hint = "delete other sources first, or let a topic with fewer of them carry the announcements"
            return Problem("spec.topic", had, hint)
        return (yield from store_end_offsets(writer, f"source {row.origin}", found[topic]))

    def topics_to_ask(self, writer: ShardWriter, unanswered: Sequence[str]) -> Sequence[str]:
        """Adds the topics of applies that wait in the shard writer: a topic that does not answer takes seconds.

        A result of silent or missing serves the waiting applies. If a topic answers, each apply asks again: its end offsets must be newer.
        """
        topics = dict.fromkeys(unanswered)
        waiting = (each for each in writer.queued(ApplyClusterObject) if each.kind is self)
        for each in islice(waiting, ASKED_TOGETHER_MAX):
            try:
                request = parse_request(each.row.body.encode())
            except RefusedRecord:
                continue  # Its own turn answers it.
            if isinstance(request, SourceApply) and not request.spec.topic.startswith(own_topics(writer)):
                topics[request.spec.topic] = None
        return list(topics)


SOURCES: Final = SourceKind()


def _is_missing(topic: str) -> Problem:
    return Problem(
        "spec.topic", f'"{topic}" is no topic that the nodes can read', "create it first, and let the nodes read it"
    )


def _is_silent(topic: str) -> Problem:
    return Problem(
        "spec.topic", f'"{topic}" does not answer now', "apply again once all its topic partitions have a leader"
    )


# -- the transition ---------------------------------------------------------------------------------------------------------


def _moved(
    before: Sources, request: SourceApply | SourceDelete, position: Position, facts: Facts
) -> Transition[Sources]:
    entry = before.find(request.namespace, request.name)
    if entry is not None and entry.position > position.text():
        if entry.opened_by != facts.request_id:
            return Transition(status=ReceiptStatus.SUPERSEDED, after=before, version=_shown(entry))
        # A later record of the same request has begun to open the source, and its owner died before it answered.
        position = Position.parse(entry.position)
    if entry is None or entry.position != position.text():
        conflict = _conflict(request, entry)
        if conflict is not None:
            return Transition(status=ReceiptStatus.CONFLICT, after=before, version=_shown(entry), problems=(conflict,))
    if isinstance(request, SourceApply):
        return _applied(before, request, entry, position, facts)
    return _deleted(before, request, entry, position)


def _applied(
    before: Sources, request: SourceApply, entry: Source | None, position: Position, facts: Facts
) -> Transition[Sources]:
    body = request.spec.canonical_json()
    there = entry is not None and entry.is_there
    problems = _problems(before, request, entry, body, facts.own_topics)
    if problems:
        return Transition(status=ReceiptStatus.REJECTED, after=before, version=_shown(entry), problems=problems)
    if entry is not None and entry.is_open:
        if entry.body == body:
            touched = before.changed(replace(entry, position=position.text()))
            return Transition(status=ReceiptStatus.UNCHANGED, after=touched, version=entry.version)
        changed = replace(entry, position=position.text(), version=entry.version + 1, body=body)
        return Transition(status=ReceiptStatus.ACCEPTED, after=before.changed(changed), version=changed.version)
    listed = entry
    if listed is None or not there or listed.position != position.text():
        version = 1 if entry is None else entry.version + 1
        listed = Source(
            namespace=request.namespace,
            name=request.name,
            position=position.text(),
            version=version,
            body=body,
            opened_by=facts.request_id,
        )
    if facts.end_offsets is None:
        return Transition(status=None, after=before if listed is entry else before.changed(listed))
    if isinstance(facts.end_offsets, Problem):
        unlisted = before.changed(replace(listed, body=None, opened_by=None))
        return Transition(status=ReceiptStatus.REJECTED, after=unlisted, problems=(facts.end_offsets,))
    opened = replace(listed, vector=facts.end_offsets, opened=before.version + 1, opened_by=None)
    return Transition(status=ReceiptStatus.ACCEPTED, after=before.changed(opened), version=listed.version)


def _deleted(before: Sources, request: SourceDelete, entry: Source | None, position: Position) -> Transition[Sources]:
    """A delete leaves a tombstone even if there is no source: an older apply may arrive after it."""
    there = entry is not None and entry.is_there
    version = 0 if entry is None else entry.version
    tombstone = Source(namespace=request.namespace, name=request.name, position=position.text(), version=version)
    return Transition(
        status=ReceiptStatus.ACCEPTED if there else ReceiptStatus.NOT_FOUND,
        after=before.changed(tombstone),
        version=version or None,
        unused_vector=None if entry is None else entry.vector,
    )


def _problems(before: Sources, request: SourceApply, entry: Source | None, body: str, own: str) -> tuple[Problem, ...]:
    topic = request.spec.topic
    found: list[Problem] = []
    if topic.startswith(own):
        hint = "what is on the events topic is heard without a source"
        found.append(Problem("spec.topic", f'"{topic}" is tidegate\'s own', hint))
    if entry is not None and entry.is_open and entry.topic != topic:
        hint = "delete the source and apply it anew, or give the new one another name"
        found.append(Problem("spec.topic", f'cannot be changed from "{entry.topic}"', hint))
    if len(body.encode()) > BODY_BYTES_MAX:
        found.append(Problem("spec", f"has {len(body.encode())} bytes, at most {BODY_BYTES_MAX} can be kept"))
    if entry is None or not entry.is_there:
        others = sum(each.is_there for each in before.entries)
        if others >= SOURCES_MAX:
            found.append(Problem("name", f"would be one of more than {SOURCES_MAX} sources", "delete others first"))
    kept = [each.body for each in before.entries if each is not entry and each.body is not None]
    size = sum(len(json.dumps(each, ensure_ascii=False).encode()) for each in (*kept, body))
    if size > ITEM_BYTES_MAX:
        problem = f"has {size} bytes with all other sources, at most {ITEM_BYTES_MAX} can be kept"
        found.append(Problem("spec", problem, "shorten it, or delete others first"))
    return tuple(found)


def _conflict(request: SourceRequest, entry: Source | None) -> Problem | None:
    expected = request.expected_version
    present = _shown(entry) or 0
    if expected in (None, present) or (expected == "any" and present):
        return None
    is_now = f"is at version {present}" if present else "does not exist"
    return Problem("expected_version", f"is {expected}, the source {is_now}", "read it and decide anew")


def _shown(entry: Source | None) -> int | None:
    """Returns the version that users see: only an open source has one."""
    return entry.version if entry is not None and entry.is_open else None


def _worth_keeping(sources: Sources, now: int) -> Sources:
    """Drops tombstones that no older request can reach any more; if there are too many, the oldest first."""
    there = [each for each in sources.entries if each.is_there]
    gone = sorted((each for each in sources.entries if not each.is_there), key=lambda each: each.position)
    recent = [each for each in gone if Position.parse(each.position).append_time > now - TOMBSTONE_KEPT_MS]
    return replace(sources, entries=(*there, *recent[-TOMBSTONES_MAX:]))
