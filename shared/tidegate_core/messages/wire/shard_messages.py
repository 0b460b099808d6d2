"""What the modules of one shard's messages share: its rows in memory, their budget, and the rules for ending a row.

`MessageScheduler` builds one `ShardMessages` per owned shard and passes it to all helpers. Held messages, recurring messages
and the inbox lie in higher packages; the helpers reach them through the protocols here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tidegate_core.engine.actor_context import ActorContext, Fenced
from tidegate_core.engine.operations import Mutex, Operation, Signal
from tidegate_core.messages.wire.checkpoints import Checkpoints
from tidegate_core.messages.wire.due_queue import CANCELLED, NOTHING, DueQueue, Occurrence, QueuedMessage, Stage, Wanted
from tidegate_core.messages.wire.payload_budget import Payloads
from tidegate_core.messages.wire.timer_window import ROWS_MAX, NextAttempts, Window
from tidegate_core.messages.wire.withheld_rows import FormerOwnerRows, MessageFences, UncommittedCreates
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, Refused
from tidegate_core.rows.message import Message, MessageTimer, version_without_key
from tidegate_core.rows.store_operations import Item, Transaction
from tidegate_core.shard.map_transition import Positions
from tidegate_core.writes.message_delivery import Progress, Tally


class KeepsHeld(Protocol):
    """Keeps due messages of suspended scopes; `one_shot.held_messages` implements it."""

    def has_dropped(self, namespace: str, due: int) -> bool: ...
    def split_held(self, rows: Sequence[Wanted]) -> tuple[list[Wanted], list[Wanted]]: ...
    def hold(self, rows: Sequence[Wanted]) -> Operation[None]: ...
    def maybe_sent(self, versions: Sequence[Message]) -> Operation[Mapping[str, bool]]: ...
    def discard(self, versions: Sequence[Message]) -> Operation[Mapping[str, bool]]: ...


class EndsFires(Protocol):
    """Knows the fires of ended schedules; `recurring.ended_fires` implements it."""

    def cover(self, row: QueuedMessage) -> bool: ...
    def withdraw(self, row: QueuedMessage) -> None: ...


class NotesRetries(Protocol):
    """Knows the next attempts of refused fires; `recurring.ended_fires` implements it."""

    def note(self, timer: MessageTimer) -> None: ...


class KeepsRecurring(Protocol):
    """Puts the fires of recurring messages into the queue; `recurring.recurring_queue` implements it."""

    @property
    def ended(self) -> EndsFires: ...
    @property
    def refused(self) -> NotesRetries: ...
    def load(self, rows: Sequence[QueuedMessage]) -> Operation[None]: ...
    def taken(self, rows: Sequence[QueuedMessage]) -> None: ...
    def closed(self, row: QueuedMessage) -> None: ...
    def due(self, row: QueuedMessage, message: Message) -> int: ...


class KeepsRepeats(Protocol):
    """Knows the repeats that stay in the inbox; `one_shot.inbox_messages` implements it."""

    def is_refused_for_now(self, version: Message) -> bool: ...


class ShardMessages:
    """One per owned shard, from its fence on.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        progress: The delivery position as read at the fence, with the new epoch.
        position: Durable position of the owner's requests topic partition at the fence.
        former: Positions of the former map; empty for the first map.
        maybe_sent_through: Instant up to which a predecessor may have sent messages.
        load_page: Adds the rows of one loaded page.

    Attributes:
        changed: Raised when more messages may be sent.
        versions_without_key: Version of messages without a key, by requests topic.
        is_draining: The shard is being handed over.
    """

    holding: KeepsHeld
    recurring: KeepsRecurring
    inboxed: KeepsRepeats

    def __init__(
        self,
        host: ActorContext,
        shard: int,
        progress: Progress,
        position: int,
        former: Positions,
        maybe_sent_through: int,
        load_page: Callable[[Sequence[Item]], Operation[None]],
    ) -> None:
        self.host = host
        self.shard = shard
        self.changed = Signal(f"slots {shard}")
        self.maybe_sent_through = maybe_sent_through
        self.queue = DueQueue()
        self.window = Window(host, shard, self.queue, progress, load_page)
        self.payloads = Payloads(host, shard)
        self.checkpoints = Checkpoints(
            host, shard, progress, self.queue, lambda: self.window.loaded_through, self.changed
        )
        self.fences = MessageFences()
        self.elsewhere = FormerOwnerRows(host, former)
        self.uncommitted = UncommittedCreates(host, position)
        self.next_attempts = NextAttempts(host, shard, self.queue, self.window, maybe_sent_through, self._note_fire)
        self.retry_turn = Mutex(host.operations, f"refused messages {shard}")
        self.is_draining = False
        self._first_topic, *_ = topics = host.holding.requests_topics
        self.versions_without_key = {each: version_without_key(each, self._first_topic) for each in topics}

    def version_without_key(self, topic_id: str) -> str:
        """Returns the version of messages without a key from this requests topic.

        The topic may be newer than the owner's map: another reader may hand its records over before the owner knows it.
        """
        known = self.versions_without_key.get(topic_id)
        return version_without_key(topic_id, self._first_topic) if known is None else known

    def commit(self, transaction: Transaction) -> Operation[Committed | Refused]:
        """Sends a transaction that checks the epoch of the delivery position. Raises Fenced when another owner holds it."""
        verdict = yield from self.host.commit_until_settled(transaction)
        if isinstance(verdict, Refused) and any(key == keys.progress(self.shard) for key, _ in verdict.failed):
            raise Fenced(keys.progress(self.shard))
        return verdict

    # -- rows in ----------------------------------------------------------------------------------------------------

    def add_loaded_row(self, timer: MessageTimer, *, from_store: bool = True) -> None:
        """Adds a row. If the message has another row in memory, the new row is closed, and only the checkpoint passes it.

        A later attempt exists only after this one has failed. The same attempt at another slot is a former owner's row,
        maybe written late, for a create that was replayed.
        """
        occurrence = Occurrence.of(timer)
        siblings = [
            row
            for row in self.queue.of(timer.id)
            if row.version == timer.version and _generation(row.occurrence) == _generation(occurrence)
        ]
        double = any(
            row.attempt > timer.attempt or (row.attempt == timer.attempt and row.stage is not Stage.GONE)
            for row in siblings
        )
        for row in siblings:
            if row.attempt < timer.attempt and row.stage in (Stage.READY, Stage.WRITTEN):
                self.close(row, Stage.GONE)
        row = QueuedMessage(
            timer.slot,
            timer.id,
            timer.version,
            timer.origin,
            timer.attempt,
            Stage.GONE if double else Stage.READY,
            size=timer.size,
            maybe_sent=bool(timer.maybe_sent) or timer.slot <= self.maybe_sent_through,
            from_store=from_store,
            occurrence=occurrence,
            double=double,
        )
        if self.queue.add(row) and not double:
            self.recurring.refused.note(timer)
            self.settle(row)

    def _note_fire(self, timer: MessageTimer) -> None:
        self.recurring.refused.note(timer)

    def take_moved(self, timer: MessageTimer) -> None:
        """Adds a next attempt, also a far one, while memory has room. Otherwise a cancel only has to know the attempt."""
        if timer.slot <= self.window.taking_through or len(self.queue) < ROWS_MAX:
            self.add_loaded_row(timer, from_store=False)
        else:
            self.next_attempts.leave(timer)

    def settle(self, row: QueuedMessage) -> None:
        """Notes that the row's writes are acknowledged."""
        self.queue.end_hold(row)
        if row.slot <= self.window.taking_through:
            # While the row was being written, a page that was read before may have extended the window past it.
            self.queue.add(row)
        if (
            row.stage in (Stage.SENDING, Stage.DONE, Stage.GONE)
            or self.queue.get(row.id, row.version, row.slot) is not row
        ):
            return
        self.uncommitted.take(row)
        self.host.operations.raise_(self.changed)

    # -- rows out ---------------------------------------------------------------------------------------------------

    def is_checkpointed(self, slot: int, message_id: str, version: str) -> bool:
        """Returns whether a checkpoint covers this place, or is being written that covers it."""
        return self.checkpoints.covers((slot, message_id, version))

    def close(self, row: QueuedMessage, stage: Stage, ended: Tally = NOTHING) -> None:
        """Ends the row: the checkpoint may pass it, and its payload is freed."""
        self.payloads.drop(row)
        row.stage, row.ended = stage, ended
        if row.occurrence is not None:
            self.recurring.closed(row)

    def has_ended(self, row: QueuedMessage) -> bool:
        """Returns whether a cancel, a replacement, or a stop or change of the schedule has ended the row."""
        return self.fences.cover(row.id, row.version) or self.recurring.ended.cover(row)

    def is_dropped(self, row: QueuedMessage, message: Message) -> bool:
        """Returns whether a scope suspension has dropped the occurrence. One-shot messages are held, never dropped."""
        return row.occurrence is not None and self.holding.has_dropped(
            message.namespace, self.recurring.due(row, message)
        )

    def withdraw(self, row: QueuedMessage) -> None:
        """Ends a row that was cancelled or replaced, and counts it."""
        if row.occurrence is not None:
            self.recurring.ended.withdraw(row)
            return
        self.close(row, Stage.GONE)
        self.checkpoints.count(CANCELLED)

    # -- payloads ---------------------------------------------------------------------------------------------------

    def load_payloads(self, rows: Sequence[QueuedMessage]) -> Operation[None]:
        """Loads payloads, and closes rows without a message row: their create never became durable."""
        yield from self.recurring.load([row for row in rows if row.fire is not None])
        for row in (yield from self.payloads.load([row for row in rows if row.fire is None])):
            self.host.note("message_row_missing", shard=self.shard, id=row.id, slot=row.slot)
            self.close(row, Stage.GONE)


def _generation(occurrence: Occurrence | None) -> int | None:
    """Returns the generation, which tells rows of one instant apart.

    An update may bring an `at` back while the same instant of the former generation waits for its next attempt.
    """
    return None if occurrence is None else occurrence.generation
