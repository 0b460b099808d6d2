"""Reads one topic partition of `tidegate.events`, or of a source's topic: matched events become inbox rows of the schedules
that listen (DESIGN 7).

Position, inbox rows and dedupe rows are one transaction, so each event is handed to each of its schedules once, whatever is
replayed. An event that matches more schedules than one transaction holds is handed out page by page; the page is part of
the position.
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
"""Of their bodies, below DynamoDB's 4 MB a transaction."""
ROW_BYTES_MAX = 60_000
ROW_EVENTS_MAX = 12
"""Matched events of one inbox row: it is counted in one transaction, where each may need seven actions (`count.py`)."""
SHORT_ID_CHARACTERS = 8
DEDUPE_HORIZON_MS = 24 * 3_600_000
"""SEMANTICS 5.3: a repeat of an event id within 24 h counts once; they are those of append times."""
DEDUPE_ROWS_KEPT_MS = 7 * 24 * 3_600_000
"""Beyond the horizon: as long as the events topic keeps records, so that a repeat that is read behind a backlog is known."""
CHECKS_BEHIND_A_REPEAT = 32
"""Batches behind one with an id that had counted before, whose ids are read before they are written. Else the rows' own conditions find
such an id: to read of each that it is new costs more than the rare move that is refused, which is paid for as if it were made.
"""


@dataclass(frozen=True, slots=True)
class _Handing:
    """One event to one listener. `place` orders all handings of a record: the page of the cursor has the last one's.

    Attributes:
        tag: What `place` begins with, the same for all listeners of the event.
        seen: When its id was counted before, beyond the horizon.
    """

    record: LogRecord
    tag: str
    place: str
    event: Event
    listener: Subscription
    seen: Uses | None


class _Page(NamedTuple):
    """How far a record was handed out, as the cursor's page says: `<place> <its event's id>`.

    Attributes:
        place: Of the last handing: the event's tag, and the sort key of the listener's row in the index, which begins with its key.
        event_id: Tells the event from another that the same source makes of the record once it was updated; empty in pages of before.
    """

    place: str
    event_id: str

    @classmethod
    def of(cls, text: str) -> _Page:
        place, _, event_id = text.partition(" ")
        return cls(place, event_id)

    def is_amid(self, tag: str, event: Event) -> bool:
        """Whether this is the event of which some have heard: its id is noted, by a page of this very record."""
        return self.place.startswith(f"{tag}#") and self.event_id in ("", _short_id(event))

    def is_before(self, tag: str, event: Event, place: str) -> bool:
        """Whether it is still to be handed there; of one that is about something else now all who listen to that are still to hear."""
        is_about_another = self.place.startswith(f"{tag}#") and not self.place.startswith(f"{tag}#{event.event_key}#")
        return is_about_another or place > self.place


@dataclass(slots=True)
class _Row:
    """One inbox row in the making: matched events as JSON, and their bytes."""

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
    """What one transaction will hold; `last` is the row of each schedule that may have room."""

    rows: list[_Row] = field(default_factory=list)
    last: dict[str, _Row] = field(default_factory=dict)
    dedupe: dict[Key, Put] = field(default_factory=dict)
    size: int = 0
    through: _Handing | None = None

    def has_room(self, size: int) -> bool:
        """Whether one more matched event fits, with a row and a dedupe row of its own."""
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
    """One per topic partition of the events topic, and of sources' topics, that the holding reads.

    Args:
        cursor: Its position.
        index: Who listens.
        reading: From records to events.
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
                self.cursor.suspend()  # Whoever follows the topic says so.
                return
            yield from self._take(read)
            batch = batch[len(read) :]

    def _take(self, read: Sequence[ReadEvents]) -> Operation[None]:
        """Hands the events of some records out."""
        events = [(each.record, self._kept(each)) for each in read]
        yield from self.cursor.dead_letters.settled()
        wanted = {event.event_key for _, found in events for _, event in found}
        listeners = yield from self._index.match(self.cursor.host, wanted)
        self._looks -= self._looks > 0
        # Who takes over amid a record cannot know otherwise whether its id had counted beyond the horizon.
        looks = self._looks or any(self._page_of(record) is not None for record, _ in events)
        counted = (yield from self._counted_before(events, listeners)) if looks else dict[Key, Uses]()
        while not (yield from self._hand_out(events, listeners, counted)):
            counted = yield from self._counted_before(events, listeners)

    def _kept(self, read: ReadEvents) -> Found:
        """Returns the events of a record; one that was refused is copied, and is read again for that alone."""
        passed = self.cursor.refusal_of_passed(read.record)
        reason = passed if read.refused is None else read.refused
        if reason is not None:
            self.cursor.dead_letters.bury(read.record, reason, read.by, read.taken_by)
        return () if passed is not None else read.found

    def _counted_before(
        self, events: Sequence[tuple[LogRecord, Found]], listeners: dict[str, tuple[Subscription, ...]]
    ) -> Operation[dict[Key, Uses]]:
        """Returns when the ids of the events were counted, of those that were."""
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
        """Whether the id of one that is still to be handed out had counted before, be that a day ago: its move would have been refused."""
        if record.offset < self.cursor.at.next or self._page_of(record) is not None:
            return False  # The row is its own.
        return _dedupe_key(event) in counted

    def _hand_out(
        self,
        events: Sequence[tuple[LogRecord, Found]],
        listeners: dict[str, tuple[Subscription, ...]],
        counted: dict[Key, Uses],
    ) -> Operation[bool]:
        """Moves the position through the batch; False when an id was counted by somebody else meanwhile."""
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
        """Returns what is still to be handed out of a record, in the order of its pages."""
        page = self._page_of(record)
        for tag, event in found:
            begun = page is not None and page.is_amid(tag, event)
            key = _dedupe_key(event)
            noted = counted.get(key)
            # As the record's page has it: where the time is that of the reading, it is another one now.
            seen = noted.without(self.cursor.at.last_append_time) if begun and noted is not None else noted
            if not begun and seen is not None and seen.covers(record.append_time):
                continue  # Counted by an earlier record (or by an earlier page's event of this one).
            heard = sorted(
                (each for each in listeners[event.event_key] if self._hears(each, record)),
                key=lambda each: each.row.key().sk,
            )
            # What nobody heard was not counted: its repeat may come when somebody listens. What has begun is in the row as it was read.
            if heard and (noted is None or not begun):
                counted[key] = _with(record, seen)
            for listener in heard:
                place = f"{tag}#{listener.row.key().sk}"
                if page is None or page.is_before(tag, event, place):
                    yield _Handing(record, tag, place, event, listener, seen)

    def _page_of(self, record: LogRecord) -> _Page | None:
        """Returns how far the record was handed out; None: to nobody."""
        cursor = self.cursor.at
        if record.offset != cursor.next or cursor.page == BETWEEN_RECORDS:
            return None
        return _Page.of(cursor.page)

    def _hears(self, listener: Subscription, record: LogRecord) -> bool:
        cursor = self.cursor
        return listener.accepts(cursor.topic.id, cursor.topic_partition, record.offset, record.append_time)

    def _note_id(self, move: _Move, handing: _Handing) -> None:
        """The event's id counts once; a later page of the same event finds it noted."""
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
        # Where one is noted, it is another event's of this very move, and this one is beyond its horizon.
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
        """Moves the position to the middle of a record (a page)."""
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
                # Unique for ever: where the cursor stood, on which page, and which row of that move. The tag keeps the record's own order:
                # rows are counted in the order of their origins, and "-" comes before all tags.
                origin=f"{origin}.{position.page.partition('#')[0]}.{keys.text_hash(position.page)[:8]}.{number:04d}",
                body=f"[{','.join(made.events)}]",
            )
            rows.append((row.shard, inbox))
        return rows, list(move.dedupe.values())


def _with(record: LogRecord, seen: Uses | None) -> Uses:
    """Returns what the row says once the record's event is counted."""
    at = record.append_time
    until = at + DEDUPE_HORIZON_MS
    return Uses((at,), until) if seen is None else seen.and_at(at, until)


def _dedupe_key(event: Event) -> Key:
    return keys.dedupe(event.namespace, event.dedupe_id)


def _short_id(event: Event) -> str:
    return keys.text_hash(event.namespace, event.dedupe_id)[:SHORT_ID_CHARACTERS]
