"""The durable position of one topic partition that a holder reads: raise its epoch, buffer records, move it (I3)."""

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
"""Records dealt with together; the reader's credits are of the same order."""

Process: TypeAlias = Callable[[Sequence[LogRecord]], Operation[None]]
WithSender: TypeAlias = Callable[[LogRecord, RefusedRecord], RefusedRecord]
"""Adds to a refusal who is to be told."""


def _of_nobody(_: LogRecord, refused: RefusedRecord) -> RefusedRecord:
    return refused


class TopicCursor:
    """One per (topic, topic partition) of a holding.

    Args:
        host: Shared parts of the partition actor.
        topic: What it is a part of.
        topic_partition: Which part.
        copies: Topic of the dead letters.
        together_max: Records dealt with together, where that shall be fewer than usual.

    Attributes:
        dead_letters: Records of it that cannot be processed.
        is_idle: Nothing of it is under way; dead letters may be, and are the successor's if need be.
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
        """Takes the position over; False when a holder with a newer map has it, or it may not carry this one.

        The answer of this write is the position: from now on no older holder can move it.

        Args:
            may_carry: Asked once it was read that the position carries an older map: whoever is given it after that raises it as well, so that
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
            # Read after the raise: until then the former holder could move it.
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
        """Asks for the records from the position on, or from the first one whose dead letter is open. What came before, of a reading
        that has ended, lies behind these: who took it would pass them.
        """
        self._reads = True
        still_open = self.dead_letters.open_below(self.at.next)
        offset = min((*still_open, self.at.next)) if self.at.next or self.at.last_append_time else None
        topic = self.topic
        self.host.emit(StartReading(topic.name, self.topic_partition, offset, topic.id, topic.topic_partitions))

    def skip_missing_offset(self, offset: int) -> bool:
        """The log does not hold the record at this offset, where reading was to begin. Returns whether it begins elsewhere now: what
        only an open dead letter is missing of was dealt with, and retention has taken it. At the position itself a person decides.
        """
        if offset >= self.at.next or not self.dead_letters.is_gone(offset):
            return False
        self.start_reading()
        return True

    @property
    def waits(self) -> bool:
        """It is being read, and all that came of it is dealt with."""
        return self._reads and self._takes and self.is_idle and not self._buffer and self.at.page == BETWEEN_RECORDS

    def pass_over(self, begin: int, end: int) -> None:
        """From `begin` to before `end` the log holds no record, and never will: a position that still stands at `begin` moves on."""
        self._gap = begin, end
        self._look()

    def stop_accepting(self) -> None:
        """What was read and not begun is the successor's, and what was on its way meanwhile as well: who went on with that
        would pass what was forgotten here.
        """
        self._takes = False
        self._buffer.clear()

    @property
    def stands_aside(self) -> bool:
        """No further batch of it is dealt with."""
        return self._ends

    def suspend(self) -> None:
        """Ends `serve` with the batch that is under way, whatever was not dealt with: the position stays before it, for whoever can."""
        self._ends = True
        self.stop_accepting()

    def end(self) -> Operation[None]:
        """Ends `serve` after the batch that is under way; dead letters that are open stay so in the position."""
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
        """Gives batches to `process`, which moves the position through them, until `end`."""
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
            # A client that is made anew would begin before it, where the log may not reach any more by then.
            self.start_reading()

    def _serve_one_by_one(self, process: Process, batch: Sequence[LogRecord], error: InvalidEffect) -> Operation[None]:
        """One record of the batch becomes something that the store does not take: that one is a dead letter."""
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
        """Whether the stored position names dead letters that are through."""
        return self.at.open != self.dead_letters.open_below(self.at.next)

    def _give_back_credits(self) -> None:
        if self._popped:
            self.host.emit(ReturnCredits(self.topic.name, self.topic_partition, self._popped, self.at.next))
            self._popped = 0

    # -- the position -------------------------------------------------------------------------------------------------

    def refusal_of_passed(self, record: LogRecord) -> RefusedRecord | None:
        """A record before the position is read again only because its dead letter is open, whatever is in it."""
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
        """Moves the position with all that its records become; False when an event id was counted meanwhile.

        Raises:
            Fenced: A later holder has raised the epoch.
            InvalidWrite: The store will never take what the records become.
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
