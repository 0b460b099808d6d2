"""The cursor of one topic partition: the durable read position, with the records that are buffered behind it.

Ingest of requests and of events uses it. It raises the epoch of the cursor row at a take-over, and moves the row in one transaction with the
inbox rows of the records it passes. So the records of a topic partition reach their shards once each. It passes control records and offsets
without records, and a refused record only after its dead letter is written or named as open in the row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tidegate_core.engine.actor_context import ActorContext, Fenced, InvalidEffect
from tidegate_core.engine.actor_inputs import LogRecord, TopicFacts
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.ingest.dead_letters import DeadLetters
from tidegate_core.language.values.problems import Problem, RefusedRecord
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, Refused, ReturnCredits, StartReading, WakeUp
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.store_operations import Put
from tidegate_core.writes.cursor_moves import BETWEEN_RECORDS, move_cursor
from tidegate_core.writes.fencing import Cursor, cursor_of, raise_topic_partition, whole

BATCH_RECORDS_MAX = 500
"""Records of one batch; the reader's credits are of the same order."""

Process: TypeAlias = Callable[[Sequence[LogRecord]], Operation[None]]
WithSender: TypeAlias = Callable[[LogRecord, RefusedRecord], RefusedRecord]
"""Adds the sender to a refusal, so that it gets an answer."""


def _of_nobody(_: LogRecord, refused: RefusedRecord) -> RefusedRecord:
    return refused


class TopicCursor:
    """One per topic partition that a partition actor reads.

    Args:
        host: Shared parts of the partition actor.
        topic: Name, id and size of the topic.
        topic_partition: Number of the topic partition.
        copies: Topic of the dead letters.
        together_max: Records of one batch, if fewer than usual.

    Attributes:
        dead_letters: Refused records of the topic partition.
        is_idle: Whether no batch is in progress. Dead letters may be; the next owner completes them if necessary.
    """

    def __init__(
        self,
        host: ActorContext,
        topic: TopicFacts,
        topic_partition: int,
        copies: str,
        together_max: int = BATCH_RECORDS_MAX,
    ) -> None:
        self.host = host
        self.topic = topic
        self.topic_partition = topic_partition
        self.key = keys.topic_position(host.holding.cluster_id, topic.id, topic_partition)
        self.position: Cursor | None = None
        self.is_idle = True
        self._buffer: deque[LogRecord] = deque()
        self._popped = 0
        self._gap: tuple[int, int] | None = None
        self._together_max = together_max
        self._reads = False
        self._takes = True
        self._ends = False
        self._with_sender: WithSender = _of_nobody
        self._ended = Signal(f"end of {topic.name} {topic_partition}")
        self._arrived = Signal(f"records {topic.name} {topic_partition}")
        self.dead_letters = DeadLetters(host, copies, topic, topic_partition, self._look)

    @property
    def at(self) -> Cursor:
        assert self.position is not None
        return self.position

    def raise_epoch(self, may_carry: Callable[[], Operation[bool]] | None = None) -> Operation[bool]:
        """Takes the cursor over by raising its epoch; False: an owner with a newer map has it, or `may_carry` says no.

        After the raise no older owner can move the cursor.

        Args:
            may_carry: Asked after the row was read with an older map. An owner that gets the topic partition after that raises the epoch, too, and
                this raise is refused.
        """
        while True:
            found = yield from self.host.read_for_good(Read((self.key,)))
            assert isinstance(found, Items)
            stored = found.found.get(self.key)
            map_version = self.host.holding.map_version
            if stored is not None and whole(stored, "map") > map_version:
                return False
            is_behind = stored is not None and whole(stored, "map") < map_version
            if is_behind and may_carry is not None and not (yield from may_carry()):
                return False
            token = self.host.token()
            raised = raise_topic_partition(self.key, stored, map_version, self.host.holding.owner, token)
            verdict = yield from self.host.commit_until_settled(raised)
            if isinstance(verdict, Refused):
                continue
            # Read after the raise: before it the former owner could move the cursor.
            found = yield from self.host.read_for_good(Read((self.key,)))
            assert isinstance(found, Items)
            cursor = cursor_of(self.key, found.found[self.key])
            if cursor.epoch != (1 if stored is None else whole(stored, "epoch") + 1):
                raise Fenced(self.key)
            self.position = cursor
            self.dead_letters.left_open(cursor.open)
            return True

    # -- reading ------------------------------------------------------------------------------------------------------

    def start_reading(self) -> None:
        """Has records read from the cursor on, or from the first open dead letter before it.

        Records of an earlier read are dropped: they come after these, and would move the cursor past them.
        """
        self._reads = True
        still_open = self.dead_letters.open_below(self.at.next)
        offset = min((*still_open, self.at.next)) if self.at.next or self.at.last_append_time else None
        topic = self.topic
        self.host.emit(StartReading(topic.name, self.topic_partition, offset, topic.id, topic.topic_partitions))

    def skip_missing_offset(self, offset: int) -> bool:
        """Handles a first offset that the log does not have. Returns whether reading begins elsewhere now.

        If only an open dead letter needed the offset, retention has deleted the record, and reading goes on. If the cursor itself is there, records
        may be lost: a person decides.
        """
        if offset >= self.at.next or not self.dead_letters.is_gone(offset):
            return False
        self.start_reading()
        return True

    @property
    def waits(self) -> bool:
        """Whether the topic partition is read, and all its records so far are done."""
        return self._reads and self._takes and self.is_idle and not self._buffer and self.at.page == BETWEEN_RECORDS

    def pass_over(self, begin: int, end: int) -> None:
        """Moves a cursor that is still at `begin` to `end`: the log has no record in between, and never will."""
        self._gap = begin, end
        self._look()

    def stop_accepting(self) -> None:
        """Drops the buffered records, and accepts none that are still on their way: these would move the cursor past the dropped ones."""
        self._takes = False
        self._buffer.clear()

    @property
    def stands_aside(self) -> bool:
        """Whether it processes no further batch."""
        return self._ends

    def suspend(self) -> None:
        """Ends `serve` after the batch in progress. The cursor stays before the first record that is not done, for an owner that can read it."""
        self._ends = True
        self.stop_accepting()

    def end(self) -> Operation[None]:
        """Ends `serve` after the batch in progress, and waits for that; open dead letters stay open in the cursor row."""
        self.suspend()
        self._look()
        yield self._ended

    def offer(self, records: Sequence[LogRecord]) -> None:
        if self._reads and self._takes:
            self._buffer.extend(records)
            self._look()

    def _look(self) -> None:
        self.host.operations.raise_(self._arrived)

    def serve(self, process: Process, with_sender: WithSender = _of_nobody) -> Operation[None]:
        """Passes batches to `process`, which moves the cursor through them, until it is suspended."""
        self._with_sender = with_sender
        while not self._ends:
            batch = self._next_batch()
            if batch or self._has_closed():
                self.is_idle = False
                yield from self._serve(process, batch)
                self.is_idle = True
            elif self._gap is not None:
                self.is_idle = False
                yield from self._pass_gap(*self._gap)
                self.is_idle = True
            self._give_back_credits()
            if not (self._buffer or self._has_closed() or self._gap or self._ends):
                yield self._arrived
        self.host.operations.raise_(self._ended)

    def _serve(self, process: Process, batch: Sequence[LogRecord]) -> Operation[None]:
        try:
            if batch:
                yield from process(batch)
            if self._has_closed():
                yield from self.move(self.at.next, self.at.last_append_time, page=self.at.page)
        except InvalidEffect as error:
            yield from self._serve_one_by_one(process, batch, error)

    def _pass_gap(self, begin: int, end: int) -> Operation[None]:
        self._gap = None
        if self._takes and self.at.next == begin:
            yield from self.move(end, self.at.last_append_time)
            # A recreated client would begin before the gap, where retention may have deleted the log by then.
            self.start_reading()

    def _serve_one_by_one(self, process: Process, batch: Sequence[LogRecord], error: InvalidEffect) -> Operation[None]:
        """Processes the records of a batch one by one: a record whose rows the store refuses becomes a dead letter."""
        if len(batch) > 1:
            for record in batch:
                if record.offset >= self.at.next:
                    yield from self._serve(process, [record])
            return
        for record in batch:
            self.host.failed("cursor", f"{self.topic.name} {self.topic_partition} {record.offset}", error)
            refused = RefusedRecord([Problem("", "cannot be kept", str(error))], "too_large")
            self.dead_letters.bury(record, self._with_sender(record, refused))
            yield from self.dead_letters.settled()
            yield from self.move(record.offset + 1, record.append_time)

    def _next_batch(self) -> list[LogRecord]:
        """Returns the next records, in order; their append times are made monotone."""
        batch: list[LogRecord] = []
        begin, latest = self.at.next, self.at.last_append_time
        most = min(BATCH_RECORDS_MAX, self._together_max)
        while self._buffer and len(batch) < most:
            record = self._buffer.popleft()
            self._popped += 1
            open_still = self.dead_letters.is_read_again(record.offset)
            passed = record.offset < begin and not open_still
            if passed or (batch and record.offset <= batch[-1].offset):
                continue
            latest = max(latest, record.append_time)
            batch.append(record if record.append_time == latest else record._replace(append_time=latest))
        return batch

    def _has_closed(self) -> bool:
        """Whether the stored row names dead letters that are closed by now."""
        return self.at.open != self.dead_letters.open_below(self.at.next)

    def _give_back_credits(self) -> None:
        if self._popped:
            self.host.emit(ReturnCredits(self.topic.name, self.topic_partition, self._popped, self.at.next))
            self._popped = 0

    # -- the position -------------------------------------------------------------------------------------------------

    def refusal_of_passed(self, record: LogRecord) -> RefusedRecord | None:
        """Returns the refusal of a record before the cursor; it is read again only for its open dead letter, whatever it contains."""
        if record.offset >= self.at.next:
            return None
        refused = RefusedRecord([Problem("", "was refused by an earlier reader", "send it again if it is right")])
        return self._with_sender(record, refused)

    def move(
        self,
        next_offset: int,
        last_append_time: int,
        inbox: Sequence[tuple[int, InboxRow]] = (),
        dedupe: Sequence[Put] = (),
        page: str = BETWEEN_RECORDS,
    ) -> Operation[bool]:
        """Moves the cursor, with the rows of its records, in one transaction; False: another owner has counted an event id since it was read.

        Raises:
            Fenced: A later owner has raised the epoch.
            InvalidWrite: The store will never take the rows of the records.
        """
        seen = self.at
        dead = self.dead_letters.open_below(next_offset)
        moved = move_cursor(seen, next_offset, page, last_append_time, inbox, dedupe, self.host.token(), dead)
        verdict = yield from self.host.commit_until_settled(moved)
        if isinstance(verdict, Refused):
            if any(key == self.key for key, _ in verdict.failed):
                raise Fenced(self.key)
            return False
        self.position = Cursor(self.key, seen.epoch, seen.map_version, next_offset, page, last_append_time, dead)
        for shard in sorted({shard for shard, _ in inbox}):
            self.host.emit(WakeUp(shard))
        return True
