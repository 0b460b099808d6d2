"""Carries a transaction through to a verdict: sends, waits, reads back. Blocking: the API and `tidegate init` use it.

The rules are the core's (`writes/settlement.py`), which the node's driver follows on its loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.settlement import ReadWitness, SendAgain, Settlement, Verdict
from tidegate_ports.store import Store, StoreUnavailable

SleepMs: TypeAlias = Callable[[float], None]
"""Waits so many milliseconds."""
Jitter: TypeAlias = Callable[[], float]
"""A number from 0 to 1 (`random.random`): pauses are spread over their whole length."""


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


def _read_back(store: Store, settlement: Settlement, step: ReadWitness) -> Committed | Refused | Unavailable:
    try:
        witness = store.get([step.key]).get(step.key)
    except StoreUnavailable:
        _, verdict = settlement.unreadable()
    else:
        _, verdict = settlement.witnessed(witness)
    assert isinstance(verdict, Committed | Refused | Unavailable)
    return verdict
