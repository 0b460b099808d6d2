"""Next attempts of recurring messages that the broker refused: a request that ends their schedule says how many it withdraws.

The delivery plane reports each timer row of a next attempt, also one that memory has no room for. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate_core.messages.wire.due_queue import Occurrence, Place
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows.message import MessageTimer

WAITING_MAX = 100_000
"""Next attempts in memory (20 MB), where ten tries of a message last 20 min. Of what is beyond, a receipt does not say that it is withdrawn;
the tally does.
"""


class RefusedFires:
    """One per shard. A predecessor's rows that are not loaded yet come with `NextAttempts.learn_all`."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages
        self._by_ref: dict[str, dict[Place, Occurrence]] = {}
        self._known = 0

    def note(self, timer: MessageTimer) -> None:
        """The row is in the store; nothing of a message without a schedule is kept."""
        occurrence = Occurrence.of(timer)
        if occurrence is None or self._known >= WAITING_MAX:
            return
        places = self._by_ref.setdefault(occurrence.ref, {})
        self._known += _place(timer) not in places
        places[_place(timer)] = occurrence

    def forget(self, place: Place, ref: str) -> None:
        """The attempt has come to its end, or has left for a later place."""
        places = self._by_ref.get(ref, {})
        if places.pop(place, None) is not None:
            self._known -= 1
            if not places:
                del self._by_ref[ref]

    def have_come(self, timers: Iterable[MessageTimer]) -> None:
        """Their page is loaded: those that memory did not take have ended."""
        for timer in timers:
            if timer.ref is not None:
                row = self._messages.slots.get(timer.id, timer.version, timer.slot)
                if row is None or row.stage.is_closed:
                    self.forget(_place(timer), timer.ref)

    def waiting_of(self, ref: str, generation: int) -> int:
        """Returns how many occurrences of a schedule's generation wait for another attempt, or are in one."""
        return sum(
            occurrence.covered
            for (_, message_id, version), occurrence in self._by_ref.get(ref, {}).items()
            if occurrence.generation == generation and not self._messages.fences.cover(message_id, version)
        )


def _place(timer: MessageTimer) -> Place:
    return (timer.slot, timer.id, timer.version)
