"""The durable position of one topic partition that a holder reads: raise its epoch, buffer records, move it (I3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tidegate_core.decisions.host import Fenced, Host
from tidegate_core.decisions.inputs import LogRecord, TopicFacts
from tidegate_core.decisions.operations import Operation, Signal
from tidegate_core.effects import Items, Poke, Read, Refused, StartReading, Taken
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store import keys
from tidegate_core.store.values import Put
from tidegate_core.transactions.cursor import move_cursor
from tidegate_core.transactions.ownership import Cursor, cursor_of, raise_topic_partition

BATCH_RECORDS_MAX = 500
"""Records dealt with together; the reader's credits are of the same order."""


class TopicCursor:
    """One per (topic, topic partition) of a holding."""

    def __init__(self, host: Host, topic: TopicFacts, topic_partition: int) -> None:
        self.host = host
        self.topic = topic
        self.topic_partition = topic_partition
        self.key = keys.topic_position(host.holding.cluster_id, topic.id, topic_partition)
        self.position: Cursor | None = None
        self._buffer: deque[LogRecord] = deque()
        self._arrived = Signal(f"records {topic.name} {topic_partition}")

    @property
    def at(self) -> Cursor:
        assert self.position is not None
        return self.position

    def raise_epoch(self) -> Operation[bool]:
        """Takes the position over; False when a holder with a newer map has it.

        The answer of this write is the position: from now on no older holder can move it.
        """
        while True:
            found = yield from self.host.read_for_good(Read((self.key,)))
            assert isinstance(found, Items)
            stored = found.found.get(self.key)
            map_version = self.host.holding.map_version
            if stored is not None and _int(stored["map"]) > map_version:
                return False
            token = self.host.token()
            raised = raise_topic_partition(self.key, stored, map_version, self.host.holding.owner, token)
            verdict = yield from self.host.commit_for_good(raised)
            if isinstance(verdict, Refused):
                continue
            # Read after the raise: until then the former holder could move it.
            found = yield from self.host.read_for_good(Read((self.key,)))
            assert isinstance(found, Items)
            cursor = cursor_of(self.key, found.found[self.key])
            if cursor.epoch != (1 if stored is None else _int(stored["epoch"]) + 1):
                raise Fenced(self.key)
            self.position = cursor
            return True

    def start_reading(self) -> None:
        """Asks for the records from the position on."""
        offset = self.at.next if self.at.next or self.at.last_append_time else None
        self.host.tell(StartReading(self.topic.name, self.topic_partition, offset))

    def forget_buffer(self) -> None:
        """What was read and not begun is the successor's."""
        self._buffer.clear()

    def offer(self, records: Sequence[LogRecord]) -> None:
        self._buffer.extend(records)
        self.host.operations.raise_(self._arrived)

    def next_batch(self) -> Operation[list[LogRecord]]:
        """Returns the next records, in order, at least one; their append times are made monotone."""
        while True:
            batch: list[LogRecord] = []
            latest = self.at.last_append_time
            while self._buffer and len(batch) < BATCH_RECORDS_MAX:
                record = self._buffer.popleft()
                if record.offset < self.at.next or (batch and record.offset <= batch[-1].offset):
                    continue
                latest = max(latest, record.append_time)
                batch.append(LogRecord(record.offset, latest, record.key, record.value, record.headers))
            if batch:
                return batch
            yield self._arrived

    def move(
        self,
        next_offset: int,
        last_append_time: int,
        inbox: Sequence[tuple[int, InboxRow]] = (),
        dedupe: Sequence[Put] = (),
        page: str = "-",
    ) -> Operation[bool]:
        """Moves the position with all that its records become; False when an event id was counted meanwhile.

        Raises:
            Fenced: A later holder has raised the epoch.
        """
        seen = self.at
        moved = move_cursor(seen, next_offset, page, last_append_time, inbox, dedupe, self.host.token())
        verdict = yield from self.host.commit_for_good(moved)
        if isinstance(verdict, Refused):
            if any(key == self.key for key, _ in verdict.failed):
                raise Fenced(self.key)
            return False
        self.position = Cursor(self.key, seen.epoch, seen.map_version, next_offset, page, last_append_time)
        for shard in sorted({shard for shard, _ in inbox}):
            self.host.tell(Poke(shard))
        return True

    def taken(self, count: int) -> None:
        self.host.tell(Taken(self.topic.name, self.topic_partition, count, self.at.next))


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
