"""The delivery position: how far all is dealt with, what became of it, and how much a crash may repeat (I8).

Nothing is written per delivery. The position moves once per batch; a successor goes on from there, so what was sent behind
it is sent again. That is why sending stops when too much lies behind it.
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
"""I8's bound: at most this much repeats after a crash."""
BLOCKED_CHECK_MS = 500
"""How soon a checkpoint is tried again while sending waits for it."""
TALLY_MS = 120_000
"""How long one tally counts at least: closing it costs three write units more than a checkpoint without."""
TALLY_DAYS = 90
"""Closed tallies are kept as long as the ledger."""


class Checkpoints:
    """One per shard.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        progress: The delivery position as read at the fence, with the new epoch.
        slots: The rows that are passed.
        loaded_through: Up to where the rows of the store are in memory.
        changed: Raised when more may be sent.

    Attributes:
        durable: As last stored.
        promised: As last handed to the store: from then on no row may get a slot that it covers.
        sent_through: Furthest place of a row that was handed to the broker's client.
    """

    def __init__(
        self,
        host: ActorContext,
        shard: int,
        progress: Progress,
        slots: DueQueue,
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
        self._slots = slots
        self._loaded_through = loaded_through
        self._changed = changed
        self._uncovered: dict[Place, int] = {}
        self._counted = NOTHING
        self._ended_since = 0
        self._alarm: int | None = None
        self._tally_from = host.now

    # -- what the position says ---------------------------------------------------------------------------------------

    def covers(self, place: Place) -> bool:
        """Whether a checkpoint covers, or may come to cover, this place."""
        return place <= self.promised

    @property
    def stored(self) -> Place:
        """The durable position: a successor goes on behind it."""
        return self.durable.place

    def slot_for(self, nominal: int) -> int:
        """Returns a slot that no checkpoint covers, behind what was sent: else a stream of late creates would hold it up."""
        return max(nominal, self.promised[0] + 1, self.sent_through[0] + 1)

    def outages_are(self, outages: tuple[Outage, ...]) -> None:
        """This owner has written them down beside the position."""
        self.durable = replace(self.durable, outages=outages)

    def gaps_are(self, gaps: tuple[Outage, ...]) -> None:
        """Likewise."""
        self.durable = replace(self.durable, gaps=gaps)

    # -- the bound ----------------------------------------------------------------------------------------------------

    def limit(self) -> Place:
        """Returns how far rows may be sent now.

        When more than I8 allows was sent behind the durable position, only what stands in the checkpoint's way: rows that
        became ready late, before places that were sent already. While the checkpoint itself gets no answer, nothing.
        """
        if not self._is_exceeded():
            return EVERYWHERE
        return NOWHERE if self.is_writing else self.sent_through

    def most(self, rows: int) -> int:
        """Returns how many of so many rows a group may have: it ends at the bound, where `limit` is asked again."""
        left = CHECKPOINT_AFTER_FIRES - len(self._uncovered)
        return min(rows, left) if left > 0 else rows

    def parted(self, wanted: list[Wanted]) -> tuple[list[Wanted], list[Wanted]]:
        """Returns what of a group may be sent now, and what has to wait: others have been sent since it was taken, and its payloads
        may have been read for as long as the store has taken no checkpoint, or until the hand-over.
        """
        through = self.sent_through if self.closed else self.limit()
        if through == EVERYWHERE:
            left = CHECKPOINT_AFTER_FIRES - len(self._uncovered) if self._is_late() else len(wanted)
            return wanted[:left], wanted[left:]
        return [each for each in wanted if each[0].place <= through], [
            each for each in wanted if each[0].place > through
        ]

    def taken(self) -> None:
        """A group will be sent, or end without."""
        self._arm(CHECKPOINT_AFTER_MS)

    def sending(self, rows: Sequence[QueuedMessage]) -> None:
        """The rows are being handed to the broker's client, now."""
        now = self._host.now
        for row in rows:
            place = row.place
            self._uncovered.setdefault(place, now)
            if place > self.sent_through:
                self.sent_through = place
        # Again: what rang since it was taken, while its payload was read or a checkpoint was under way, found nothing of it.
        self._arm(CHECKPOINT_AFTER_MS)

    def ended(self, rows: int) -> None:
        """So many rows that were taken have come to their end, or wait again."""
        self._ended_since += rows
        self._arm(CHECKPOINT_AFTER_MS)  # Also for what was not sent: it expired, say.
        if self._ended_since >= CHECKPOINT_AFTER_FIRES or self._is_exceeded():
            self._start()

    def count(self, tally: Tally) -> None:
        """Counts what has ended for good and does not come again after a crash (cancels; their guards are durable)."""
        self._counted = self._counted.plus(tally)
        self._arm(CHECKPOINT_AFTER_MS)

    def tell(self, slot: int) -> None:
        """A row of this slot has ended without having been sent: a checkpoint counts it, also when nothing else happens."""
        self._host.call_at(max(slot, self._host.now) + CHECKPOINT_AFTER_MS, self._start)

    def _is_exceeded(self) -> bool:
        return len(self._uncovered) >= CHECKPOINT_AFTER_FIRES and self._is_late()

    def _is_late(self) -> bool:
        """The first of what is not covered was sent too long ago for more than so many to follow it."""
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
            # From now on, and not from when it begins: groups that end in one step would start one each.
            self.is_writing = True
            self._host.operations.start(self.write())

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, *, last: bool = False) -> Operation[None]:
        """Moves the delivery position up to the first row that is still open. Raises Fenced when another owner holds it.

        Never past the present, where rows may still come in, and never past what is loaded.

        Args:
            last: Of this owner: what is counted is stored even where the position cannot move.
        """
        self.is_writing = True
        self._ended_since = 0
        through = min(self._loaded_through(), end_of(self._host.now))
        place, ended = self._slots.passed(through)
        self._counted = self._counted.plus(ended)
        if place is not None and place <= self.stored:
            place = None  # A summons that was put back behind it, because it was gone: the position never goes back.
        if place is None and self._counted != NOTHING and self._slots.is_clear(through) and through > self.promised:
            place = through  # Each write moves it, so that one that arrives late and twice is refused.
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
            return  # The next one covers this one; what is sent meanwhile has its bound.
        if isinstance(verdict, Refused):
            raise Fenced(keys.progress(self._shard))
        self.durable = replace(self.durable, slot=slot, id=text, tally=stored)
        covered = self.durable.place
        self._uncovered = {each: sent_at for each, sent_at in self._uncovered.items() if each > covered}

    def _closed_tally(self, tally: Tally, slot: int, text: str) -> Put | None:
        """Returns the row of a tally that has counted long enough, with the place that it counts to: `audit` recomputes it."""
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
