"""Decodes records to events: `OwnEvents` for the events topic, `SourceEvents` for topics of sources.

`EventIngest` calls it with each batch and matches the events with subscriptions afterwards. It reads sources and their first offsets from the
store, and writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest.source_mapping import Mapped, Passed, events_of
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.language.events.events import Event
from tidegate_core.language.formats.parsing import parse_events
from tidegate_core.language.requests.record_authorization import authorize_events
from tidegate_core.language.values.problems import Problem, RefusedRecord, internal_problem
from tidegate_core.rows import keys
from tidegate_core.rows.dead_letter import TAKEN_HEADER
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.source_list import Source, UnreadableSource
from tidegate_core.shard.events.end_offsets import present_sources
from tidegate_core.shard.events.subscription_index import stored_vector

_Read = TypeVar("_Read")

TAG_CHARACTERS = 8
EVENTS_TOGETHER_MAX = 2_000
"""Events that are processed together: a batch of notifications with 1,000 events each would block the node for seconds."""

Found: TypeAlias = tuple[tuple[str, Event], ...]
"""Events of one record, in the order of their tags. The cursor's page names an event by its tag, so each read of the record gives an event
the same tag."""


class ReadEvents(NamedTuple):
    """The events of one record.

    Attributes:
        record: The record.
        found: Its events; if one source refuses the record, those of the others.
        refused: Reason why the record is a dead letter; None: it is none.
        by: Sources that refused it, as `<namespace>/<name>`.
        taken_by: Sources that made an event of it.
        passed: Skipped records or elements of it: source, reason and number.
    """

    record: LogRecord
    found: Found = ()
    refused: RefusedRecord | None = None
    by: tuple[str, ...] = ()
    taken_by: tuple[str, ...] = ()
    passed: tuple[tuple[str, Passed, int], ...] = ()


class EventReading(Protocol):
    """A decoder for the records of a topic."""

    def read(self, cursor: TopicCursor, batch: Sequence[LogRecord]) -> Operation[list[ReadEvents]]:
        """Returns the events of the first records of a batch, or of all; called after the batch was fetched.

        Raises:
            UnreadableSource: This release cannot read a source of the topic; an owner that can will read the batch.
        """
        ...


class TopicReading(EventReading, Protocol):
    """A decoder for a topic that a `TopicFollower` follows."""

    def begins(self, topic_id: str, topic_partition: int, version: int) -> None:
        """Called when reading of a topic partition begins; `version`: version of the sources before the brokers were asked about its topic."""
        ...

    def first_offsets(self, host: ActorContext, topic: str) -> Operation[list[Mapping[str, int]]]:
        """Returns the first offsets that count, one mapping for each consumer of the topic; none: the topic need not be read."""
        ...


class OwnEvents:
    """The decoder of the events topic: each record is an event, or a notification with several events."""

    def begins(self, topic_id: str, topic_partition: int, version: int) -> None:
        """Does nothing: the events topic has no source."""

    def first_offsets(self, host: ActorContext, topic: str) -> Operation[list[Mapping[str, int]]]:
        """Returns one consumer that counts the whole topic."""
        yield ()  # No effect is needed.
        return [{}]

    def read(self, cursor: TopicCursor, batch: Sequence[LogRecord]) -> Operation[list[ReadEvents]]:
        yield ()  # No effect is needed.
        allowed = cursor.host.holding.namespaces.events
        return _as_many_as_go_together(batch, lambda record: self._one(record, allowed, cursor.topic.name))

    def _one(self, record: LogRecord, allowed: tuple[str, ...], topic: str) -> ReadEvents:
        try:
            events = judged(lambda: own_events(record, allowed, topic))
        except RefusedRecord as refused:
            # Without the id: an event gets no receipt, and a receipt would answer a request with the same id.
            return ReadEvents(record, (), RefusedRecord(refused.problems, refused.error_class))
        return ReadEvents(record, tuple((_place_tag(number), event) for number, event in enumerate(events)))


def own_events(record: LogRecord, allowed: tuple[str, ...], topic: str) -> tuple[Event, ...]:
    """Returns the events of a record of the events topic; its producers may name the `allowed` namespaces only.

    Raises:
        RefusedRecord: The record is no event, or names another namespace. A bug may raise any error (`judged`).
    """
    events = parse_events(record.value, record.headers)
    authorize_events(events, allowed, topic)
    _ask(events)
    return events


class SourceEvents:
    """The decoder of a user's topic: each of its sources maps a record to events, skips it, or refuses it.

    The sources are read after the batch was fetched. So the order is acknowledged (source), produced, fetched, read: the receipt of an apply or
    a delete holds for each record that is produced after it.
    """

    def __init__(self) -> None:
        self._vectors: dict[str, Mapping[str, int]] = {}
        self._begun: dict[str, int] = {}

    def begins(self, topic_id: str, topic_partition: int, version: int) -> None:
        """Stores the version of the sources before the brokers were asked about the topic."""
        self._begun[f"{topic_id}/{topic_partition}"] = version

    def read(self, cursor: TopicCursor, batch: Sequence[LogRecord]) -> Operation[list[ReadEvents]]:
        sources = yield from self.sources_of(cursor.host, cursor.topic.name)
        place = f"{cursor.topic.id}/{cursor.topic_partition}"
        begun = self._begun.get(place, 0)
        mapping = [(each, first) for each, first in sources if not _is_newer(each, first, cursor.topic.id, begun)]
        found = _as_many_as_go_together(batch, lambda record: self._one(record, mapping, place))
        self._count_passed(cursor, found)
        return found

    def _count_passed(self, cursor: TopicCursor, found: Sequence[ReadEvents]) -> None:
        """Reports the number of skipped records. Records before the cursor are left out: they were counted before."""
        counts: Counter[tuple[str, Passed]] = Counter()
        for each in found:
            if each.record.offset >= cursor.at.next:
                for ref, reason, number in each.passed:
                    counts[ref, reason] += number
        for (ref, reason), number in sorted(counts.items()):
            cursor.host.note("source_records_passed", source=ref, reason=reason, topic=cursor.topic.name, passed=number)

    def first_offsets(self, host: ActorContext, topic: str) -> Operation[list[Mapping[str, int]]]:
        """Returns the first offsets of each open source of the topic; none if this release cannot read one of the sources."""
        try:
            return [first for _, first in (yield from self.sources_of(host, topic))]
        except UnreadableSource:
            return []

    def sources_of(self, host: ActorContext, topic: str) -> Operation[list[tuple[Source, Mapping[str, int]]]]:
        """Returns the open sources of a topic, each with the first offsets that it maps.

        Raises:
            UnreadableSource: This release cannot read one of them. The cursor must not pass a record without that source's events.
        """
        present = yield from present_sources(host)
        opened = [each for each in present.entries if each.is_open]
        # Keeps the vectors of all topics: they are read in turn.
        named = {each.vector for each in opened}
        self._vectors = {vector: offsets for vector, offsets in self._vectors.items() if vector in named}
        mine = [each for each in opened if each.topic == topic]
        for each in mine:
            _ = each.spec
        vectors = yield from self._vectors_of(host, [each.vector for each in mine if each.vector is not None])
        # A missing vector was deleted together with its source, after the sources were read.
        return [(each, vectors[each.vector]) for each in mine if each.vector is not None and each.vector in vectors]

    def _vectors_of(self, host: ActorContext, wanted: Sequence[str]) -> Operation[Mapping[str, Mapping[str, int]]]:
        missing = sorted({vector for vector in wanted if vector not in self._vectors})
        known = {vector: self._vectors[vector] for vector in wanted if vector in self._vectors}
        if missing:
            found = yield from host.read_for_good(Read(tuple(keys.offsets_vector(vector) for vector in missing)))
            assert isinstance(found, Items)
            items = {vector: found.found.get(keys.offsets_vector(vector)) for vector in missing}
            read = {vector: stored_vector(item) for vector, item in items.items() if item is not None}
            self._vectors |= read
            known |= read
        return known

    def _one(self, record: LogRecord, sources: Sequence[tuple[Source, Mapping[str, int]]], place: str) -> ReadEvents:
        found: list[tuple[str, Event]] = []
        refusals: list[tuple[str, RefusedRecord]] = []
        taken_by: list[str] = []
        passed: list[tuple[str, Passed, int]] = []
        # A replay names the sources that made an event of the record. A second event would have another offset as its id, and would count.
        before = {value for name, value in record.headers if name == TAKEN_HEADER}
        for source, first in sources:
            ref = keys.schedule_ref(source.namespace, source.name)
            if record.offset < first.get(place, 0) or ref.encode() in before:
                continue
            try:
                mapped = judged(partial(_mapped, source, record, f"{place}/{record.offset}"))
            except RefusedRecord as refused:
                refusals.append((ref, refused))
                continue
            tag = keys.text_hash(ref)[:TAG_CHARACTERS]
            found += [(f"{tag}{_place_tag(number)}", event) for number, event in mapped.events]
            passed += [(ref, reason, number) for reason, number in mapped.passed]
            if mapped.events:
                taken_by.append(ref)
        found.sort(key=lambda tagged: tagged[0])
        by = tuple(ref for ref, _ in refusals)
        return ReadEvents(record, tuple(found), _refusal(refusals), by, tuple(taken_by), tuple(passed))


def _as_many_as_go_together(batch: Sequence[LogRecord], read: Callable[[LogRecord], ReadEvents]) -> list[ReadEvents]:
    """Returns the events of the first records, until there are enough events; of one record at least."""
    found: list[ReadEvents] = []
    events = 0
    for record in batch:
        found.append(read(record))
        events += len(found[-1].found)
        if events >= EVENTS_TOGETHER_MAX:
            break
    return found


def _place_tag(number: int) -> str:
    """Returns digits of equal length, so that tags sort like the events of their record; a record has at most 1,000."""
    return f"{number:04d}"


def _is_newer(source: Source, first: Mapping[str, int], topic_id: str, begun: int) -> bool:
    """Whether the source was opened after its topic was recreated: records of the former topic are older than the source.

    A reader of the former topic began before the source was opened. If the topic is recreated after the opening, its reading begins later.
    """
    names_others = bool(first) and not any(place.startswith(f"{topic_id}/") for place in first)
    return names_others and begun < (source.opened or 0)


def _mapped(source: Source, record: LogRecord, origin: str) -> Mapped:
    mapped = events_of(source.spec, record, origin)
    _ask(event for _, event in mapped.events)
    return mapped


def _ask(events: Iterable[Event]) -> None:
    """Computes key and id of each event, which later steps need: if that fails, the record is refused here."""
    for event in events:
        _ = event.event_key, event.dedupe_id


def judged(read: Callable[[], _Read]) -> _Read:
    """Returns the result of `read`. Any error refuses the record: its content must never stop its topic partition.

    Raises:
        RefusedRecord: The record is refused; no other error is raised.
    """
    try:
        return read()
    except RefusedRecord:
        raise
    except Exception as error:
        raise RefusedRecord([internal_problem(error)]) from error


def _refusal(refusals: Sequence[tuple[str, RefusedRecord]]) -> RefusedRecord | None:
    """Returns one refusal with all reasons, each with the name of its source. It answers no sender: the record is no request."""
    if not refusals:
        return None
    problems = [
        Problem(each.field, f"source {ref}: {each.problem}", each.hint)
        for ref, refused in refusals
        for each in refused.problems
    ]
    return RefusedRecord(problems, refusals[0][1].error_class)
