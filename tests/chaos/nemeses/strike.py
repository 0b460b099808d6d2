"""What a nemesis did, what of it was felt, and what a judge has to know of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.checkers.hand_over_spans import Unrest
from tests.support.checkers.lateness import HandOver
from tests.support.checkers.messages import Crash, Wire


class VoidPhase(AssertionError):
    """A fault was made and nobody felt it: what this phase shows is nothing."""


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault from its begin to the cluster's recovery.

    Attributes:
        nemesis: Its name.
        nodes: Whom it met.
        at, healed_at, recovered_at: ms since the epoch; the last one when all shards were served again.
        felt: How often what, by the nodes' counters and logs and by the proxies.
        crashes, wires, unrests: Why messages may repeat (I8), by what the rig did.
        silence: Nothing may start between these two moments, ms since the epoch; None where it may.
        hand_overs: Of nodes that were told to end.
        bit: Whether all that has to be felt of it was felt of this one.
    """

    nemesis: str
    nodes: tuple[str, ...]
    at: int
    healed_at: int
    recovered_at: int
    felt: Mapping[str, int] = field(default_factory=dict)
    crashes: Sequence[Crash] = ()
    wires: Sequence[Wire] = ()
    unrests: Sequence[Unrest] = ()
    silence: tuple[int, int] | None = None
    hand_overs: Sequence[HandOver] = ()
    bit: bool = True


def felt_by(strikes: Iterable[Strike]) -> Counter[str]:
    """Returns what was felt of several strikes together."""
    felt: Counter[str] = Counter()
    for strike in strikes:
        felt.update(strike.felt)
    return felt


def assert_bit(nemesis: str, needs: Iterable[str], strikes: Sequence[Strike]) -> None:
    """Fails where what a fault is about was never felt.

    Raises:
        VoidPhase: The message names what is missing, and what was felt.
    """
    felt = felt_by(strikes)
    missing = [name for name in needs if felt[name] == 0]
    if missing or not strikes:
        seen = ", ".join(f"{name} {count}" for name, count in sorted(felt.items())) or "nothing"
        raise VoidPhase(
            f"{nemesis}, {len(strikes)} strikes: no {', '.join(missing) or 'strike'}; felt were {seen}. "
            "This phase shows nothing: let the fault last longer, or put more load on what it meets"
        )
