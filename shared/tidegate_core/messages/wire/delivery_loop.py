"""Takes what is due, group by group, and has it delivered, as far as memory, the broker and the checkpoint allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate_core.engine.actor_context import InvalidEffect
from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.delivery import deliver, put_back
from tidegate_core.messages.wire.due_queue import EVERYWHERE, Place, QueuedMessage, Stage

if TYPE_CHECKING:
    from tidegate_core.messages.message_scheduler import MessageScheduler

FIRED_TOGETHER = 500
INVALID_PAUSE_MS = 60_000
"""Of rows that can neither be sent nor moved; the position waits for them, and each of them is told once a minute."""
GROUPS_UNDER_WAY_MAX = 20
"""Groups handed to the broker's client and not acknowledged: 10,000 records."""


class Firing:
    """One per shard; `plane.changed` wakes it."""

    def __init__(self, plane: MessageScheduler) -> None:
        self._plane = plane
        self._groups = 0
        self._armed = 0
        self.closed = False

    @property
    def is_idle(self) -> bool:
        """Nothing is under way."""
        return self._groups == 0

    def serve(self) -> Operation[None]:
        """Sends what is due, for good."""
        plane = self._plane
        while not self.closed:
            through = plane.checkpoints.limit()
            # What stands in the checkpoint's way goes group by group: after each of them the position may move.
            most = GROUPS_UNDER_WAY_MAX if through == EVERYWHERE else 1
            rows = self._take_due(through) if self._groups < most else []
            if rows:
                plane.host.operations.start(self._deliver(rows))
            else:
                self._wake_at_next_slot()
                yield plane.changed

    def send_leftovers(self) -> Operation[bool]:
        """Sends what became ready, or was given back, before places that were sent: no checkpoint would pass those.

        Returns whether nothing of it is left; False when none of it came to its end any more.
        """
        while rows := self._take_due(self._plane.checkpoints.sent_through):
            yield from self._deliver(rows)
            if not any(row.stage.is_closed for row in rows):
                return False
        return True

    def _take_due(self, through: Place) -> list[QueuedMessage]:
        """Returns a group that is to be delivered; it counts as under way from here on."""
        plane = self._plane
        most = plane.checkpoints.most(FIRED_TOGETHER)
        rows = plane.slots.take_due(plane.host.now, most, through, plane.payloads.room)
        self._groups += bool(rows)
        for row in rows:
            plane.payloads.hold(row)
        if rows:
            plane.checkpoints.taken()
        plane.recurring.taken(rows)
        return rows

    def _deliver(self, rows: list[QueuedMessage]) -> Operation[None]:
        plane = self._plane
        try:
            yield from deliver(plane, rows)
        except InvalidEffect as error:
            # Moved to its next slot, or held back, a row would be one that the store does not take: it keeps its place.
            plane.host.failed("deliver", f"shard {plane.shard}", error)
            yield from plane.host.sleep(INVALID_PAUSE_MS)
            put_back(plane, [row for row in rows if row.stage is Stage.SENDING])
        self._groups -= 1
        plane.checkpoints.ended(len(rows))
        plane.host.operations.raise_(plane.changed)

    def _wake_at_next_slot(self) -> None:
        host, changed = self._plane.host, self._plane.changed
        upcoming = self._plane.slots.next_slot()
        if upcoming is None or upcoming <= host.now:
            return
        # One alarm for what is next: with one for each time that this is asked, n near messages would cost n² wakes.
        if not host.now < self._armed <= upcoming:
            self._armed = upcoming
            host.call_at(upcoming, lambda: host.operations.raise_(changed))
