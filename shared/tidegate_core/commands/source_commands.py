"""Requests on sources, where their item lies: the owner of the home shard moves it by compare-and-set (decision 19).

A new source is opened in two steps: it is listed, its topic's ends are read, then they are named as the first offsets that
it maps. Who activates a schedule in between finds it listed and reads the topic's ends as well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.engine.end_offset_cache import SILENT
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import Request, SourceApply, SourceDelete, SourceRequest
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem, RefusedRecord
from tidegate_core.rows import keys
from tidegate_core.rows.effects import WakeUp
from tidegate_core.rows.source_list import NO_SOURCES, Source, Sources, StoredSources
from tidegate_core.rows.store_operations import Batch, Key, Put
from tidegate_core.shard.events.end_offsets import ends_at_once, present_sources
from tidegate_core.shard.events.subscription_index import vector_item
from tidegate_core.writes.unit_of_work import UnitOfWork

SOURCES_MAX = 64
"""Of the cluster: with 5 KB each at most they fit DynamoDB's 400 KB, and are read with each batch of their topics."""
BODY_BYTES_MAX = 5_000
ITEM_BYTES_MAX = 350_000
"""Of all sources as they are stored, where quotes take two bytes each; tombstones and answers have the rest of 400 KB."""
TOPIC_PARTITIONS_MAX = 8_000
"""Of all sources' topics together: a wide resume names the end of each in one item, 42 bytes each."""
ASKED_TOGETHER_MAX = 64
"""Topics of applies that wait, asked beside one that does not answer at once."""
TOMBSTONES_MAX = 64
TOMBSTONE_KEPT_MS = 8 * 86_400_000
"""Longer than the requests topic keeps what could be older than the delete."""


@dataclass(frozen=True, slots=True)
class ApplySource(ApplyRequest):
    """Applies a request on a source; what it comes to is poked to all holders, which look every few seconds as well.

    Attributes:
        listed: How many readings of topics' ends had begun once its source was listed: only later ones serve it. Empty before that.
    """

    listed: list[int] = field(default_factory=list, compare=False)

    def run(self, lane: ShardWriter) -> Operation[None]:
        body = yield from self._receipt_once_told(lane)
        for shard in range(lane.host.holding.topic_partitions):
            lane.host.emit(WakeUp(shard, controls=True))  # Holder p has shard p.
        self.announce(self.row, body)

    def _topics_to_ask(self, lane: ShardWriter, untold: Sequence[str]) -> Sequence[str]:
        """Who does not answer takes seconds: so the topics of applies behind this one are asked with its own.

        What is found out of one that is silent, or not there, serves them; one that tells its ends is asked again by whom it is for.
        """
        topics = dict.fromkeys(untold)
        for each in islice(lane.queued(ApplySource), ASKED_TOGETHER_MAX):
            try:
                request = parse_request(each.row.body.encode())
            except RefusedRecord:
                continue  # It is answered when it has its turn.
            if isinstance(request, SourceApply) and not request.spec.topic.startswith(own_topics(lane)):
                topics[request.spec.topic] = None
        return list(topics)

    def _apply(self, lane: ShardWriter, request: Request, request_id: str, outcome: Outcome) -> Operation[None]:
        assert isinstance(request, SourceApply | SourceDelete)
        position = Position.parse(self.row.origin)
        known = _told_nothing(lane, request.spec.topic, self.arrived) if isinstance(request, SourceApply) else None
        yield from lane.decide_alone(MoveSources(request, request_id, position, known, own_topics(lane), outcome))
        if outcome.receipt is None:
            assert isinstance(request, SourceApply)
            if not self.listed:
                self.listed.append(lane.host.readings.begun)
            first = yield from self._first_offsets(lane, request, self.listed[0])
            opening = MoveSources(request, request_id, position, first, own_topics(lane), outcome)
            yield from lane.decide_alone(opening)

    def _first_offsets(self, lane: ShardWriter, request: SourceApply, listed: int) -> Operation[str | Problem]:
        """Stores the topic's ends, read after the source was listed, or returns why it has none."""
        topic = request.spec.topic
        open_ones = [each for each in (yield from present_sources(lane.host)).entries if each.is_open]
        wanted = dict.fromkeys(sorted({each.topic for each in open_ones}), self.arrived)
        wanted[topic] = listed
        found = yield from ends_at_once(lane.host, wanted, topic)
        if not found.get(topic):
            return _is_missing(topic) if topic in found else _is_silent(topic)
        together = sum(map(len, found.values()))
        if together > TOPIC_PARTITIONS_MAX:
            had = f"would be read beside others: {together} topic partitions together, at most {TOPIC_PARTITIONS_MAX} are allowed"
            return Problem(
                "spec.topic",
                had,
                "delete other sources first, or let a topic with fewer of them carry the announcements",
            )
        vector_id, key, item = vector_item(f"source {self.row.origin}", found[topic])
        yield from lane.host.write_for_good(Batch("vector", (Put(key, item),)))
        return vector_id


def own_topics(lane: ShardWriter) -> str:
    """Returns what the names of tidegate's own topics begin with."""
    return lane.host.holding.requests.name.removesuffix("requests")


def _told_nothing(lane: ShardWriter, topic: str, arrived: int) -> Problem | None:
    """Returns why a topic has no ends, where that was found out for another request since this one arrived."""
    if lane.host.readings.ends(topic, arrived) == {}:
        return _is_missing(topic)
    return _is_silent(topic) if lane.host.readings.fallback(topic, arrived) == SILENT else None


def _is_missing(topic: str) -> Problem:
    return Problem(
        "spec.topic", f'"{topic}" is no topic that the nodes can read', "create it first, and let the nodes read it"
    )


def _is_silent(topic: str) -> Problem:
    return Problem(
        "spec.topic", f'"{topic}" does not answer now', "apply again once all its topic partitions have a leader"
    )


@dataclass(frozen=True, slots=True)
class MoveSources:
    """Moves the item, with the answer beside it.

    Attributes:
        vector: None: first look; a source that has to be opened is listed, and there is no answer yet. Else the vector of its first
            offsets, or why there is none.
        own_topics: What no source's topic may begin with.
    """

    request: SourceRequest
    request_id: str
    position: Position
    vector: str | Problem | None
    own_topics: str
    outcome: Outcome
    stale: tuple[Key, ...] = (keys.SOURCES_KEY,)
    name: str = "move_sources"

    @property
    def about(self) -> str:
        return keys.schedule_ref(self.request.namespace, self.request.name)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        stored = unit.record(StoredSources, keys.SOURCES_KEY)
        before = NO_SOURCES if stored is None else stored.sources
        moved = moved_by(before, self.request, self.request_id, self.position, self.vector, self.own_topics)
        if moved.sources is not before:
            former = before.find(self.request.namespace, self.request.name)
            if isinstance(self.request, SourceDelete) and former is not None and former.vector is not None:
                # With the very write after which nothing names it any more: no successor would find it.
                unit.forget_row(keys.offsets_vector(former.vector))
            unit.put(StoredSources.of(_worth_keeping(moved.sources, now)), keys.SOURCES_KEY)
        if moved.status is None:
            return
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=moved.status,
            namespace=self.request.namespace,
            name=self.request.name,
            version=moved.version,
            errors=moved.errors,
            at=now,
        )
        answer(unit, self.outcome, receipt, now)


@dataclass(frozen=True, slots=True)
class Moved:
    """What a request makes of the sources; `status` None: listed, to be opened."""

    status: ReceiptStatus | None
    sources: Sources
    version: int | None = None
    errors: tuple[Problem, ...] = ()


def moved_by(
    before: Sources,
    request: SourceRequest,
    request_id: str,
    position: Position,
    vector: str | Problem | None,
    own: str,
) -> Moved:
    """Returns what a request makes of the sources, and how it is answered."""
    entry = before.find(request.namespace, request.name)
    if entry is not None and entry.position > position.text():
        if entry.opened_by != request_id:
            return Moved(ReceiptStatus.SUPERSEDED, before, _shown(entry))
        # A later record of this very request has begun to open it, and its owner fell before there was an answer.
        position = Position.parse(entry.position)
    if entry is None or entry.position != position.text():
        conflict = _conflict(request, entry)
        if conflict is not None:
            return Moved(ReceiptStatus.CONFLICT, before, _shown(entry), (conflict,))
    if isinstance(request, SourceApply):
        return _applied(before, request, request_id, entry, position, vector, own)
    return _deleted(before, request, entry, position)


def _applied(
    before: Sources,
    request: SourceApply,
    request_id: str,
    entry: Source | None,
    position: Position,
    vector: str | Problem | None,
    own: str,
) -> Moved:
    body = request.spec.canonical_json()
    there = entry is not None and entry.is_there
    errors = _problems(before, request, entry, body, own)
    if errors:
        return Moved(ReceiptStatus.REJECTED, before, _shown(entry), errors)
    if entry is not None and entry.is_open:
        if entry.body == body:
            return Moved(
                ReceiptStatus.UNCHANGED, before.changed(replace(entry, position=position.text())), entry.version
            )
        after = replace(entry, position=position.text(), version=entry.version + 1, body=body)
        return Moved(ReceiptStatus.ACCEPTED, before.changed(after), after.version)
    listed = entry
    if listed is None or not there or listed.position != position.text():
        version = 1 if entry is None else entry.version + 1
        listed = Source(
            namespace=request.namespace,
            name=request.name,
            position=position.text(),
            version=version,
            body=body,
            opened_by=request_id,
        )
    if vector is None:
        return Moved(None, before if listed is entry else before.changed(listed))
    if isinstance(vector, Problem):
        return Moved(
            ReceiptStatus.REJECTED, before.changed(replace(listed, body=None, opened_by=None)), None, (vector,)
        )
    opened = replace(listed, vector=vector, opened=before.version + 1, opened_by=None)
    return Moved(ReceiptStatus.ACCEPTED, before.changed(opened), listed.version)


def _deleted(before: Sources, request: SourceRequest, entry: Source | None, position: Position) -> Moved:
    """One that is not there leaves a tombstone as well: an older apply may come after this."""
    there = entry is not None and entry.is_there
    version = 0 if entry is None else entry.version
    gone = Source(namespace=request.namespace, name=request.name, position=position.text(), version=version)
    return Moved(ReceiptStatus.ACCEPTED if there else ReceiptStatus.NOT_FOUND, before.changed(gone), version or None)


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
    """The version that users see: of one that is there, and open."""
    return entry.version if entry is not None and entry.is_open else None


def _worth_keeping(sources: Sources, now: int) -> Sources:
    """Drops tombstones that nothing older can meet any more; when there are too many, the oldest ones first."""
    there = [each for each in sources.entries if each.is_there]
    gone = sorted((each for each in sources.entries if not each.is_there), key=lambda each: each.position)
    recent = [each for each in gone if Position.parse(each.position).append_time > now - TOMBSTONE_KEPT_MS]
    return replace(sources, entries=(*there, *recent[-TOMBSTONES_MAX:]))
