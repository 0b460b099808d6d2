"""A shard's inbox: reads the rows that ingest on any node wrote, hands them to their handlers, and removes them afterwards.

The shard actor runs it and wakes it. Messages go to the message scheduler, all other rows become work of the shard writer. This module itself deletes
only rows of requests, after it has published their receipts. A crash in between repeats the receipt.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.cluster_object import ApplyClusterObject, ClusterObjectKind
from tidegate_core.commands.scope_commands import SCOPE_SUSPENSIONS
from tidegate_core.commands.source_commands import SOURCES
from tidegate_core.commands.timed_resume import ApplyAfterTimedResume
from tidegate_core.commands.upstream_deleted import RemoveUpstream, upstream_gone
from tidegate_core.engine.decision import Work
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.evidence.inbox_batches import batch_decisions
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Produce
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.store_operations import Batch, Delete, Key
from tidegate_core.shard.shard_cache import ShardCache

CLUSTER_OBJECTS: Final[dict[str, ClusterObjectKind[Any]]] = {kind.name: kind for kind in (SCOPE_SUSPENSIONS, SOURCES)}
"""All kinds of cluster objects by the name in their requests' `CLUSTER_OBJECT`."""
ROWS_READ_AGAIN_PER_MS = 10
"""Each read returns the whole inbox, known rows included. So the pause before the next read grows with the known rows, until half are done."""
ROWS_DEALT_WITH_PER_MS = 1
"""Rows per millisecond of the longest pause. After it the inbox is read even if few rows are done: new rows may have other handlers."""

LEFT_ROWS_READ_AGAIN_PER_MS = 1
LEFT_ROWS_PAUSE_MS_MAX = 1_000
"""The same for deferred rows, which wait for the end of a scope suspension or for end offsets. Each read returns them, too, and there may be a
minute's worth. So new rows wait up to this long.
"""


class Inbox:
    """The rows of one shard's inbox, from their read to their removal.

    Attributes:
        has_been_read: Whether all rows that were there at the take-over are handed on.
    """

    def __init__(self, writer: ShardWriter, memory: ShardCache, plane: MessageScheduler) -> None:
        self._writer = writer
        self._host = writer.host
        self._memory = memory
        self._plane = plane
        self._woken = Signal(f"inbox {writer.shard}")
        self._roll_outs = {name: kind.roll_out(writer) for name, kind in CLUSTER_OBJECTS.items()}
        self._reads = 0
        self._put_off: set[Key] = set()
        self._closed = False
        self.has_been_read = False

    def wake(self) -> None:
        """Has the inbox read soon."""
        self._host.operations.raise_(self._woken)

    def forget_removed_rows(self) -> None:
        """Forgets removed rows, unless a read is in progress: it may return rows that were removed after it began."""
        if not self._reads:
            self._memory.inbox_gone.clear()

    def close(self) -> None:
        """Reads nothing more; the next owner reads the rest."""
        self._closed = True

    # -- reading ------------------------------------------------------------------------------------------------------

    def hand_messages(self) -> Operation[None]:
        """Reads the messages in the inbox and hands them on, before the message scheduler recovers.

        The scheduler sends long before the first read of the whole inbox ends. With the messages at hand it handles them from its start, a former
        owner's rows for them find them, and a hand-over knows the rest. Called again before rows are loaded that an owner under another map wrote.
        """
        self.forget_removed_rows()
        self._reads += 1
        items = yield from self._writer.read_range(*keys.prefix_range(keys.INBOX_PREFIX))
        self._reads -= 1
        messages = [row for row in (from_item(InboxRow, item) for item in items) if row.kind == keys.MESSAGE_INBOX]
        known = self._memory.inbox.keys() | self._memory.inbox_gone
        fresh = {key: row for row in messages if (key := row.key(self._writer.shard)) not in known}
        self._memory.inbox.update(fresh)
        self._hand(list(fresh.values()))

    def serve(self) -> Operation[None]:
        """Reads the inbox at each wake-up; the first read completes the recovery."""
        while not self._closed:
            yield from self.check()
            yield self._woken
            yield from self._wait_until_half_is_done()

    def _wait_until_half_is_done(self) -> Operation[None]:
        """Pauses until half of the known rows are done. Deferred rows add a pause, but the pause does not wait until they are done."""
        if left := self._left:
            yield from self._host.sleep(min(left // LEFT_ROWS_READ_AGAIN_PER_MS, LEFT_ROWS_PAUSE_MS_MAX))
        known = self._in_progress
        latest = self._host.now + known // ROWS_DEALT_WITH_PER_MS
        pause = known // ROWS_READ_AGAIN_PER_MS
        while pause and 2 * self._in_progress > known and self._host.now < latest and not self._closed:
            yield from self._host.sleep(pause)

    @property
    def _left(self) -> int:
        return len(self._memory.left_rows) + self._writer.standing_aside

    @property
    def _in_progress(self) -> int:
        # A timed resume can be deferred, and has no row in the inbox.
        return max(0, len(self._memory.inbox) - self._left)

    def check(self) -> Operation[None]:
        """Reads the whole inbox and hands on the new rows."""
        self.forget_removed_rows()
        self._reads += 1
        items = yield from self._writer.read_range(*keys.prefix_range(keys.INBOX_PREFIX))
        self._reads -= 1
        fresh: list[tuple[Key, InboxRow]] = []
        for item in items:
            key = Key(str(item["pk"]), str(item["sk"]))
            # `inbox_gone` has the rows that were removed since this read began. A row that was removed earlier and is there was written again:
            # for example, a run that came back is lost a second time.
            if key not in self._memory.inbox and key not in self._memory.inbox_gone:
                row = from_item(InboxRow, item)
                self._memory.inbox[key] = row
                self._writer.view.offer(key, item)
                fresh.append((key, row))
        self._route(fresh)
        self.has_been_read = True

    def count(self, refs: Collection[str]) -> None:
        """Counts the events in the inbox of these schedules, `<ns>/<name>`; then handles rows that report a deleted upstream.

        All events of a schedule are counted together, in the order of their append times.
        """
        if not refs:
            return
        inbox = [(key, row) for key, row in self._memory.inbox.items() if _schedule_of(row) in refs]
        behind = {key for key, _ in inbox} & self._put_off
        self._put_off -= behind
        for work in self._counting_work(
            [(key, row) for key, row in inbox if row.kind == keys.EVENTS_INBOX or key in behind]
        ):
            self._writer.add(work)

    def count_resumed_rows(self) -> None:
        """Counts deferred rows that the present suspensions no longer cover, before later rows. Called when the lease carries a new version."""
        controls, inbox = self._writer.controls, self._memory.inbox
        left = self._memory.left_rows
        going_on = [key for key in left if not controls.covers(inbox[key].namespace)]
        self._writer.add_first(*self._counting_work([(key, inbox[key]) for key in left.take(going_on)]))

    def count_outdated_rows(self) -> None:
        """Handles deferred rows that are too old for a resume that is still unknown here. Called after each read of the suspensions."""
        old = self._memory.left_rows.take_old(self._writer.controls.version)
        for work in self._counting_work([(key, self._memory.inbox[key]) for key in old]):
            self._writer.add(work)

    def _route(self, fresh: list[tuple[Key, InboxRow]]) -> None:
        self._hand([row for _, row in fresh if row.kind == keys.MESSAGE_INBOX])
        requests = sorted((row for _, row in fresh if row.kind == keys.REQUEST_INBOX), key=lambda row: row.origin)
        for row in requests:
            self._writer.add(self._application_of(row))
        for work in self._counting_work(fresh):
            self._writer.add(work)

    def _counting_work(self, rows: Sequence[tuple[Key, InboxRow]]) -> list[Work]:
        """Returns the work that counts the events of some rows, and then the work for deleted upstreams."""
        events: dict[str, list[tuple[Key, InboxRow]]] = {}
        for key, row in rows:
            if row.kind == keys.EVENTS_INBOX:
                events.setdefault(_schedule_of(row), []).append((key, row))
        memory = self._memory
        works: list[Work] = [each for ref, heard in events.items() for each in batch_decisions(ref, heard, memory)]
        # After the ends of earlier runs. Those were written first, although their rows sort after these.
        for row in (row for _, row in rows if row.kind == keys.UPSTREAM_DELETED_INBOX):
            try:
                works.append(self._upstream_gone(row))
            except Exception as error:  # noqa: BLE001 - a newer release may have written it; it stays for an owner that can read it
                self._host.failed("upstream_gone", row.origin, error)
        return works

    def _upstream_gone(self, row: InboxRow) -> RemoveUpstream:
        def put_off(row: InboxRow) -> None:
            self._put_off.add(row.key(self._writer.shard))

        arrived = self._host.readings.begun
        return upstream_gone(row, self._memory, self._plane.recurring, self._done, put_off, arrived)

    def _hand(self, messages: Sequence[InboxRow]) -> None:
        if messages:
            self._plane.inboxed.take(sorted(messages, key=lambda row: row.origin), self._memory.inbox_row_gone)

    def _application_of(self, row: InboxRow) -> ApplyRequest:
        recurring, arrived = self._plane.recurring, self._host.readings.begun
        kind = CLUSTER_OBJECTS.get(row.name) if row.namespace == keys.NO_NAMESPACE else None
        if kind is None:
            return ApplyAfterTimedResume(row, self._memory, recurring, self.announce, arrived)
        return ApplyClusterObject(
            row,
            self._memory,
            recurring,
            self.announce,
            arrived,
            kind=kind,
            roll_out=self._roll_outs[kind.name],
            done=self._done,
        )

    # -- removing -----------------------------------------------------------------------------------------------------

    def announce(self, row: InboxRow, receipt: str) -> None:
        """Publishes a stored receipt, then removes the inbox row; a crash in between repeats the receipt."""
        self._host.start_safely("inbox_done", row.origin, self._announce(row, receipt))

    def _announce(self, row: InboxRow, receipt: str) -> Operation[None]:
        request_id = str(json.loads(receipt)["request_id"])
        topic = self._host.holding.receipts_topic
        refusal = yield from self._host.produce_for_good(Produce(topic, request_id.encode(), receipt.encode()))
        if refusal is not None:
            self._host.note("produce_refused", topic=topic, id=request_id, message=refusal)
        yield from self._remove(row)

    def _done(self, row: InboxRow) -> None:
        self._host.start_safely("inbox_done", row.origin, self._remove(row))

    def _remove(self, row: InboxRow) -> Operation[None]:
        # Unconditional: the receipt is stored under the lease and published, so a former owner may remove the row, too.
        key = row.key(self._writer.shard)
        yield from self._host.write_for_good(Batch("inbox_done", (Delete(key),)))
        self._memory.inbox_row_gone(key)
        self._writer.view.forget([key])


def _schedule_of(row: InboxRow) -> str:
    return keys.schedule_ref(row.namespace, row.name)
