"""When the whole machine stood still: nobody had any time, and whoever measures others by a clock must know.

A stop that outlasts the nodes' session puts them out of their group as a fall would: what they had sent may come twice (I8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.support.checkers.hand_over_spans import Unrest
from tests.support.cluster.background import Background
from tests.support.cluster.cluster import SESSION_S, SHARDS
from tests.support.cluster.until import now_ms

LOOK_EVERY_S: Final = 0.1
NOTICED_MS: Final = 2_500
"""Less than half a session: a machine that works has nobody wait for so long."""
BACK_MS: Final = int(2 * SESSION_S * 1_000)
"""From its end until shards that changed hands are served: the group notices, and gives them to others."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """Between two looks, ms since the epoch."""

    begin: int
    end: int


class Standstills(Background):
    """Looks at the clock from the begin of its `with` block to its end.

    Attributes:
        found: So far, in their order.
    """

    def __init__(self) -> None:
        super().__init__("standstills")
        self.found: list[Standstill] = []

    def run(self) -> None:
        before = now_ms()
        while not self.stopping.wait(LOOK_EVERY_S):
            now = now_ms()
            self.looked(before, now)
            before = now

    def looked(self, before: int, now: int) -> None:
        """Takes two looks, one after another."""
        if now - before >= NOTICED_MS:
            self.found.append(Standstill(before, now))

    def unrests(self) -> list[Unrest]:
        """Returns when any shard may have changed hands because of them."""
        return [Unrest(each.begin, each.end + BACK_MS, frozenset(range(SHARDS))) for each in self.found]
