"""Up to when all that was appended is counted, or lies in the inbox, of each schedule of a shard; and whose events wait there for that.

Behind an outage one topic partition is read before another. Counted at once, what came late in the one would let a deadline pass that
something in the other was in time for (SEMANTICS 6.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tidegate_core.model.instants import Instant

KEPT_MS = 10 * 60_000
"""What waits for more than is known here waits once more."""


class Through(NamedTuple):
    """What is settled of a schedule.

    Attributes:
        instant: All that was appended by then is counted, or lies in the inbox; 0: nothing is known.
        unread: But for this, which was waited for long enough.
    """

    instant: Instant = 0
    unread: tuple[str, ...] = ()


NOTHING = Through()


class Settled:
    """Of one shard; a successor finds out anew."""

    def __init__(self) -> None:
        self._through: dict[str, Through] = {}
        self._waiting: dict[str, None] = {}
        self._unasked: dict[str, None] = {}
        self._begin: Callable[[], None] | None = None

    def connect(self, begin: Callable[[], None]) -> None:
        """Says who finds out for those that wait; called for the first one for whom nobody does yet."""
        self._begin = begin

    def through(self, ref: str) -> Through:
        """Returns what is known of a schedule, `<ns>/<name>`."""
        return self._through.get(ref, NOTHING)

    def remember(self, refs: Iterable[str], instant: Instant, unread: Sequence[str]) -> None:
        """All is settled that was appended by then, but for what is `unread`.

        Of two that find out at once, who began first may come last; what is known by then stays.
        """
        for ref in refs:
            if instant >= self.through(ref).instant:
                self._through.pop(ref, None)
                self._through[ref] = Through(instant, tuple(unread))  # Latest last.
        while self._through and next(iter(self._through.values())).instant <= instant - KEPT_MS:
            del self._through[next(iter(self._through))]

    def waits(self, ref: str) -> bool:
        return ref in self._waiting

    def wait(self, ref: str) -> None:
        """Some of the schedule's events stay in the inbox."""
        if self._begin is None or ref in self._waiting:
            return
        is_first = not self._unasked
        self._waiting[ref] = self._unasked[ref] = None
        if is_first:
            self._begin()

    def take_unasked(self) -> list[str]:
        """Returns those that wait, and for whom nobody finds out yet; the caller does."""
        unasked, self._unasked = self._unasked, {}
        return list(unasked)

    def take_waiting(self, refs: Iterable[str]) -> set[str]:
        """Returns those of the schedules whose events wait; they wait no longer."""
        taken = {ref for ref in refs if ref in self._waiting}
        for ref in taken:  # order-free: each leaves, whichever comes first
            del self._waiting[ref]
            self._unasked.pop(ref, None)
        return taken
