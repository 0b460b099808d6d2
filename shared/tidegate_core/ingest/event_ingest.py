"""Reads one topic partition of the events topic, or of a source's topic: each event becomes inbox rows of the schedules that subscribe to it.

A `TopicFollower` creates it. Cursor, inbox rows and dedupe rows are one transaction. So each subscribed schedule gets each event once, however
often the record is read. If an event has more subscribers than one transaction holds, it is handed out in pages, and the cursor names the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest.event_decoding import EventReading, Found, ReadEvents
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.language.events.events import Event
from tidegate_core.language.events.trigger_facts import fact_to_json
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.source_list import UnreadableSource
from tidegate_core.rows.store_operations import Key, Put
from tidegate_core.shard.events.evidence_log import DEDUPE_UNKNOWN
from tidegate_core.shard.events.subscription_index import Subscription, SubscriptionIndex
from tidegate_core.writes.cursor_moves import BETWEEN_RECORDS, Uses, dedupe_row

ROWS_PER_MOVE = 85
"""Inbox and dedupe rows of one transaction, below DynamoDB's 100 actions."""
MOVE_BYTES_MAX = 3_000_000
"""Bytes of their bodies, below DynamoDB's 4 MB a transaction."""
ROW_BYTES_MAX = 60_000
ROW_EVENTS_MAX = 12
"""Matched events of one inbox row: one transaction counts the row, and an event may need seven actions (`evidence/match.py`)."""
SHORT_ID_CHARACTERS = 8
DEDUPE_HORIZON_MS = 24 * 3_600_000
"""A repeat of an event id within 24 h does not count; the append times are compared."""
DEDUPE_ROWS_KEPT_MS = 7 * 24 * 3_600_000
"""How long dedupe rows stay after the horizon: as long as the events topic keeps records. A repeat that is read late, after a backlog, is known."""
CHECKS_BEHIND_A_REPEAT = 32
"""Batches after one with a repeated id in which ids are read before the move. In other batches the conditions of the dedupe rows find a
repeat. A read for each new id would cost more than the rare refused move, although the store bills that like a successful one.
"""


@dataclass(frozen=True, slots=True)
class _Handing:
    """One event for one subscription.

    Attributes:
        tag: Prefix of `place`, the same for all subscriptions of the event.
        place: Order within the record; the cursor's page names the last place that is handed out.
        seen: Earlier uses of the event's id, all outside the horizon.
    """

    record: LogRecord
    tag: str
    place: str
    event: Event
    listener: Subscription
    seen: Uses | None


class _Page(NamedTuple):
    """How far a record is handed out, as the cursor's page says: `<place> <short event id>`.

    Attributes:
        place: Last place: the event's tag, and the sort key of the subscription's row, which begins with the event key.
        event_id: Short id of the event. An updated source may map the same record to another event. Empty in pages of older releases.
    """

    place: str
    event_id: str

    @classmethod
    def of(cls, text: str) -> _Page:
        place, _, event_id = text.partition(" ")
        return cls(place, event_id)

    def is_amid(self, tag: str, event: Event) -> bool:
        """Whether this event is handed out in part. A page of this record has then stored its id."""
        return self.place.startswith(f"{tag}#") and self.event_id in ("", _short_id(event))

    def is_before(self, tag: str, event: Event, place: str) -> bool:
        """Whether the place still has to get the event. If the event has another key now, all subscriptions of that key still have to get it."""
        is_about_another = self.place.startswith(f"{tag}#") and not self.place.startswith(f"{tag}#{event.event_key}#")
        return is_about_another or place > self.place


@dataclass(slots=True)
class _Row:
    """An inbox row before its write: matched events as JSON, and their bytes."""

    listener: Subscription
    events: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, matched: str, size: int) -> None:
        self.events.append(matched)
        self.size += size

    def has_room(self, size: int) -> bool:
        return not self.events or (self.size + size <= ROW_BYTES_MAX and len(self.events) < ROW_EVENTS_MAX)


@dataclass(slots=True)
class _Move:
    """The contents of one transaction; `last` has the newest row of each schedule, which may have room."""

    rows: list[_Row] = field(default_factory=list)
    last: dict[str, _Row] = field(default_factory=dict)
    dedupe: dict[Key, Put] = field(default_factory=dict)
    size: int = 0
    through: _Handing | None = None

    def has_room(self, size: int) -> bool:
        """Whether one more matched event fits, with a new inbox row and a new dedupe row."""
        return len(self.rows) + len(self.dedupe) + 2 <= ROWS_PER_MOVE and self.size + size <= MOVE_BYTES_MAX

    def add(self, handing: _Handing, matched: str, size: int) -> None:
        index_row = handing.listener.row
        ref = keys.schedule_ref(index_row.namespace, index_row.name)
        row = self.last.get(ref)
        if row is None or not row.has_room(size):
            row = self.last[ref] = _Row(handing.listener)
            self.rows.append(row)
        row.add(matched, size)
        self.size += size
        self.through = handing


class EventIngest:
    """One per topic partition of the events topic, and of sources' topics, that the owner reads.

    Args:
        cursor: Cursor of the topic partition.
        index: Subscriptions of the node.
        reading: Decoder from records to events.
    """

    def __init__(self, cursor: TopicCursor, index: SubscriptionIndex, reading: EventReading) -> None:
        self.cursor = cursor
        self._index = index
        self._reading = reading
        self._looks = 0

    def serve(self) -> Operation[None]:
        return self.cursor.serve(self._process)

    def _process(self, batch: Sequence[LogRecord]) -> Operation[None]:
        while batch:
            try:
                read = yield from self._reading.read(self.cursor, batch)
            except UnreadableSource:
                self.cursor.suspend()  # The watch of sources reports it.
                return
            yield from self._take(read)
            batch = batch[len(read) :]

    def _take(self, read: Sequence[ReadEvents]) -> Operation[None]:
        """Hands out the events of some records."""
        events = [(each.record, self._kept(each)) for each in read]
        yield from self.cursor.dead_letters.settled()
        wanted = {event.event_key for _, found in events for _, event in found}
        listeners = yield from self._index.match(self.cursor.host, wanted)
        self._looks -= self._looks > 0
        # A new owner that begins within a record needs the read: it cannot know whether the id counted before the horizon.
        looks = self._looks or any(self._page_of(record) is not None for record, _ in events)
        counted = (yield from self._counted_before(events, listeners)) if looks else dict[Key, Uses]()
        while not (yield from self._hand_out(events, listeners, counted)):
            counted = yield from self._counted_before(events, listeners)

    def _kept(self, read: ReadEvents) -> Found:
        """Returns the events of a record, and copies a refused record. A record before the cursor is read only for its open dead letter."""
        passed = self.cursor.refusal_of_passed(read.record)
        reason = passed if read.refused is None else read.refused
        if reason is not None:
            self.cursor.dead_letters.bury(read.record, reason, read.by, read.taken_by)
        return () if passed is not None else read.found

    def _counted_before(
        self, events: Sequence[tuple[LogRecord, Found]], listeners: dict[str, tuple[Subscription, ...]]
    ) -> Operation[dict[Key, Uses]]:
        """Returns the earlier uses of the events' ids, for the ids that have any."""
        dedupe_keys = sorted(
            {_dedupe_key(event) for _, found in events for _, event in found if listeners[event.event_key]}
        )
        if not dedupe_keys:
            return {}
        answer = yield from self.cursor.host.read_for_good(Read(tuple(dedupe_keys)))
        assert isinstance(answer, Items)
        counted = {key: Uses.of(item) for key, item in answer.found.items()}
        if any(self._is_used_again(record, event, counted) for record, found in events for _, event in found):
            self._looks = CHECKS_BEHIND_A_REPEAT
        return counted

    def _is_used_again(self, record: LogRecord, event: Event, counted: dict[Key, Uses]) -> bool:
        """Whether the id of an event that is still to be handed out has counted before, however long ago. Its move would be refused."""
        if record.offset < self.cursor.at.next or self._page_of(record) is not None:
            return False  # The dedupe row is from this record itself.
        return _dedupe_key(event) in counted

    def _hand_out(
        self,
        events: Sequence[tuple[LogRecord, Found]],
        listeners: dict[str, tuple[Subscription, ...]],
        counted: dict[Key, Uses],
    ) -> Operation[bool]:
        """Moves the cursor through the batch; False: another owner counted an id since the read."""
        move = _Move()
        last = events[-1][0]
        for record, found in events if any(listeners.values()) else ():
            if record.offset < self.cursor.at.next:
                continue
            for handing in self._handings(record, found, listeners, counted):
                matched = self._matched(handing)
                size = len(matched.encode()) + 1
                if not move.has_room(size):
                    if not (yield from self._commit_within(move)):
                        return False
                    move = _Move()
                self._note_id(move, handing)
                move.add(handing, matched, size)
        if last.offset < self.cursor.at.next:
            return True
        return (yield from self.cursor.move(last.offset + 1, last.append_time, *self._contents(move)))

    def _handings(
        self,
        record: LogRecord,
        found: Found,
        listeners: dict[str, tuple[Subscription, ...]],
        counted: dict[Key, Uses],
    ) -> Iterable[_Handing]:
        """Returns the events and subscriptions that a record still owes, in the order of its pages."""
        page = self._page_of(record)
        for tag, event in found:
            begun = page is not None and page.is_amid(tag, event)
            key = _dedupe_key(event)
            noted = counted.get(key)
            # Without this record's own use. Its append time in the cursor may be the time of the read, and would differ now.
            seen = noted.without(self.cursor.at.last_append_time) if begun and noted is not None else noted
            if not begun and seen is not None and seen.covers(record.append_time):
                continue  # An earlier record has counted the id, or an earlier event of this record.
            heard = sorted(
                (each for each in listeners[event.event_key] if self._hears(each, record)),
                key=lambda each: each.row.key().sk,
            )
            # An event without subscribers does not count: its repeat may come after a subscription. An event that is handed out in part is in
            # the dedupe row already.
            if heard and (noted is None or not begun):
                counted[key] = _with(record, seen)
            for listener in heard:
                place = f"{tag}#{listener.row.key().sk}"
                if page is None or page.is_before(tag, event, place):
                    yield _Handing(record, tag, place, event, listener, seen)

    def _page_of(self, record: LogRecord) -> _Page | None:
        """Returns how far the record is handed out; None: not at all."""
        cursor = self.cursor.at
        if record.offset != cursor.next or cursor.page == BETWEEN_RECORDS:
            return None
        return _Page.of(cursor.page)

    def _hears(self, listener: Subscription, record: LogRecord) -> bool:
        cursor = self.cursor
        return listener.accepts(cursor.topic.id, cursor.topic_partition, record.offset, record.append_time)

    def _note_id(self, move: _Move, handing: _Handing) -> None:
        """Adds the dedupe row of the event's id, in the first page of the event only."""
        event, record = handing.event, handing.record
        page = self._page_of(record)
        if page is not None and page.is_amid(handing.tag, event):
            return
        key = _dedupe_key(event)
        uses = _with(record, handing.seen)
        noted = move.dedupe.get(key)
        if noted is not None and Uses.of(noted.item) == uses:
            return
        kept_until = max(self.cursor.host.now + DEDUPE_HORIZON_MS, uses.until) + DEDUPE_ROWS_KEPT_MS
        row = dedupe_row(event.namespace, event.dedupe_id, uses, kept_until, handing.seen)
        # A row in this move belongs to another event with the same id, and this event is outside its horizon.
        move.dedupe[key] = row if noted is None else replace(row, condition=noted.condition)

    def _matched(self, handing: _Handing) -> str:
        event, row = handing.event, handing.listener.row
        matched = {
            "leaf": row.leaf,
            "incarnation": row.incarnation,
            "generation": row.generation,
            "fact": fact_to_json(event),
            "at": handing.record.append_time,
            "origin": f"{self.cursor.topic.id}/{self.cursor.topic_partition}/{handing.record.offset}",
        }
        if handing.seen is not None:
            matched[DEDUPE_UNKNOWN] = True
        return json.dumps(matched, separators=(",", ":"), ensure_ascii=False)

    def _commit_within(self, move: _Move) -> Operation[bool]:
        """Moves the cursor to a page within a record."""
        handing = move.through
        assert handing is not None
        rows, dedupe = self._contents(move)
        record, page = handing.record, f"{handing.place} {_short_id(handing.event)}"
        return (yield from self.cursor.move(record.offset, record.append_time, rows, dedupe, page=page))

    def _contents(self, move: _Move) -> tuple[list[tuple[int, InboxRow]], list[Put]]:
        rows: list[tuple[int, InboxRow]] = []
        position = self.cursor.at
        for number, made in enumerate(move.rows):
            row = made.listener.row
            origin = f"{self.cursor.topic.id}.{self.cursor.topic_partition:06d}.{position.next:020d}"
            inbox = InboxRow(
                namespace=row.namespace,
                name=row.name,
                kind=keys.EVENTS_INBOX,
                # Unique for ever: offset and page of the cursor, and number of the row in its move. Rows are counted in the order of their
                # origins, and the tag keeps the order within a record; "-" sorts before all tags.
                origin=f"{origin}.{position.page.partition('#')[0]}.{keys.text_hash(position.page)[:8]}.{number:04d}",
                body=f"[{','.join(made.events)}]",
            )
            rows.append((row.shard, inbox))
        return rows, list(move.dedupe.values())


def _with(record: LogRecord, seen: Uses | None) -> Uses:
    """Returns the uses of an id after the record's event is counted."""
    at = record.append_time
    until = at + DEDUPE_HORIZON_MS
    return Uses((at,), until) if seen is None else seen.and_at(at, until)


def _dedupe_key(event: Event) -> Key:
    return keys.dedupe(event.namespace, event.dedupe_id)


def _short_id(event: Event) -> str:
    return keys.text_hash(event.namespace, event.dedupe_id)[:SHORT_ID_CHARACTERS]
