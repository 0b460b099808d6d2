"""The loaded messages of a shard: which message is next, which are complete, and how far the checkpoint may go.

Rows are taken for delivery in the order of their places, and the checkpoint passes them in the same order. So it can pass
one group after another of many messages that are due at one instant. Nothing here reads or writes the store.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias

from tidegate_core.language.requests.message_requests import MAX_PAYLOAD_BYTES
from tidegate_core.rows import keys
from tidegate_core.rows.message import Message, MessageTimer
from tidegate_core.writes.message_delivery import Tally

# Type of `QueuedMessage.fire`. Only `messages.recurring` names it; the default lets all other code leave it out.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    FireT = TypeVar("FireT", default=Any)
else:
    from typing import TypeVar

    FireT = TypeVar("FireT")

Place: TypeAlias = tuple[int, str, str]
"""Slot, id, version: the order of the timer rows' sort keys."""


def end_of(slot: int) -> Place:
    """Returns the place after all rows of a slot."""
    return (slot, keys.LAST, "")


EVERYWHERE: Final = end_of(10**keys.INSTANT_DIGITS)
NOWHERE: Final[Place] = (-1, "", "")
NOTHING: Final = Tally()
CANCELLED: Final = Tally(cancelled=1)
LATE_MS: Final = 5_000
"""A fire that is later has missed its time. A slow store or broker may explain a shorter delay. Far below the grace of an outage."""


class Stage(Enum):
    """State of a row; the checkpoint passes `DONE` and `GONE`."""

    WRITING = "writing"
    """The store has not acknowledged its rows."""
    WRITTEN = "written"
    """Its rows are durable; the log position after its create is not."""
    READY = "ready"
    """Waits for its slot."""
    SENDING = "sending"
    """Taken for delivery: its payload is being read, it is with the broker's client, or the result is being handled."""
    DONE = "done"
    """Delivered, expired, or a dead letter: too late for a cancel."""
    GONE = "gone"
    """Cancelled, replaced, or moved to another slot."""

    @property
    def is_closed(self) -> bool:
        return self in (Stage.DONE, Stage.GONE)


class Occurrence(NamedTuple):
    """Schedule and generation of a recurring message's row, and the number of occurrences that it covers.

    A cancelled row or a dead letter counts as that number.
    """

    ref: str
    generation: int
    covered: int

    @classmethod
    def of(cls, timer: MessageTimer) -> Occurrence | None:
        """Returns None for a one-shot message."""
        return None if timer.ref is None else cls(timer.ref, timer.generation, timer.covered or 1)


@dataclass(slots=True, eq=False)
class QueuedMessage(Generic[FireT]):
    """One timer row in memory, or a fire of a recurring message, which has no timer row.

    Attributes:
        size: Bytes of the payload, from the timer row.
        handed: The broker's client has the message or its dead letter: a cancel is too late.
        maybe_sent: A predecessor may have sent the message: it was due before the fence, and no checkpoint covers it.
        message: None until the payload is loaded.
        held: Bytes of the payload budget that the row uses, also while the payload is being read.
        waits_for: Create that must be durable first: its offset in the owner's topic partition, or the origin of its inbox
            row. None when it is durable.
        from_store: The row was loaded, not created by this owner.
        ended: Outcome, counted by the checkpoint that passes the row.
        occurrence: Schedule of a recurring message; None for a one-shot message.
        fire: Fire from which the row follows; None for a row of the store. The queue never reads it.
        double: The message had another row when this one was loaded. The row is closed and does not tell the message's outcome.
    """

    slot: int
    id: str
    version: str
    origin: str
    attempt: int
    stage: Stage
    size: int = MAX_PAYLOAD_BYTES
    handed: bool = False
    maybe_sent: bool = False
    message: Message | None = None
    held: int = 0
    waits_for: int | str | None = None
    from_store: bool = False
    ended: Tally = NOTHING
    occurrence: Occurrence | None = None
    fire: FireT | None = None
    double: bool = False

    @property
    def place(self) -> Place:
        return (self.slot, self.id, self.version)


Wanted: TypeAlias = tuple[QueuedMessage, Message]
"""A row to be delivered, and its message."""


class DueQueue:
    """The rows in memory.

    Attributes:
        loaded: Number of rows that came from the store.
        held: Schedules whose rows are not taken, because a request is changing or ending them.
        being_cancelled: Messages (id, version) whose rows are not taken, because a cancel of them is being decided.
        late_fires_wait: Overdue fires, and all fires after them, are not taken: one delivery may cover several of them.
        gap_end: While late fires wait, a fire before this instant counts as overdue: it may lie in a gap that is being written.
    """

    def __init__(self) -> None:
        self.loaded = 0
        self.held: set[str] = set()
        self.being_cancelled: frozenset[tuple[str, str]] = frozenset()
        self.late_fires_wait = False
        self.gap_end = 0
        self._next_slot: int | None = None
        self._rows: dict[Place, QueuedMessage] = {}
        self._by_id: dict[str, list[QueuedMessage]] = {}
        self._writing: dict[Place, QueuedMessage] = {}
        self._due: list[Place] = []
        self._passing: list[Place] = []
        self._bare: list[Place] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[QueuedMessage]:
        return iter(self._rows.values())

    def add(self, row: QueuedMessage) -> bool:
        """Adds a row; returns False when its place is taken."""
        if row.place in self._rows:
            return False
        self._rows[row.place] = row
        self._by_id.setdefault(row.id, []).append(row)
        self.loaded += row.from_store
        heapq.heappush(self._due, row.place)
        heapq.heappush(self._passing, row.place)
        if row.message is None:
            heapq.heappush(self._bare, row.place)
        return True

    def get(self, message_id: str, version: str, slot: int) -> QueuedMessage | None:
        return self._rows.get((slot, message_id, version))

    def of(self, message_id: str) -> list[QueuedMessage]:
        """Returns the rows of a message, of any version."""
        return list(self._by_id.get(message_id, ()))

    def discard(self, row: QueuedMessage) -> None:
        """Removes a row whose place gets another row."""
        if self._rows.get(row.place) is row:
            self._forget(row)

    # -- delivery -----------------------------------------------------------------------------------------------------

    def next_slot(self) -> int | None:
        """Returns the first slot that was not due at the last `take_due`, also while due rows wait."""
        return self._next_slot

    def take_due(
        self, now: int, most: int, through: Place = EVERYWHERE, room: int = MAX_PAYLOAD_BYTES**2
    ) -> list[QueuedMessage]:
        """Takes due rows that are ready, earliest first, and sets them to `SENDING`. Other due rows stay.

        Args:
            now: Rows up to this instant are due.
            most: Largest number of rows.
            through: Last place that may be taken.
            room: Bytes of payloads that may be loaded; the first row that does not fit ends the group.
        """
        taken: list[QueuedMessage] = []
        waiting: list[Place] = []
        fires_wait = False
        due, rows, ready = self._due, self._rows, Stage.READY  # Local names: each row of a burst passes here.
        while due and len(taken) < most:
            place = due[0]
            if place[0] > now or place > through:
                break
            row = rows.get(place)
            is_ready = row is not None and row.stage is ready
            if row is not None and is_ready and row.held == 0:
                if row.size > room:
                    break
                room -= row.size
            heapq.heappop(due)
            if row is None or (not is_ready and row.stage.is_closed):
                continue
            fires_wait = fires_wait or (self.late_fires_wait and self._is_late_fire(row, now))
            if is_ready and not self.is_held(row) and not (fires_wait and row.fire is not None):
                row.stage = Stage.SENDING
                taken.append(row)
            else:
                waiting.append(place)
        # Read before the waiting rows go back: they would come first.
        self._next_slot = self._due[0][0] if self._due else None
        for place in waiting:
            heapq.heappush(self._due, place)
        return taken

    def is_held(self, row: QueuedMessage) -> bool:
        """Returns whether a request holds the row's schedule, or a cancel of its message is being decided."""
        if row.occurrence is not None:
            return row.occurrence.ref in self.held
        return (row.id, row.version) in self.being_cancelled

    def _is_late_fire(self, row: QueuedMessage, now: int) -> bool:
        """Returns whether the fire is overdue. Rows are checked in the order of places, so no fire overtakes a waiting one."""
        is_waiting = row.fire is not None and row.stage is Stage.READY and not self.is_held(row)
        return is_waiting and row.slot < max(now - LATE_MS, self.gap_end)

    def put_back(self, row: QueuedMessage) -> None:
        """Returns a row to the queue that was taken and not delivered."""
        row.stage = Stage.READY
        heapq.heappush(self._due, row.place)

    def unloaded(self, horizon: int, most: int, room: int) -> list[QueuedMessage]:
        """Returns rows whose payload is not in memory and not being read, earliest first.

        Each row is returned once. A row that is put back without its payload is loaded again at its delivery.

        Args:
            horizon: Last slot.
            most: Largest number of rows.
            room: Bytes of payloads.
        """
        wanted: list[QueuedMessage] = []
        waiting: list[Place] = []
        while self._bare and self._bare[0][0] <= horizon and len(wanted) < most:
            row = self._rows.get(self._bare[0])
            useful = row is not None and row.held == 0 and row.stage is Stage.READY
            if row is not None and useful and row.size > room:
                break
            place = heapq.heappop(self._bare)
            if row is not None and useful:
                room -= row.size
                wanted.append(row)
            elif row is not None and row.stage in (Stage.WRITING, Stage.WRITTEN):
                waiting.append(place)  # Its create is not durable, so its message row may be missing.
        for place in waiting:
            heapq.heappush(self._bare, place)
        return wanted

    # -- the checkpoint -----------------------------------------------------------------------------------------------

    def hold(self, row: QueuedMessage) -> None:
        """Keeps the checkpoint before the row's place while the row is being written, also when the row is too far ahead for memory."""
        self._writing[row.place] = row

    @property
    def holds_position(self) -> bool:
        """Returns whether a write or a pending cancel keeps the position before a place that was sent."""
        return bool(self._writing or self.being_cancelled)

    def end_hold(self, row: QueuedMessage) -> None:
        """Ends `hold`: the row's writes are acknowledged."""
        self._writing.pop(row.place, None)

    def passed(self, through: Place) -> tuple[Place | None, Tally]:
        """Removes the closed rows at the front; returns the place of the last one and the outcomes of all.

        The place is None when the first row is open.

        Args:
            through: Last place that may be passed: rows after it may be unknown.
        """
        furthest: Place | None = None
        ended = NOTHING
        unwritten = min(self._writing, default=EVERYWHERE)
        while self._passing and self._passing[0] <= through and self._passing[0] < unwritten:
            row = self._rows.get(self._passing[0])
            if row is not None and not row.stage.is_closed:
                break
            furthest = heapq.heappop(self._passing)
            if row is not None:
                ended = ended.plus(row.ended)
                self._forget(row)
        return furthest, ended

    @property
    def has_delivered(self) -> bool:
        """Returns whether a delivered row is not passed by a checkpoint: a successor would deliver it again."""
        return any(row.stage is Stage.DONE for row in self._rows.values())

    def is_clear(self, through: Place) -> bool:
        """Returns whether no row lies at or before this place."""
        return min(min(self._writing, default=EVERYWHERE), *self._passing[:1], EVERYWHERE) > through

    def _forget(self, row: QueuedMessage) -> None:
        del self._rows[row.place]
        self.loaded -= row.from_store
        siblings = self._by_id[row.id]
        siblings.remove(row)
        if not siblings:
            del self._by_id[row.id]
