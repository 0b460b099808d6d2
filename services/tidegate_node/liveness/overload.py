"""Whether this node is too busy to keep its share while another one is at ease (DESIGN 3). Pure: `now` is an argument.

What a node owes is due at an instant, and its loop is where everything of it passes: how late the loop comes to what it meant to do is how
late everything is at least. Where another node that takes a share is at ease, this one's shards are better off there: that its machine
is starved by something else is the usual reason. It leaves the group as for a drain, and comes back once it has been at ease for a
while, a longer one each time, so that two nodes that have too much together do not hand it to and fro.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EASE_SHARE: Final = 10
"""At ease is who is late by at most this part of what counts as overload."""
HEARD_MS_MAX: Final = 15_000
"""A peer's word is as old as three of its beats at most."""
BACK_MS_MAX: Final = 3_600_000
"""The longest pause, and how long a node stays without overload until its pauses are short again."""
PEERS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """When a node gives way.

    Attributes:
        lag_ms: Its loop is overloaded when it comes so late; 0 = it never gives way.
        after_ms: For so long in each beat.
        back_ms: At ease for so long it takes a share again, the first time; twice as long each next time.
    """

    lag_ms: int
    after_ms: int
    back_ms: int


class Overload:
    """One per process. Instants are monotonic ms.

    Attributes:
        lag_ms: The worst of the last beat, which the next one tells.
        aside: It has given its share away.
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
        """The loop came so much later to a look than it was meant to."""
        self._worst = max(self._worst, late_ms)

    def beat(self, now: int, *, takes: bool) -> None:
        """A beat is sent: what was seen since the one before it counts as one. Who takes no share has none to hand over."""
        self.lag_ms, self._worst = self._worst, 0
        busy, at_ease = takes and self._is_busy(self.lag_ms), self._is_at_ease(self.lag_ms)
        self._since = (now if self._since is None else self._since) if busy else None
        self._at_ease_since = (now if self._at_ease_since is None else self._at_ease_since) if at_ease else None
        if not self.aside and self._back_at is not None and now - self._back_at >= BACK_MS_MAX:
            self._times, self._back_at = 0, None

    def heard(self, owner: str, lag_ms: int, takes: bool, now: int) -> None:
        """Another node's beat; `takes`: it is in the group, and is given what others leave."""
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
