"""Moves the delivery position, counts outcomes, and bounds how much a crash may repeat (invariant I8).

No delivery writes a row. The position moves once per batch. A successor continues after the position, so it repeats the
deliveries after it. Therefore deliveries stop when too many lie after the position. Delivery and drain call this module; it
writes the progress row and closed tallies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tidegate_core.engine.actor_context import ActorContext, Fenced, InvalidWrite
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.messages.wire.due_queue import (
    EVERYWHERE,
    NOTHING,
    NOWHERE,
    DueQueue,
    Place,
    QueuedMessage,
    Wanted,
    end_of,
)
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Refused
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.store_operations import Item, Put
from tidegate_core.writes.message_delivery import Progress, Tally, checkpoint

CHECKPOINT_AFTER_FIRES = 1_000
CHECKPOINT_AFTER_MS = 5_000
"""Bounds of invariant I8: no more than these deliveries repeat after a crash."""
BLOCKED_CHECK_MS = 500
"""Pause before the next checkpoint while deliveries wait for it."""
TALLY_MS = 120_000
"""Shortest span of one tally: closing it costs three write units more than a plain checkpoint."""
TALLY_DAYS = 90
"""Closed tallies live as long as the ledger."""


class Checkpoints:
    """One per shard.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        progress: The delivery position as read at the fence, with the new epoch.
        queue: The rows in memory.
        loaded_through: Returns the last place up to which all stored rows are in memory.
        changed: Raised when more may be delivered.

    Attributes:
        durable: Position that was stored last.
        promised: Position that was last passed to the store: no new row may get a slot that it covers.
        sent_through: Last place of a row that was handed to the broker's client.
    """

    def __init__(
        self,
        host: ActorContext,
        shard: int,
        progress: Progress,
        queue: DueQueue,
        loaded_through: Callable[[], Place],
        changed: Signal,
    ) -> None:
        self.durable = progress
        self.promised = progress.place
        self.sent_through = NOWHERE
        self.is_writing = False
        self.closed = False
        self._host = host
        self._shard = shard
        self._queue = queue
        self._loaded_through = loaded_through
        self._changed = changed
        self._uncovered: dict[Place, int] = {}
        self._counted = NOTHING
        self._ended_since = 0
        self._alarm: int | None = None
        self._tally_from = host.now

    # -- the position ---------------------------------------------------------------------------------------

    def covers(self, place: Place) -> bool:
        """Returns whether a stored or started checkpoint covers this place."""
        return place <= self.promised

    @property
    def stored(self) -> Place:
        """The durable position: a successor continues after it."""
        return self.durable.place

    def slot_for(self, nominal: int) -> int:
        """Returns a slot after the position and after all sent rows: late creates before a sent row would hold up the position."""
        return max(nominal, self.promised[0] + 1, self.sent_through[0] + 1)

    def outages_are(self, outages: tuple[Outage, ...]) -> None:
        """Notes the outages that this owner has stored with the position."""
        self.durable = replace(self.durable, outages=outages)

    def gaps_are(self, gaps: tuple[Outage, ...]) -> None:
        """Notes the gaps that this owner has stored with the position."""
        self.durable = replace(self.durable, gaps=gaps)

    # -- the bound ----------------------------------------------------------------------------------------------------

    def limit(self) -> Place:
        """Returns the last place that may be delivered now.

        At the bound of I8, only rows before sent places may go out: they became ready late and hold up the checkpoint. While
        the checkpoint gets no answer, nothing may go out.
        """
        if not self._is_exceeded():
            return EVERYWHERE
        return NOWHERE if self.is_writing else self.sent_through

    def most(self, rows: int) -> int:
        """Returns the size of the next group, at most `rows`: a group ends at the bound, where `limit` decides again."""
        left = CHECKPOINT_AFTER_FIRES - len(self._uncovered)
        return min(rows, left) if left > 0 else rows

    def split_at_bound(self, wanted: list[Wanted]) -> tuple[list[Wanted], list[Wanted]]:
        """Splits a group into rows that may be delivered now and rows that wait.

        Other groups were sent since this one was taken. Its payloads may have been read during a failing checkpoint, or until
        the hand-over began.
        """
        through = self.sent_through if self.closed else self.limit()
        if through == EVERYWHERE:
            left = CHECKPOINT_AFTER_FIRES - len(self._uncovered) if self._is_late() else len(wanted)
            return wanted[:left], wanted[left:]
        return [each for each in wanted if each[0].place <= through], [
            each for each in wanted if each[0].place > through
        ]

    def taken(self) -> None:
        """Notes that a group was taken."""
        self._arm(CHECKPOINT_AFTER_MS)

    def sending(self, rows: Sequence[QueuedMessage]) -> None:
        """Notes that the rows are being handed to the broker's client in this step."""
        now = self._host.now
        for row in rows:
            place = row.place
            self._uncovered.setdefault(place, now)
            if place > self.sent_through:
                self.sent_through = place
        # Set again: an alarm that rang since `taken`, during a read or a checkpoint, found none of these rows.
        self._arm(CHECKPOINT_AFTER_MS)

    def ended(self, rows: int) -> None:
        """Notes that this number of taken rows has ended or waits again."""
        self._ended_since += rows
        self._arm(CHECKPOINT_AFTER_MS)  # Also for rows that were not sent: expired ones, for example.
        if self._ended_since >= CHECKPOINT_AFTER_FIRES or self._is_exceeded():
            self._start()

    def count(self, tally: Tally) -> None:
        """Counts outcomes that no crash repeats: cancels, whose fences are durable."""
        self._counted = self._counted.plus(tally)
        self._arm(CHECKPOINT_AFTER_MS)

    def note_unsent(self, slot: int) -> None:
        """Notes that a row of this slot ended unsent: a checkpoint counts it, also when nothing more happens."""
        self._host.call_at(max(slot, self._host.now) + CHECKPOINT_AFTER_MS, self._start)

    def _is_exceeded(self) -> bool:
        return len(self._uncovered) >= CHECKPOINT_AFTER_FIRES and self._is_late()

    def _is_late(self) -> bool:
        """Returns whether the first uncovered delivery is so old that only `CHECKPOINT_AFTER_FIRES` may follow it."""
        oldest = next(iter(self._uncovered.values()), None)
        return oldest is not None and self._host.now - oldest >= CHECKPOINT_AFTER_MS

    # -- when ---------------------------------------------------------------------------------------------------------

    def _arm(self, milliseconds: int) -> None:
        at = self._host.now + milliseconds
        if self._alarm is None or at < self._alarm:
            self._alarm = at
            self._host.call_at(at, lambda: self._ring(at))

    def _ring(self, at: int) -> None:
        if self._alarm == at:
            self._alarm = None
            self._start()

    def _start(self) -> None:
        if not self.is_writing and not self.closed:
            # Set here and not in `write`: groups that end in one step would start one checkpoint each.
            self.is_writing = True
            self._host.operations.start(self.write())

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, *, last: bool = False) -> Operation[None]:
        """Moves the delivery position up to the first open row. Raises Fenced when another owner holds it.

        The position never passes the present, where rows may still be added, or the loaded window.

        Args:
            last: Last checkpoint of this owner: it stores the counts even when the position cannot move.
        """
        self.is_writing = True
        self._ended_since = 0
        through = min(self._loaded_through(), end_of(self._host.now))
        place, ended = self._queue.passed(through)
        self._counted = self._counted.plus(ended)
        if place is not None and place <= self.stored:
            place = None  # A wake row that had been removed was put back before it: the position never goes back.
        if place is None and self._counted != NOTHING and self._queue.is_clear(through) and through > self.promised:
            place = through  # Each write moves the position, so the store refuses a late repeat.
        if place is not None or (last and self._counted != NOTHING):
            yield from self._move(place)
        self.is_writing = False
        self._host.operations.raise_(self._changed)
        if self._ended_since >= CHECKPOINT_AFTER_FIRES:
            self._start()
        elif self._uncovered or self._counted != NOTHING:
            self._arm(BLOCKED_CHECK_MS if self._is_exceeded() else CHECKPOINT_AFTER_MS)

    def _move(self, place: Place | None) -> Operation[None]:
        slot, text = self.durable.slot, self.durable.id
        if place is not None:
            slot, text = place[0], f"{place[1]}#{place[2]}"
            self.promised = max(self.promised, place)
        counted, self._counted = self._counted, NOTHING
        tally = self.durable.tally.plus(counted)
        closed = self._closed_tally(tally, slot, text)
        stored = NOTHING if closed else tally
        transaction = checkpoint(self._shard, self.durable, slot, text, stored, closed, self._host.token())
        try:
            verdict = yield from self._host.commit_until_settled(transaction)
        except InvalidWrite as error:
            self._host.failed("checkpoint", f"shard {self._shard}", error)
            self._counted = self._counted.plus(counted)
            return  # The next checkpoint covers this one; the bound still limits deliveries.
        if isinstance(verdict, Refused):
            raise Fenced(keys.progress(self._shard))
        self.durable = replace(self.durable, slot=slot, id=text, tally=stored)
        covered = self.durable.place
        self._uncovered = {each: sent_at for each, sent_at in self._uncovered.items() if each > covered}

    def _closed_tally(self, tally: Tally, slot: int, text: str) -> Put | None:
        """Returns the row of a tally that is due, or None. It names the place up to which it counts: `audit` recomputes it."""
        if self._host.now - self._tally_from < TALLY_MS or tally == NOTHING:
            return None
        key = keys.closed_tally(self._shard, self._host.now, self.durable.epoch)
        item: Item = {
            "pk": key.pk,
            "sk": key.sk,
            "from": self._tally_from,
            "to": self._host.now,
            "slot": slot,
            "id": text,
            "delivered": tally.delivered,
            "expired": tally.expired,
            "cancelled": tally.cancelled,
            "dead": tally.dead,
            "digest": tally.digest,
            "coalesced": tally.coalesced,
            "expires_at": expiry(self._host.now, TALLY_DAYS),
        }
        self._tally_from = self._host.now
        return Put(key, item)
