"""Decides whether this node is too busy to keep its share while another node is at ease. Pure: `now` is an argument.

All work of a node passes its event loop. So the delay of the loop is a lower bound for the delay of everything. If a
peer that takes a share is at ease, the shards are better served there; the usual reason is another load on this
machine. The node leaves the group as for a drain, and comes back after a period at ease. The period doubles each time,
so that two nodes with too much work do not pass it to and fro.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EASE_SHARE: Final = 10
"""A node is at ease if its delay is at most this part of the overload threshold."""
HEARD_MS_MAX: Final = 15_000
"""Maximum age of a peer's report: three of its beats."""
BACK_MS_MAX: Final = 3_600_000
"""Longest pause, and the time without overload after which the pauses are short again."""
PEERS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of overload.

    Attributes:
        lag_ms: Delay of the loop from which the node is overloaded; 0 = the node never gives way.
        after_ms: Time for which each beat must find the overload.
        back_ms: Time at ease before the node takes a share again; it doubles each time.
    """

    lag_ms: int
    after_ms: int
    back_ms: int


class Overload:
    """One per process. Instants are monotonic ms.

    Attributes:
        lag_ms: Largest delay between the last two beats, which the last one reports.
        aside: Whether the node has given its share away.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._worst = 0
        self._since: int | None = None
        self._at_ease_since: int | None = None
        self._times = 0
        self._back_at: int | None = None
        self._peers: dict[str, int] = {}
        self.lag_ms = 0
        self.aside = False

    def looked(self, late_ms: int) -> None:
        """The loop ran a check this much later than planned."""
        self._worst = max(self._worst, late_ms)

    def beat(self, now: int, *, takes: bool) -> None:
        """A beat is sent; it reports the largest delay since the previous beat. A node without a share has none to give
        away.
        """
        self.lag_ms, self._worst = self._worst, 0
        busy, at_ease = takes and self._is_busy(self.lag_ms), self._is_at_ease(self.lag_ms)
        self._since = (now if self._since is None else self._since) if busy else None
        self._at_ease_since = (now if self._at_ease_since is None else self._at_ease_since) if at_ease else None
        if not self.aside and self._back_at is not None and now - self._back_at >= BACK_MS_MAX:
            self._times, self._back_at = 0, None

    def heard(self, owner: str, lag_ms: int, takes: bool, now: int) -> None:
        """Another node's beat. `takes`: whether that node is in the group, and so gets shards that others leave."""
        self._peers.pop(owner, None)
        if takes and self._is_at_ease(lag_ms):
            self._peers[owner] = now
            while len(self._peers) > PEERS_MAX:
                del self._peers[next(iter(self._peers))]

    def should_give_way(self, now: int) -> bool:
        if self.aside or self._since is None or now - self._since < self._limits.after_ms:
            return False
        return any(now - at <= HEARD_MS_MAX for at in self._peers.values())

    def should_come_back(self, now: int) -> bool:
        if not self.aside or self._at_ease_since is None:
            return False
        return now - self._at_ease_since >= min(self._limits.back_ms << (self._times - 1), BACK_MS_MAX)

    def gave_way(self) -> None:
        self.aside, self._since, self._at_ease_since = True, None, None
        self._times = min(self._times + 1, BACK_MS_MAX.bit_length())

    def came_back(self, now: int) -> None:
        self.aside, self._since, self._back_at = False, None, now

    def _is_busy(self, lag_ms: int) -> bool:
        return 0 < self._limits.lag_ms <= lag_ms

    def _is_at_ease(self, lag_ms: int) -> bool:
        return lag_ms * EASE_SHARE <= self._limits.lag_ms
