"""Spans in which the rig itself had shards change hands: where somebody may have fallen, and when, as far as the rig knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.support.checkers.messages import Delivery

REPEATED_SPAN_MS: Final = 5_000
"""I8: what was sent in the last 5 s before a crash may repeat ..."""
REPEATED_MAX: Final = 1_000
"""... or the last 1,000 messages of a shard."""
CHECKPOINT_WRITE_MS: Final = 1_000
"""A checkpoint begins after 5 s; this is for its own write on a busy machine."""
REPEATED_AFTER_MS_MAX: Final = 10_000
"""Once all its shards are served, what repeats is sent at once; this is for a busy machine."""


@dataclass(frozen=True, slots=True)
class Unrest:
    """Nodes were killed, cut off, stopped, started or told to end, or kept from the store, and the group gave shards to others
    meanwhile. A hand-over that was not finished in time ends as a crash does, at some moment of the span.

    Attributes:
        begin, end: ms since the epoch.
        shards: That may have changed hands.
    """

    begin: int
    end: int
    shards: frozenset[int]

    def explains(self, first: Delivery, second: Delivery, others: Sequence[Delivery]) -> bool:
        """Whether I8 lets a message come twice because of it.

        Some moment of the span lies between the copies, and at the earliest such one the first copy was sent at most 5 s before, or was among
        the shard's last 1,000 messages.

        Args:
            first: A copy.
            second: The one that came next.
            others: First copies of all of the shard's messages.
        """
        fell = max(self.begin, first.appended_at)
        if first.shard not in self.shards or fell > min(self.end, second.appended_at):
            return False
        if second.appended_at > self.end + REPEATED_AFTER_MS_MAX:
            return False
        if fell - first.appended_at <= REPEATED_SPAN_MS + CHECKPOINT_WRITE_MS:
            return True
        return sum(first.appended_at < other.appended_at <= fell for other in others) < REPEATED_MAX
