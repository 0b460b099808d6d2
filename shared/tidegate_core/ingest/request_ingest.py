"""Reads one ownership topic partition: requests become inbox rows of their shards; messages of own shards go to their schedulers at once.

The partition actor runs it while it serves. The inbox rows are written in the transaction that moves the cursor, also those of other owners'
shards. A record that cannot be parsed becomes a dead letter, and the cursor passes it. So no record and no destination of a user blocks here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate_core.engine.actor_context import Countdown, InvalidEffect
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest.inbox_row import inbox_row
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.record_authorization import authorize_request
from tidegate_core.language.requests.requests import (
    JobCancel,
    MessageCancel,
    MessageSend,
    Request,
    RunRequest,
    check_delivery,
)
from tidegate_core.language.values.derived_ids import (
    cluster_object_shard,
    message_shard,
    schedule_shard,
    shard_of_run,
    unnamed_message_shard,
)
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem, RefusedRecord, internal_problem
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.messages.one_shot.create_lookup import PendingCreate, Unkept
from tidegate_core.rows.inbox import InboxRow

REQUESTS_TOGETHER_MAX = 250
"""Requests of one batch. A request takes some 5 KB of memory until it is done. With batches of 500, eight topic partitions took 26 MB of a
node's memory, and were no faster.
"""
INBOX_ROWS_PER_MOVE = 80
"""Below DynamoDB's 100 actions, with the cursor's own."""
INBOX_BYTES_PER_MOVE = 3_000_000
"""Below DynamoDB's 4 MB a transaction."""


@dataclass(frozen=True, slots=True)
class _Inboxed:
    shard: int
    row: InboxRow


class RequestIngest:
    """One per ownership topic partition.

    Args:
        cursor: Cursor of the topic partition.
        planes: Message schedulers of the owned shards.
        log_end: End offset of the log at the fence, or later. A former owner may have written creates below it, so each needs a look-up. None: no
            broker has reported the end yet, and each create needs a look-up.
    """

    def __init__(self, cursor: TopicCursor, planes: Mapping[int, MessageScheduler], log_end: int | None) -> None:
        self.cursor = cursor
        self._planes = planes
        self._log_end = log_end
        self._begun_through = 0

    def serve(self) -> Operation[None]:
        return self.cursor.serve(self._process, _with_sender)

    def log_ends_at(self, log_end: int) -> None:
        """Sets the end of the log once the brokers have reported it."""
        self._log_end = log_end

    def _process(self, batch: Sequence[LogRecord]) -> Operation[None]:
        inboxed: list[tuple[LogRecord, _Inboxed | None]] = []
        sends: dict[int, list[PendingCreate]] = {}
        for record in batch:
            reason, into = self.cursor.refusal_of_passed(record), None
            try:
                into = self._classify(record, sends if reason is None else {})
            except RefusedRecord as refused:
                reason = refused
            if reason is not None:
                self.cursor.dead_letters.bury(record, reason)
            inboxed.append((record, into))  # A record before the cursor is left out below.
        yield from self._send(sends, {record.offset: record for record in batch})
        yield from self.cursor.dead_letters.settled()
        try:
            yield from self._move_through([each for each in inboxed if each[0].offset >= self.cursor.at.next])
        except InvalidEffect:
            # The batch comes again, record by record. The messages of own shards in it are written already.
            self._begun_through = max(self._begun_through, batch[-1].offset + 1)
            raise

    def _classify(self, record: LogRecord, sends: dict[int, list[PendingCreate]]) -> _Inboxed | None:
        """Returns the inbox row of a request, or adds an own message to `sends`.

        Raises:
            RefusedRecord: The record is refused. No other error is raised, so that no record stops its topic partition.
        """
        request = parse_request(record.value, record.headers)
        holding = self.cursor.host.holding
        try:
            authorize_request(request, holding.namespaces.requests, holding.requests.name)
            return self._placed(request, record, sends)
        except RefusedRecord:
            raise
        except Exception as error:
            namespace = getattr(request, "namespace", None)
            problems = [internal_problem(error)]
            raise RefusedRecord(problems, request_id=request.id, type=request.type, namespace=namespace) from error

    def _placed(self, request: Request, record: LogRecord, sends: dict[int, list[PendingCreate]]) -> _Inboxed | None:
        position = record.position(self.cursor.topic.id, self.cursor.topic_partition, record.append_time)
        shard = self._shard_of(request, position)
        if isinstance(request, MessageSend):
            problems = check_delivery(request, appended_at=record.append_time)
            if problems:
                raise RefusedRecord(
                    problems, request_id=request.id, type=request.type, namespace=request.namespace, key=request.key
                )
            if shard in self._planes:
                sends.setdefault(shard, []).append(PendingCreate(request, position, self._may_be_written(record)))
                return None
        return _Inboxed(shard, inbox_row(request, position))

    def _may_be_written(self, record: LogRecord) -> bool:
        return self._log_end is None or record.offset < max(self._log_end, self._begun_through)

    def _shard_of(self, request: Request, position: Position) -> int:
        shards = self.cursor.host.holding.shards
        if request.CLUSTER_OBJECT is not None:
            return cluster_object_shard(request.CLUSTER_OBJECT, shards)
        match request:
            case MessageSend(key=None, id=None):
                return unnamed_message_shard(position.topic_partition, shards)
            case MessageSend():
                return message_shard(request.namespace, request.key, request.id or "", shards)
            case MessageCancel():
                return message_shard(request.namespace, request.key, request.message_id or "", shards)
            case RunRequest(run_id=run) | JobCancel(job_id=run):
                shard = shard_of_run(run)
                if shard >= shards:
                    field = "run_id" if isinstance(request, RunRequest) else "job_id"
                    problem = Problem(
                        field, f"names shard {shard}, the cluster has {shards}", "copy the id as it was printed"
                    )
                    raise RefusedRecord(
                        [problem], request_id=request.id, type=request.type, namespace=request.namespace
                    )
                return shard
            case _:
                return schedule_shard(request.namespace, request.name, shards)

    def _send(self, sends: Mapping[int, list[PendingCreate]], records: Mapping[int, LogRecord]) -> Operation[None]:
        """Writes messages of own shards, all shards concurrently; the cursor passes their records only when all are durable."""
        countdown = Countdown(self.cursor.host, len(sends))

        def done(unkept: Sequence[Unkept]) -> None:
            for each in unkept:
                self.cursor.dead_letters.bury(records[each.sending.position.offset], each.refused)
            countdown.down()

        for shard, messages in sends.items():
            self._planes[shard].send(messages, done)
        yield from countdown.wait()

    def _move_through(self, inboxed: Sequence[tuple[LogRecord, _Inboxed | None]]) -> Operation[None]:
        rows: list[tuple[int, InboxRow]] = []
        size = 0
        last: LogRecord | None = None
        for record, into in inboxed:
            if into is not None:
                if rows and (len(rows) >= INBOX_ROWS_PER_MOVE or size + into.row.size > INBOX_BYTES_PER_MOVE):
                    assert last is not None
                    yield from self._move(last, rows)
                    rows, size = [], 0
                rows.append((into.shard, into.row))
                size += into.row.size
            last = record
        if last is not None:
            yield from self._move(last, rows)

    def _move(self, last: LogRecord, rows: Sequence[tuple[int, InboxRow]]) -> Operation[None]:
        """Moves the cursor past a record. Messages of own shards up to there may be sent from now on, before the rest of the batch is done."""
        yield from self.cursor.move(last.offset + 1, last.append_time, rows)
        for plane in self._planes.values():
            plane.position_is(self.cursor.at.next)


def _with_sender(record: LogRecord, refused: RefusedRecord) -> RefusedRecord:
    """Adds id and names of the request to a refusal, if the request is readable: its sender waits for an answer."""
    try:
        request = parse_request(record.value, record.headers)
    except RefusedRecord as unread:
        return unread
    name, key = getattr(request, "name", None), getattr(request, "key", None)
    return RefusedRecord(
        refused.problems,
        refused.error_class,
        request_id=request.id,
        type=request.type,
        namespace=request.namespace,
        name=name,
        key=key,
    )
