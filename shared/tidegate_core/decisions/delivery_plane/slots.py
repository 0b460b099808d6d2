"""Messages of a shard that are near their time, in memory: which is next, which are done, how far the checkpoint may go.

Two orders over the same rows: by slot for firing, and by (slot, id) for the checkpoint, which passes a row only when nothing
at or before it is open any more.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from tidegate_core.records.messages import Message

Place: TypeAlias = tuple[int, str, str]
"""Slot, id, version: the order of the timer rows' sort keys."""


class Stage(Enum):
    """Where a row stands; `DONE` and `GONE` let the checkpoint pass."""

    WRITING = "writing"
    """Its rows are not acknowledged."""
    WRITTEN = "written"
    """Its rows are, the position that contains its create is not."""
    READY = "ready"
    """Waits for its slot."""
    SENDING = "sending"
    """Handed to the broker's client."""
    DONE = "done"
    """Delivered, expired, or a dead letter: too late for a cancel."""
    GONE = "gone"
    """Cancelled, replaced, or moved to another slot."""


@dataclass(slots=True, eq=False)
class Slotted:
    """One timer row in memory.

    Attributes:
        maybe_sent: Due before the fence and after the checkpoint: a predecessor may have sent it.
        message: None until the payload is loaded.
        waits_for: What must be durable before it may fire: the offset of its create in the own topic partition, or the
            origin of the inbox row that brought it. None when it is.
    """

    slot: int
    id: str
    version: str
    origin: str
    attempt: int
    stage: Stage
    maybe_sent: bool = False
    message: Message | None = None
    waits_for: int | str | None = None

    @property
    def place(self) -> Place:
        return (self.slot, self.id, self.version)


class Slots:
    """The rows up to the end of what is loaded."""

    def __init__(self) -> None:
        self._rows: dict[Place, Slotted] = {}
        self._due: list[Place] = []
        self._passing: list[Place] = []
        self._by_id: dict[str, list[Slotted]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Slotted) -> bool:
        """Takes a row in; False when it is there already."""
        if row.place in self._rows:
            return False
        self._rows[row.place] = row
        self._by_id.setdefault(row.id, []).append(row)
        heapq.heappush(self._due, row.place)
        heapq.heappush(self._passing, row.place)
        return True

    def get(self, message_id: str, version: str, slot: int) -> Slotted | None:
        return self._rows.get((slot, message_id, version))

    def of(self, message_id: str) -> list[Slotted]:
        """Returns the rows of a message, of any version."""
        return list(self._by_id.get(message_id, ()))

    def next_slot(self) -> int | None:
        """Returns the earliest slot that has not been taken for firing."""
        return self._due[0][0] if self._due else None

    def take_due(self, now: int, most: int) -> list[Slotted]:
        """Takes up to `most` rows that are ready and due, earliest first; rows that are due but not ready stay."""
        taken: list[Slotted] = []
        waiting: list[Place] = []
        while self._due and self._due[0][0] <= now and len(taken) < most:
            entry = heapq.heappop(self._due)
            row = self._rows.get(entry)
            if row is None or row.stage in (Stage.DONE, Stage.GONE):
                continue
            if row.stage is Stage.READY:
                taken.append(row)
            else:
                waiting.append(entry)
        for entry in waiting:
            heapq.heappush(self._due, entry)
        return taken

    def put_back(self, row: Slotted) -> None:
        """A row that was taken and not sent after all."""
        row.stage = Stage.READY
        heapq.heappush(self._due, row.place)

    def passed(self) -> tuple[int, str] | None:
        """Returns the furthest place (slot, `<id>#<version>`) at or before which nothing is open any more, and forgets what
        it passes; None when the first row is open.
        """
        furthest: tuple[int, str] | None = None
        while self._passing:
            slot, message_id, version = self._passing[0]
            row = self._rows.get(self._passing[0])
            if row is not None and row.stage not in (Stage.DONE, Stage.GONE):
                break
            heapq.heappop(self._passing)
            if row is not None:
                self._forget(row)
            furthest = (slot, f"{message_id}#{version}")
        return furthest

    def unloaded(self, horizon: int, most: int) -> list[Slotted]:
        """Returns ready rows with slots up to `horizon` whose payload is not in memory, earliest first."""
        wanted: list[Slotted] = []
        for entry in heapq.nsmallest(4 * most, self._due):
            row = self._rows.get(entry)
            if entry[0] > horizon or len(wanted) >= most:
                break
            if row is not None and row.message is None and row.stage is Stage.READY:
                wanted.append(row)
        return wanted

    def _forget(self, row: Slotted) -> None:
        del self._rows[row.place]
        siblings = self._by_id[row.id]
        siblings.remove(row)
        if not siblings:
            del self._by_id[row.id]
