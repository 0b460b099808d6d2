"""Reads one topic partition of `tidegate.events`: matched events become inbox rows of the schedules that listen (DESIGN 7).

Position, inbox rows and dedupe rows are one transaction, so each event is handed to each of its schedules once, whatever is
replayed. An event that matches more schedules than one transaction holds is handed out page by page; the page is part of
the position.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tidegate_core.decisions.dead_letters import dead_letter
from tidegate_core.decisions.event_index import EventIndex, Listener
from tidegate_core.decisions.inputs import LogRecord
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.topic_cursor import TopicCursor
from tidegate_core.effects import Items, Read
from tidegate_core.model.events import DataPartitionEvent, Event
from tidegate_core.model.facts import fact_to_json
from tidegate_core.model.parsing import parse_events
from tidegate_core.model.problems import RefusedRecord
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store import keys
from tidegate_core.store.values import Key, Put
from tidegate_core.transactions.cursor import BETWEEN_RECORDS, dedupe_row

ROWS_PER_MOVE = 85
"""Inbox and dedupe rows of one transaction, below DynamoDB's 100 actions."""
ROW_BYTES_MAX = 60_000
ROW_EVENTS_MAX = 16
"""Matched events of one inbox row: it is counted in one transaction, where each may need four actions."""
DEDUPE_HORIZON_MS = 24 * 3_600_000
"""SEMANTICS 5.3: a repeat of an event id within 24 h counts once."""


@dataclass(frozen=True, slots=True)
class _Handing:
    """One event to one listener. `place` orders all handings of a record: the page of the cursor is the last one's."""

    record: LogRecord
    place: str
    event: Event
    listener: Listener


@dataclass(slots=True)
class _Move:
    """What one transaction will hold."""

    rows: dict[str, tuple[Listener, list[dict[str, object]], int]] = field(default_factory=dict)
    dedupe: dict[Key, Put] = field(default_factory=dict)
    through: _Handing | None = None

    def size(self) -> int:
        return len(self.rows) + len(self.dedupe)


class EventIngest:
    """One per topic partition of the events topic that the holding reads."""

    def __init__(self, cursor: TopicCursor, index: EventIndex) -> None:
        self._cursor = cursor
        self._index = index
        self.is_idle = True

    def serve(self) -> Operation[None]:
        while True:
            batch = yield from self._cursor.next_batch()
            self.is_idle = False
            yield from self._process(batch)
            self._cursor.taken(len(batch))
            self.is_idle = True

    def _process(self, batch: Sequence[LogRecord]) -> Operation[None]:
        events: list[tuple[LogRecord, tuple[Event, ...]]] = []
        for record in batch:
            try:
                events.append((record, parse_events(record.value, record.headers)))
            except RefusedRecord as reason:
                yield from self._bury(record, reason)
                events.append((record, ()))
        wanted = {event.event_key for _, found in events for event in found}
        listeners = yield from self._index.match(self._cursor.host, wanted)
        while True:
            counted = yield from self._counted_before(events, listeners)
            done = yield from self._hand_out(events, listeners, counted)
            if done:
                return

    def _bury(self, record: LogRecord, reason: RefusedRecord) -> Operation[None]:
        cursor = self._cursor
        topic = cursor.host.holding.events_dlq_topic
        yield from dead_letter(cursor.host, topic, cursor.topic.name, cursor.topic_partition, record, reason)

    def _counted_before(
        self, events: Sequence[tuple[LogRecord, tuple[Event, ...]]], listeners: dict[str, tuple[Listener, ...]]
    ) -> Operation[set[Key]]:
        """Returns dedupe keys that are within their horizon."""
        dedupe_keys = sorted(
            {_dedupe_key(event) for _, found in events for event in found if listeners[event.event_key]}
        )
        if not dedupe_keys:
            return set()
        answer = yield from self._cursor.host.read_for_good(Read(tuple(dedupe_keys)))
        assert isinstance(answer, Items)
        now = self._cursor.host.now
        return {key for key, item in answer.found.items() if isinstance(item["until"], int) and item["until"] > now}

    def _hand_out(
        self,
        events: Sequence[tuple[LogRecord, tuple[Event, ...]]],
        listeners: dict[str, tuple[Listener, ...]],
        counted: set[Key],
    ) -> Operation[bool]:
        """Moves the position through the batch; False when an id was counted by somebody else meanwhile."""
        move = _Move()
        last: LogRecord | None = None
        for record, found in events:
            if record.offset < self._cursor.at.next:
                continue
            for handing in self._handings(record, found, listeners, counted):
                if move.size() + 2 > ROWS_PER_MOVE:
                    if not (yield from self._commit_within(move)):
                        return False
                    move = _Move()
                self._add(move, handing)
            last = record
        if last is not None:
            return (yield from self._cursor.move(last.offset + 1, last.append_time, *self._contents(move)))
        return True

    def _handings(
        self,
        record: LogRecord,
        found: tuple[Event, ...],
        listeners: dict[str, tuple[Listener, ...]],
        counted: set[Key],
    ) -> Iterable[_Handing]:
        """Returns what is still to be handed out of a record, in the order of its pages."""
        cursor = self._cursor.at
        page = cursor.page if record.offset == cursor.next else BETWEEN_RECORDS
        for number, event in enumerate(found):
            begun = page.startswith(f"{number:04d}#")
            if not begun and _dedupe_key(event) in counted:
                continue  # Counted by an earlier record (or by an earlier page's event of this one).
            heard = sorted(
                (each for each in listeners[event.event_key] if self._hears(each, record)),
                key=lambda each: each.row.key().sk,
            )
            counted.add(_dedupe_key(event))
            for listener in heard:
                place = f"{number:04d}#{listener.row.key().sk}"
                if page == BETWEEN_RECORDS or place > page:
                    yield _Handing(record, place, event, listener)

    def _hears(self, listener: Listener, record: LogRecord) -> bool:
        return listener.hears(self._cursor.topic.id, self._cursor.topic_partition, record.offset)

    def _add(self, move: _Move, handing: _Handing) -> None:
        cursor = self._cursor.at
        event = handing.event
        assert isinstance(event, DataPartitionEvent)  # Nothing listens to custom events yet.
        in_middle = handing.record.offset == cursor.next and cursor.page.startswith(handing.place[:5])
        key = _dedupe_key(event)
        if not in_middle and key not in move.dedupe:
            now = self._cursor.host.now
            move.dedupe[key] = dedupe_row(event.namespace, event.dedupe_id, now, DEDUPE_HORIZON_MS)
        row = handing.listener.row
        origin = f"{self._cursor.topic.id}/{self._cursor.topic_partition}/{handing.record.offset}"
        matched: dict[str, object] = {
            "leaf": row.leaf,
            "incarnation": row.incarnation,
            "generation": row.generation,
            "fact": fact_to_json(event),
            "at": handing.record.append_time,
            "origin": origin,
        }
        target = keys.schedule_ref(row.namespace, row.name)
        listener, events, size = move.rows.get(target, (handing.listener, [], 0))
        size += len(str(matched["fact"])) + 200
        if events and (size > ROW_BYTES_MAX or len(events) >= ROW_EVENTS_MAX):
            # A further row of the same schedule; its key carries the number of rows so far.
            move.rows[f"{target}#{len(move.rows)}"] = move.rows.pop(target)
            events, size = [], len(str(matched["fact"])) + 200
        events.append(matched)
        move.rows[target] = (listener, events, size)
        move.through = handing

    def _commit_within(self, move: _Move) -> Operation[bool]:
        """Moves the position to the middle of a record (a page)."""
        handing = move.through
        assert handing is not None
        rows, dedupe = self._contents(move)
        return (
            yield from self._cursor.move(
                handing.record.offset, handing.record.append_time, rows, dedupe, page=handing.place
            )
        )

    def _contents(self, move: _Move) -> tuple[list[tuple[int, InboxRow]], list[Put]]:
        rows: list[tuple[int, InboxRow]] = []
        position = self._cursor.at
        for number, (listener, events, _) in enumerate(move.rows.values()):
            row = listener.row
            origin = f"{self._cursor.topic.id}.{self._cursor.topic_partition:06d}.{position.next:020d}"
            inbox = InboxRow(
                namespace=row.namespace,
                name=row.name,
                kind="X",
                # Unique for ever: where the cursor stood, on which page, and which row of that move.
                origin=f"{origin}.{keys.text_hash(position.page)[:8]}.{number:04d}",
                body=json.dumps(events, separators=(",", ":")),
            )
            rows.append((row.shard, inbox))
        return rows, list(move.dedupe.values())


def _dedupe_key(event: Event) -> Key:
    return keys.dedupe(event.namespace, event.dedupe_id)
