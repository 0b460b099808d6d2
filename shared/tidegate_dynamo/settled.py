"""Carries a transaction or a batch through to a verdict: sends, waits, reads back. Blocking, for thread pools.

The rules are the core's (`transactions/settlement.py`); the node's driver, the API and the simulator's driver share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from tidegate_core.effects import Committed, Refused, Unavailable, Written
from tidegate_core.store.values import Delete, Put, Transaction
from tidegate_core.transactions.settlement import ReadWitness, SendAgain, Settlement, Verdict
from tidegate_ports.store import Store, StoreUnavailable

SleepMs: TypeAlias = Callable[[float], None]
"""Waits so many milliseconds."""
Jitter: TypeAlias = Callable[[], float]
"""A number from 0 to 1 (`random.random`): pauses are spread over their whole length."""

WRITE_ATTEMPTS_MAX: Final = 8
"""Sends of one batch that do not get on. With the pauses below about 6 s in the mean, so that a throttled table is not
given up at once; the caller may simply ask again, batches repeat without harm."""
WRITE_PAUSE_FIRST_MS: Final = 50
WRITE_PAUSE_LAST_MS: Final = 2_000


def carry_out(
    store: Store, transaction: Transaction, sleep: SleepMs, jitter: Jitter, *, doubtful: bool = False
) -> Verdict:
    """Sends one transaction until it is settled.

    Args:
        store: Where to.
        transaction: With a token of its own.
        sleep: Waits.
        jitter: Spreads the pauses.
        doubtful: An earlier call for this very transaction ended as `Unavailable`: a refusal may be its own success.

    Returns:
        `Committed`: its effect was in the store. `Refused`: it was not applied, with the items that stood in the way.
        `Unavailable`: nobody knows, and an earlier send may still be applied; its author sends it again or reads.

    Raises:
        StoreRequestInvalid: It can never work.
    """
    settlement = Settlement(transaction, doubtful=doubtful)
    while True:
        settlement, step = settlement.answered(store.transact(transaction))
        if isinstance(step, SendAgain):
            sleep(step.after_ms_max * jitter())
        elif isinstance(step, ReadWitness):
            return _read_back(store, settlement, step)
        else:
            return step


def write_all(store: Store, actions: Sequence[Put | Delete], sleep: SleepMs, jitter: Jitter) -> Written | Unavailable:
    """Sends a batch until all of it is acknowledged. Unconditional writes are repeated without harm (DESIGN 2).

    Returns:
        `Written`, or `Unavailable` after `WRITE_ATTEMPTS_MAX` sends that got nothing done: some may be there.
    """
    pending = actions
    idle_sends = 0
    while True:
        before = len(pending)
        try:
            pending = store.write(pending)
        except StoreUnavailable:
            idle_sends += 1
        else:
            if not pending:
                return Written()
            # Progress, however little, is no reason to give up: each round has fewer left, so this ends.
            idle_sends = 0 if len(pending) < before else idle_sends + 1
        if idle_sends >= WRITE_ATTEMPTS_MAX:
            return Unavailable(f"store, {len(pending)} of {len(actions)} batched writes")
        sleep(min(WRITE_PAUSE_FIRST_MS << idle_sends, WRITE_PAUSE_LAST_MS) * jitter())


def _read_back(store: Store, settlement: Settlement, step: ReadWitness) -> Committed | Refused | Unavailable:
    try:
        witness = store.get([step.key]).get(step.key)
    except StoreUnavailable:
        _, verdict = settlement.unreadable()
    else:
        _, verdict = settlement.witnessed(witness)
    assert isinstance(verdict, Committed | Refused | Unavailable)
    return verdict
