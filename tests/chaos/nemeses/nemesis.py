"""A nemesis: what it does, and what has to be felt of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.nemeses.strike import Strike
from tests.chaos.rig.rig import Rig, grown
from tests.support.checkers.hand_over_spans import REPEATED_MAX, Unrest
from tests.support.checkers.lateness import HandOver
from tests.support.checkers.messages import Crash, Wire
from tests.support.cluster.cluster import SESSION_S, SHARDS
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.until import now_ms

ALL_SHARDS: Final = frozenset(range(SHARDS))
SETTLED_MS: Final = int(SESSION_S * 1_000)
"""Once all shards are served the group may still give some of them to who came last, for a round or two."""


@dataclass(frozen=True, slots=True)
class Blow:
    """A fault that was made and healed.

    Attributes:
        nodes: Names of those that it met.
        at, healed_at: ms since the epoch.
        shards: That they held, and that others may have taken over meanwhile.
        wire: Whether what they had sent by then may have arrived when it was healed.
        felt: What the nemesis itself saw of it.
        crashes: Where there was more than one.
        silent_from: From then until it was healed nothing may start, ms since the epoch; None where it may.
        hand_overs: Of nodes that were told to end.
    """

    nodes: tuple[str, ...]
    at: int
    healed_at: int
    shards: frozenset[int] = frozenset()
    wire: bool = False
    felt: Mapping[str, int] = field(default_factory=dict)
    crashes: Sequence[tuple[int, frozenset[int]]] = ()
    silent_from: int | None = None
    hand_overs: Sequence[HandOver] = ()


@dataclass(frozen=True, slots=True)
class Nemesis:
    """One kind of fault.

    Attributes:
        name: As reports call it.
        blow: Makes the fault and heals it; of one node where it is about one. How long it lasts is drawn.
        needs: What has to be felt at least once in a phase of it.
        moves_after_ms: How long after the blow shards may change hands at the earliest; None: it moves none.
        possible: Whether it can be made now; a phase in which it cannot is left out.
    """

    name: str
    blow: Callable[[Rig, ClusterProcess], Blow]
    needs: tuple[str, ...]
    moves_after_ms: int | None = None
    possible: Callable[[Rig], bool] = lambda rig: True

    def strike(self, rig: Rig, node: ClusterProcess, just_before: Callable[[], None] = lambda: None) -> Strike:
        """Makes the fault, of that node where it is one node's, and waits until all shards are served again."""
        before = rig.counted()
        just_before()
        blow = self.blow(rig, node)
        rig.recovered()
        recovered_at = now_ms()
        felt = {**grown(before, rig.counted()), **blow.felt}
        struck = [*blow.crashes, *([(blow.at, blow.shards)] if blow.shards else [])]
        return Strike(
            self.name,
            blow.nodes,
            blow.at,
            blow.healed_at,
            recovered_at,
            felt,
            crashes=[Crash(at, shards, recovered_at, last_messages=REPEATED_MAX) for at, shards in struck],
            wires=[Wire(blow.at, blow.healed_at, blow.shards)] if blow.wire else [],
            unrests=self._unrests(blow, recovered_at),
            silence=None if blow.silent_from is None else (blow.silent_from, blow.healed_at),
            hand_overs=blow.hand_overs,
            bit=all(felt.get(name, 0) > 0 for name in self.needs),
        )

    def _unrests(self, blow: Blow, recovered_at: int) -> Sequence[Unrest]:
        """Shares move when a node goes and when it comes back, also those of nodes that the blow did not meet."""
        if self.moves_after_ms is None:
            return []
        return [Unrest(blow.at + self.moves_after_ms, recovered_at + SETTLED_MS, ALL_SHARDS)]
