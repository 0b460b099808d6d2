"""Takes what is due, group by group, and has it delivered, as far as memory, the broker and the checkpoint allow."""

from __future__ import annotations

from tidegate_core.engine.actor_context import InvalidEffect
from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.delivery import deliver, put_back
from tidegate_core.messages.wire.due_queue import EVERYWHERE, Place, QueuedMessage, Stage
from tidegate_core.messages.wire.shard_messages import ShardMessages

FIRED_TOGETHER = 500
INVALID_PAUSE_MS = 60_000
"""Of rows that can neither be sent nor moved; the position waits for them, and each of them is told once a minute."""
GROUPS_UNDER_WAY_MAX = 20
"""Groups handed to the broker's client and not acknowledged: 10,000 records."""


class Firing:
    """One per shard; `messages.changed` wakes it."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages
        self._groups = 0
        self._armed = 0
        self.closed = False

    @property
    def is_idle(self) -> bool:
        """Nothing is under way."""
        return self._groups == 0

    def serve(self) -> Operation[None]:
        """Sends what is due, for good."""
        messages = self._messages
        while not self.closed:
            through = messages.checkpoints.limit()
            # What stands in the checkpoint's way goes group by group: after each of them the position may move.
            most = GROUPS_UNDER_WAY_MAX if through == EVERYWHERE else 1
            rows = self._take_due(through) if self._groups < most else []
            if rows:
                messages.host.operations.start(self._deliver(rows))
            else:
                self._wake_at_next_slot()
                yield messages.changed

    def send_leftovers(self) -> Operation[bool]:
        """Sends what became ready, or was given back, before places that were sent: no checkpoint would pass those.

        Returns whether nothing of it is left; False when none of it came to its end any more.
        """
        while rows := self._take_due(self._messages.checkpoints.sent_through):
            yield from self._deliver(rows)
            if not any(row.stage.is_closed for row in rows):
                return False
        return True

    def _take_due(self, through: Place) -> list[QueuedMessage]:
        """Returns a group that is to be delivered; it counts as under way from here on."""
        messages = self._messages
        most = messages.checkpoints.most(FIRED_TOGETHER)
        rows = messages.slots.take_due(messages.host.now, most, through, messages.payloads.room)
        self._groups += bool(rows)
        for row in rows:
            messages.payloads.hold(row)
        if rows:
            messages.checkpoints.taken()
        messages.recurring.taken(rows)
        return rows

    def _deliver(self, rows: list[QueuedMessage]) -> Operation[None]:
        messages = self._messages
        try:
            yield from deliver(messages, rows)
        except InvalidEffect as error:
            # Moved to its next slot, or held back, a row would be one that the store does not take: it keeps its place.
            messages.host.failed("deliver", f"shard {messages.shard}", error)
            yield from messages.host.sleep(INVALID_PAUSE_MS)
            put_back(messages, [row for row in rows if row.stage is Stage.SENDING])
        self._groups -= 1
        messages.checkpoints.ended(len(rows))
        messages.host.operations.raise_(messages.changed)

    def _wake_at_next_slot(self) -> None:
        host, changed = self._messages.host, self._messages.changed
        upcoming = self._messages.slots.next_slot()
        if upcoming is None or upcoming <= host.now:
            return
        # One alarm for what is next: with one for each time that this is asked, n near messages would cost n² wakes.
        if not host.now < self._armed <= upcoming:
            self._armed = upcoming
            host.call_at(upcoming, lambda: host.operations.raise_(changed))
