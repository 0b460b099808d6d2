"""Faults of the store and of the network before it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.simulation.faults.random_draws import Period, period, rate
from tests.simulation.world.timeline import DELAYS_MAX
from tests.simulation.world.transaction_names import OWNERLESS, OWNERS, RARE, RAREST

AIMING = 0.75
"""Share of the worlds whose faults aim at some transactions."""


@dataclass(frozen=True, slots=True)
class StoreFaults:
    """Rates per call, 0 to 1.

    Attributes:
        latency_ms: Mean.
        timeout_ms: After which a call without an answer counts as lost.
        lost_request, lost_answer: Never arrives; arrives, and nobody is told.
        late: Arrives seconds later, when its sender has given up, may be dead, or is fenced.
        duplicate: Arrives a second time, up to a minute later.
        throttled, unprocessed, unreadable: Turned away, as a whole, a batch's items, a read.
        clash: Share of the transactions that meet another one, whose author is not in this world.
        aimed: Transactions that meet each of these faults far more often.
        hunted: Of those: what nearly always meets one of them.
        aimed_outs: Periods in which those get no answer, and all else does.
        write_outs: Periods in which transactions get no answer, and reads do.
        conflicts: Two transactions that touch the same item within moments exclude each other.
        scattered_ms: A batch's items, and the items of one read, are up to this far apart.
        remembers_tokens: False is DynamoDB ten minutes later.
        page: Items of a query's page at most.
        brown_outs: Periods without any answer.
        stalled_loads: Periods in which queries for messages' timer rows get no answer.
        slow_loads: Whether those get one after all, some 10 s late.
        stalled_batches: Periods in which batches with messages' timer rows are not written.
        stalled_checkpoints: Periods in which checkpoints of messages do not arrive.
    """

    latency_ms: float
    timeout_ms: int
    lost_request: float = 0.0
    lost_answer: float = 0.0
    late: float = 0.0
    duplicate: float = 0.0
    throttled: float = 0.0
    unprocessed: float = 0.0
    unreadable: float = 0.0
    clash: float = 0.0
    aimed: tuple[str, ...] = ()
    hunted: tuple[str, ...] = ()
    aimed_outs: tuple[Period, ...] = ()
    write_outs: tuple[Period, ...] = ()
    conflicts: bool = False
    scattered_ms: int = 0
    remembers_tokens: bool = True
    page: int = 1_000
    brown_outs: tuple[Period, ...] = ()
    stalled_loads: tuple[Period, ...] = ()
    slow_loads: bool = False
    stalled_batches: tuple[Period, ...] = ()
    stalled_checkpoints: tuple[Period, ...] = ()

    @property
    def under_way_ms_max(self) -> int:
        """How long what has reached the store may be without an answer, if nothing else befalls it."""
        return int(self.scattered_ms + DELAYS_MAX * self.latency_ms)


def calm_store() -> StoreFaults:
    return StoreFaults(latency_ms=4, timeout_ms=500)


def draw_store(chance: Random, busy_ms: int) -> StoreFaults:
    """Draws all but the stalls: those need a load that meets them (`scenarios.py`)."""
    aims = {chance.choice(OWNERS + OWNERLESS), chance.choice(RARE), *chance.sample(RAREST, 2)}
    aimed = tuple(sorted(aims)) if chance.random() < AIMING else ()
    brown_outs = tuple(period(chance, busy_ms, 1_000, 12_000) for _ in range(chance.choice((0, 0, 1, 1, 2))))
    return StoreFaults(
        latency_ms=chance.choice((2, 4, 8, 20)),
        timeout_ms=chance.choice((300, 1_000, 2_000)),
        lost_request=rate(chance, 0.04),
        lost_answer=rate(chance, 0.04),
        late=rate(chance, 0.03),
        duplicate=rate(chance, 0.05),
        throttled=rate(chance, 0.05),
        unprocessed=rate(chance, 0.3),
        unreadable=rate(chance, 0.03),
        clash=rate(chance, 0.02),
        aimed=aimed,
        aimed_outs=tuple(period(chance, busy_ms, 5_000, 20_000) for _ in range(2)) if aimed else (),
        write_outs=tuple(period(chance, busy_ms, 1_000, 8_000) for _ in range(chance.choice((0, 0, 1, 2)))),
        conflicts=chance.random() < 0.7,
        scattered_ms=chance.choice((0, 5, 100, 1_500)),
        remembers_tokens=chance.random() < 0.5,
        page=chance.choice((1_000, 1_000, 5, 2)),
        brown_outs=brown_outs,
    )
