"""From records to events, before anybody asks who listens: for the events topic by its own format, for others by their sources."""

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
"""Events of the records that are dealt with together: a batch of notifications of 1,000 each would keep its node for seconds."""

Found: TypeAlias = tuple[tuple[str, Event], ...]
"""Events of one record, each under a tag that stands for it in the cursor's page: whoever reads the record again gives the
same event the same tag. In the order of their tags."""


class ReadEvents(NamedTuple):
    """What a record was found to say.

    Attributes:
        refused: Why it is a dead letter; `found` holds what others made of it all the same.
        by: Sources that refused it, as `<namespace>/<name>`.
        taken_by: The same of those that made an event of it.
        passed: How many of it are not meant for a source: its name, the reason, and the number.
    """

    record: LogRecord
    found: Found = ()
    refused: RefusedRecord | None = None
    by: tuple[str, ...] = ()
    taken_by: tuple[str, ...] = ()
    passed: tuple[tuple[str, Passed, int], ...] = ()


class EventReading(Protocol):
    """How the records of a topic are read."""

    def read(self, cursor: TopicCursor, batch: Sequence[LogRecord]) -> Operation[list[ReadEvents]]:
        """Returns what the first records of a batch say, or all of them; called after the batch was fetched.

        Raises:
            UnreadableSource: Nobody here can say; whoever can reads the batch.
        """
        ...


class TopicReading(EventReading, Protocol):
    """How the records of a topic are read that is followed."""

    def begins(self, topic_id: str, topic_partition: int, version: int) -> None:
        """A topic partition is read from now on; `version` is of the sources as they were before the brokers told of its topic."""
        ...

    def first_offsets(self, host: ActorContext, topic: str) -> Operation[list[Mapping[str, int]]]:
        """Returns of each whom records of the topic concern the first offsets that do; nobody: it need not be read."""
        ...


class OwnEvents:
    """The events topic: each record is an event, or a notification of several."""

    def begins(self, topic_id: str, topic_partition: int, version: int) -> None:
        """No source says what of it counts."""

    def first_offsets(self, host: ActorContext, topic: str) -> Operation[list[Mapping[str, int]]]:
        """All of it counts, from its beginning on."""
        yield ()  # Nothing has to be asked.
        return [{}]

    def read(self, cursor: TopicCursor, batch: Sequence[LogRecord]) -> Operation[list[ReadEvents]]:
        yield ()  # Nothing has to be asked.
        allowed = cursor.host.holding.namespaces.events
        return _as_many_as_go_together(batch, lambda record: self._one(record, allowed, cursor.topic.name))

    def _one(self, record: LogRecord, allowed: tuple[str, ...], topic: str) -> ReadEvents:
        try:
            events = judged(lambda: own_events(record, allowed, topic))
        except RefusedRecord as refused:
            # Without its id: an event has no receipt, and a request of the same id would be answered by it.
            return ReadEvents(record, (), RefusedRecord(refused.problems, refused.error_class))
        return ReadEvents(record, tuple((_place_tag(number), event) for number, event in enumerate(events)))


def own_events(record: LogRecord, allowed: tuple[str, ...], topic: str) -> tuple[Event, ...]:
    """Returns the events of a record of the events topic, on which producers speak for the `allowed` namespaces only.

    Raises:
        RefusedRecord: The record is no event, or of another namespace. A fault of ours may raise any error (`judged`).
    """
    events = parse_events(record.value, record.headers)
    authorize_events(events, allowed, topic)
    _ask(events)
    return events


class SourceEvents:
    """A topic of the users' own: each source of it makes events of each record, passes it as not meant, or refuses it.

    The sources are read after the batch was fetched: acknowledged(source) < produced < fetched < read, so that the answer to an
    apply or a delete holds for all that is produced after it.
    """

    def __init__(self) -> None:
        self._vectors: dict[str, Mapping[str, int]] = {}
        self._begun: dict[str, int] = {}

    def begins(self, topic_id: str, topic_partition: int, version: int) -> None:
        """A topic partition is read from now on; `version` is of the sources as they were before the brokers told of its topic."""
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
        """What is read again because a dead letter is open was counted before."""
        counts: Counter[tuple[str, Passed]] = Counter()
        for each in found:
            if each.record.offset >= cursor.at.next:
                for ref, reason, number in each.passed:
                    counts[ref, reason] += number
        for (ref, reason), number in sorted(counts.items()):
            cursor.host.note("source_records_passed", source=ref, reason=reason, topic=cursor.topic.name, passed=number)

    def first_offsets(self, host: ActorContext, topic: str) -> Operation[list[Mapping[str, int]]]:
        """Returns the first offsets of each open source of the topic; of nobody where one of them cannot be read here."""
        try:
            return [first for _, first in (yield from self.sources_of(host, topic))]
        except UnreadableSource:
            return []

    def sources_of(self, host: ActorContext, topic: str) -> Operation[list[tuple[Source, Mapping[str, int]]]]:
        """Returns the open sources of a topic, each with the first offsets that it maps.

        Raises:
            UnreadableSource: One of them is; what the others make of a record cannot be counted without what it makes.
        """
        present = yield from present_sources(host)
        opened = [each for each in present.entries if each.is_open]
        # Topics are read in turn: what the others need stays.
        named = {each.vector for each in opened}
        self._vectors = {vector: offsets for vector, offsets in self._vectors.items() if vector in named}
        mine = [each for each in opened if each.topic == topic]
        for each in mine:
            _ = each.spec
        vectors = yield from self._vectors_of(host, [each.vector for each in mine if each.vector is not None])
        # A vector that is gone was removed with its source, after that was read.
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
        # Of a replay: whoever has made an event of the record does not make another one, with an offset of its own for an id.
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
    """Returns what the first records say, until they have enough events; at least one record's."""
    found: list[ReadEvents] = []
    events = 0
    for record in batch:
        found.append(read(record))
        events += len(found[-1].found)
        if events >= EVENTS_TOGETHER_MAX:
            break
    return found


def _place_tag(number: int) -> str:
    """Digits of equal length: tags sort as the events of their record do. At most 1,000 come of one record."""
    return f"{number:04d}"


def _is_newer(source: Source, first: Mapping[str, int], topic_id: str, begun: int) -> bool:
    """Whether the source was opened when its topic had been made anew already: what is left of this one came before it was there.

    Whoever reads on in a topic of before has begun before the source was opened. One that was made anew since is begun later.
    """
    names_others = bool(first) and not any(place.startswith(f"{topic_id}/") for place in first)
    return names_others and begun < (source.opened or 0)


def _mapped(source: Source, record: LogRecord, origin: str) -> Mapped:
    mapped = events_of(source.spec, record, origin)
    _ask(event for _, event in mapped.events)
    return mapped


def _ask(events: Iterable[Event]) -> None:
    """Asks events once for all that is asked of them later, so that an event that cannot say it refuses its record."""
    for event in events:
        _ = event.event_key, event.dedupe_id


def judged(read: Callable[[], _Read]) -> _Read:
    """Returns what was read of a record. An error caused by its content refuses the record, and never stops its topic partition.

    Raises:
        RefusedRecord: Nothing else is raised.
    """
    try:
        return read()
    except RefusedRecord:
        raise
    except Exception as error:
        raise RefusedRecord([internal_problem(error)]) from error


def _refusal(refusals: Sequence[tuple[str, RefusedRecord]]) -> RefusedRecord | None:
    """One refusal for the record: all reasons, each with its source's name. Nobody is answered: the record is no request."""
    if not refusals:
        return None
    problems = [
        Problem(each.field, f"source {ref}: {each.problem}", each.hint)
        for ref, refused in refusals
        for each in refused.problems
    ]
    return RefusedRecord(problems, refusals[0][1].error_class)
