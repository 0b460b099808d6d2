"""Messages of a shard that are near their time, in memory: which is next, which are done, how far the checkpoint may go.

Rows are taken for firing in the order of their places, which is also the order in which the checkpoint passes them: of many
that are due at one instant it covers one group after the other.
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

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    FireT = TypeVar("FireT", default=Any)
else:
    from typing import TypeVar

    FireT = TypeVar("FireT")

Place: TypeAlias = tuple[int, str, str]
"""Slot, id, version: the order of the timer rows' sort keys."""


def end_of(slot: int) -> Place:
    """Returns the place behind all rows of a slot."""
    return (slot, keys.LAST, "")


EVERYWHERE: Final = end_of(10**keys.INSTANT_DIGITS)
NOWHERE: Final[Place] = (-1, "", "")
NOTHING: Final = Tally()
CANCELLED: Final = Tally(cancelled=1)
LATE_MS: Final = 5_000
"""A fire that is later has missed its time; below it a slow store or broker may be all. Far below the grace of an outage."""


class Stage(Enum):
    """Where a row stands; `DONE` and `GONE` let the checkpoint pass."""

    WRITING = "writing"
    """Its rows are not acknowledged."""
    WRITTEN = "written"
    """Its rows are, the position that contains its create is not."""
    READY = "ready"
    """Waits for its slot."""
    SENDING = "sending"
    """Taken to be sent: its payload is being read, or it is with the broker's client, or what that said is dealt with."""
    DONE = "done"
    """Delivered, expired, or a dead letter: too late for a cancel."""
    GONE = "gone"
    """Cancelled, replaced, or moved to another slot."""

    @property
    def is_closed(self) -> bool:
        return self in (Stage.DONE, Stage.GONE)


class Occurrence(NamedTuple):
    """Which schedule a row is an occurrence of, under which of its generations, and how many occurrences it stands for.

    What is cancelled or buried counts as so many.
    """

    ref: str
    generation: int
    covered: int

    @classmethod
    def of(cls, timer: MessageTimer) -> Occurrence | None:
        """None for a message of its own."""
        return None if timer.ref is None else cls(timer.ref, timer.generation, timer.covered or 1)


@dataclass(slots=True, eq=False)
class QueuedMessage(Generic[FireT]):
    """One timer row in memory, or a fire that follows from a schedule and has none.

    Attributes:
        size: Bytes of its payload, as its timer row says.
        handed: It is with the broker's client, or its dead letter is: from then on a cancel is too late.
        maybe_sent: Due before the fence and after the checkpoint: a predecessor may have sent it.
        message: None until the payload is loaded.
        held: Bytes of the payloads' budget that it holds, be it loaded or on its way.
        waits_for: What must be durable before it may fire: the offset of its create in the own topic partition, or the
            origin of the inbox row that brought it. None when it is.
        from_store: It was loaded, not made here.
        ended: What became of it, counted by the checkpoint that passes it.
        occurrence: Of a recurring message.
        fire: It has no timer row: it follows from this.
        double: The message had another row when this one was loaded: it is closed, and says nothing of the message's fate.
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
"""A row that is to be sent, and its message."""


class DueQueue:
    """The rows in memory.

    Attributes:
        loaded: How many of them came from the store.
        held: Schedules of which nothing is taken, because a request is about to end what they do.
        asked_back: Messages (id, version) of which nothing is taken, because a cancel of them is being decided.
        late_fires_wait: A fire of a schedule that is overdue, and any behind it, is not taken: several of them may be one.
        gap_end: Meanwhile a fire of before it is as one that is overdue: it may lie in a gap that is being written down.
    """

    def __init__(self) -> None:
        self.loaded = 0
        self.held: set[str] = set()
        self.asked_back: frozenset[tuple[str, str]] = frozenset()
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
        """Takes a row in; False when it is there already."""
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
        """Forgets a closed row whose place is taken anew."""
        if self._rows.get(row.place) is row:
            self._forget(row)

    # -- firing -------------------------------------------------------------------------------------------------------

    def next_slot(self) -> int | None:
        """Returns the next slot that was not due at the last look, whatever is due and still waits for something else."""
        return self._next_slot

    def take_due(
        self, now: int, most: int, through: Place = EVERYWHERE, room: int = MAX_PAYLOAD_BYTES**2
    ) -> list[QueuedMessage]:
        """Takes rows that are ready and due, earliest first; they are `SENDING` from then on. Due rows that are not ready stay.

        Args:
            now: What is due.
            most: Rows.
            through: No row behind this place.
            room: Bytes of payloads that may be loaded for them; the first one that does not fit ends it.
        """
        taken: list[QueuedMessage] = []
        waiting: list[Place] = []
        fires_wait = False
        due, rows, ready = self._due, self._rows, Stage.READY  # Looked up once: of a burst each row passes here.
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
        # Now, while those that wait are out of the way: they are in front of it.
        self._next_slot = self._due[0][0] if self._due else None
        for place in waiting:
            heapq.heappush(self._due, place)
        return taken

    def is_held(self, row: QueuedMessage) -> bool:
        """Whether it is a fire of a schedule that a request holds, or a message whose cancel is being decided."""
        if row.occurrence is not None:
            return row.occurrence.ref in self.held
        return (row.id, row.version) in self.asked_back

    def _is_late_fire(self, row: QueuedMessage, now: int) -> bool:
        """In the order of places: so nothing is sent behind what was not."""
        is_waiting = row.fire is not None and row.stage is Stage.READY and not self.is_held(row)
        return is_waiting and row.slot < max(now - LATE_MS, self.gap_end)

    def put_back(self, row: QueuedMessage) -> None:
        """A row that was taken and not sent after all."""
        row.stage = Stage.READY
        heapq.heappush(self._due, row.place)

    def unloaded(self, horizon: int, most: int, room: int) -> list[QueuedMessage]:
        """Returns rows with slots up to `horizon` whose payload is neither in memory nor on its way, earliest first.

        Each is named once: one that is given back without its payload is loaded when it is sent.

        Args:
            horizon: No row behind this instant.
            most: Rows.
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
                waiting.append(place)  # Its message row may not be there yet, or no more: its create is not durable.
        for place in waiting:
            heapq.heappush(self._bare, place)
        return wanted

    # -- the checkpoint -----------------------------------------------------------------------------------------------

    def hold(self, row: QueuedMessage) -> None:
        """Nothing passes the row's place while it is being written, whether it is in memory or too far ahead for that."""
        self._writing[row.place] = row

    @property
    def holds_position(self) -> bool:
        """Whether something that is being written, or decided, keeps the position from passing what was sent behind it."""
        return bool(self._writing or self.asked_back)

    def let_go(self, row: QueuedMessage) -> None:
        """The row's writes are acknowledged."""
        self._writing.pop(row.place, None)

    def passed(self, through: Place) -> tuple[Place | None, Tally]:
        """Returns the furthest place at or before which nothing is open any more, and what became of the rows on the way,
        which are forgotten. None when the first row is open.

        Args:
            through: The place is not behind this one: what lies there may be unknown.
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
        """Whether something was delivered that no checkpoint has passed yet: a successor would deliver it again."""
        return any(row.stage is Stage.DONE for row in self._rows.values())

    def is_clear(self, through: Place) -> bool:
        """Whether there is no row at all up to this place."""
        return min(min(self._writing, default=EVERYWHERE), *self._passing[:1], EVERYWHERE) > through

    def _forget(self, row: QueuedMessage) -> None:
        del self._rows[row.place]
        self.loaded -= row.from_store
        siblings = self._by_id[row.id]
        siblings.remove(row)
        if not siblings:
            del self._by_id[row.id]
