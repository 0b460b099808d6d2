"""A shard's inbox: what ingest of any node put there is read, handed to whoever deals with it, and removed (DESIGN 7)."""

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
"""All of the inbox is read at each look, what is known already included: fewer are read again at once, of more first half is dealt
with.
"""
ROWS_DEALT_WITH_PER_MS = 1
"""Then it is read again all the same: what comes is dealt with by others than what is there, or nothing gets on."""

LEFT_ROWS_READ_AGAIN_PER_MS = 1
LEFT_ROWS_PAUSE_MS_MAX = 1_000
"""A minute's rows that nobody deals with would be read at each poke: up to so much later for all others, until the wide suspend is over, or
what requests stand aside for is known.
"""


class Inbox:
    """One per shard.

    Attributes:
        has_been_read: All that a predecessor left here has been handed on.
    """

    def __init__(self, lane: ShardWriter, memory: ShardCache, plane: MessageScheduler) -> None:
        self._lane = lane
        self._host = lane.host
        self._memory = memory
        self._plane = plane
        self._poked = Signal(f"inbox {lane.shard}")
        self._roll_outs = {name: kind.roll_out(lane) for name, kind in CLUSTER_OBJECTS.items()}
        self._reads = 0
        self._put_off: set[Key] = set()
        self._closed = False
        self.has_been_read = False

    def wake(self) -> None:
        """There may be something new."""
        self._host.operations.raise_(self._poked)

    def forget_what_is_gone(self) -> None:
        """Rows that were removed are kept in mind for looks that are under way: these may have read them before."""
        if not self._reads:
            self._memory.inbox_gone.clear()

    def close(self) -> None:
        """What is not read yet is the successor's."""
        self._closed = True

    # -- reading ------------------------------------------------------------------------------------------------------

    def hand_messages(self) -> Operation[None]:
        """Reads the messages that lie here and hands them on; in front of the delivery plane's recovery.

        What a predecessor wrote of them waits for them. The plane sends long before the first look has an end: with them in
        hand it deals with them from its first moment, and a hand-over knows what is left. Later on as well, before rows are loaded
        that a holder under another map wrote.
        """
        self.forget_what_is_gone()
        self._reads += 1
        items = yield from self._lane.read_range(*keys.prefix_range(keys.INBOX_PREFIX))
        self._reads -= 1
        messages = [row for row in (from_item(InboxRow, item) for item in items) if row.kind == keys.MESSAGE_INBOX]
        known = self._memory.inbox.keys() | self._memory.inbox_gone
        fresh = {key: row for row in messages if (key := row.key(self._lane.shard)) not in known}
        self._memory.inbox.update(fresh)
        self._hand(list(fresh.values()))

    def serve(self) -> Operation[None]:
        """Looks whenever it is poked; the first look is recovery's."""
        while not self._closed:
            yield from self.check()
            yield self._poked
            yield from self._until_half_is_done()

    def _until_half_is_done(self) -> Operation[None]:
        """What nobody deals with for now is read each time as well; nobody waits until it is dealt with."""
        if left := self._left:
            yield from self._host.sleep(min(left // LEFT_ROWS_READ_AGAIN_PER_MS, LEFT_ROWS_PAUSE_MS_MAX))
        known = self._being_dealt_with
        latest = self._host.now + known // ROWS_DEALT_WITH_PER_MS
        pause = known // ROWS_READ_AGAIN_PER_MS
        while pause and 2 * self._being_dealt_with > known and self._host.now < latest and not self._closed:
            yield from self._host.sleep(pause)

    @property
    def _left(self) -> int:
        return len(self._memory.left_rows) + self._lane.standing_aside

    @property
    def _being_dealt_with(self) -> int:
        # What resumes a schedule by itself stands aside without a row here.
        return max(0, len(self._memory.inbox) - self._left)

    def check(self) -> Operation[None]:
        """Reads all that is here, and hands on what is new."""
        self.forget_what_is_gone()
        self._reads += 1
        items = yield from self._lane.read_range(*keys.prefix_range(keys.INBOX_PREFIX))
        self._reads -= 1
        fresh: list[tuple[Key, InboxRow]] = []
        for item in items:
            key = Key(str(item["pk"]), str(item["sk"]))
            # What was deleted since this read began is among the gone. What was deleted before, and is there, was put there again: a run
            # that comes back is lost a second time.
            if key not in self._memory.inbox and key not in self._memory.inbox_gone:
                row = from_item(InboxRow, item)
                self._memory.inbox[key] = row
                self._lane.view.offer(key, item)
                fresh.append((key, row))
        self._route(fresh)
        self.has_been_read = True

    def count(self, refs: Collection[str]) -> None:
        """Counts the events that lie here of schedules, `<ns>/<name>`: all of each together, in the order of their append times; and behind
        them what tells that an upstream is gone.
        """
        if not refs:
            return
        inbox = [(key, row) for key, row in self._memory.inbox.items() if _schedule_of(row) in refs]
        behind = {key for key, _ in inbox} & self._put_off
        self._put_off -= behind
        for work in self._countings(
            [(key, row) for key, row in inbox if row.kind == keys.EVENTS_INBOX or key in behind]
        ):
            self._lane.add(work)

    def look_at_what_was_left(self) -> None:
        """The lease carries another version of the wide controls: what it does not cover any more is counted, in front of what came later."""
        controls, inbox = self._lane.controls, self._memory.inbox
        left = self._memory.left_rows
        going_on = [key for key in left if not controls.covers(inbox[key].namespace)]
        self._lane.add_first(*self._countings([(key, inbox[key]) for key in left.take(going_on)]))

    def clear_what_was_left(self) -> None:
        """The wide controls were read, and are known: what is too old for any other ones goes."""
        old = self._memory.left_rows.take_old(self._lane.controls.version)
        for work in self._countings([(key, self._memory.inbox[key]) for key in old]):
            self._lane.add(work)

    def _route(self, fresh: list[tuple[Key, InboxRow]]) -> None:
        self._hand([row for _, row in fresh if row.kind == keys.MESSAGE_INBOX])
        requests = sorted((row for _, row in fresh if row.kind == keys.REQUEST_INBOX), key=lambda row: row.origin)
        for row in requests:
            self._lane.add(self._application_of(row))
        for work in self._countings(fresh):
            self._lane.add(work)

    def _countings(self, rows: Sequence[tuple[Key, InboxRow]]) -> list[Work]:
        """Returns what counts the events of some rows, and then takes out what is gone."""
        events: dict[str, list[tuple[Key, InboxRow]]] = {}
        for key, row in rows:
            if row.kind == keys.EVENTS_INBOX:
                events.setdefault(_schedule_of(row), []).append((key, row))
        memory = self._memory
        works: list[Work] = [each for ref, heard in events.items() for each in batch_decisions(ref, heard, memory)]
        # Behind the ends of runs from before, which were there first: their rows are read after these.
        for row in (row for _, row in rows if row.kind == keys.UPSTREAM_DELETED_INBOX):
            try:
                works.append(self._upstream_gone(row))
            except Exception as error:  # noqa: BLE001 - whatever shape a newer release gave it; it stays for who can read it
                self._host.failed("upstream_gone", row.origin, error)
        return works

    def _upstream_gone(self, row: InboxRow) -> RemoveUpstream:
        def put_off(row: InboxRow) -> None:
            self._put_off.add(row.key(self._lane.shard))

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
        """Publishes a stored receipt; only then the inbox row goes, so that a crash in between repeats the receipt."""
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
        # Whoever removes it: its answer was stored under the lease, and is published where somebody waits for it.
        key = row.key(self._lane.shard)
        yield from self._host.write_for_good(Batch("inbox_done", (Delete(key),)))
        self._memory.inbox_row_gone(key)
        self._lane.view.forget([key])


def _schedule_of(row: InboxRow) -> str:
    return keys.schedule_ref(row.namespace, row.name)
