"""Carries a transaction through to a verdict: sends, waits, reads back. Blocking: the API and `tidegate init` use it.

The rules are those of the core (`writes/settlement.py`), which the node's driver follows on its loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.settlement import ReadWitness, SendAgain, Settlement, Verdict
from tidegate_ports.store import Store, StoreUnavailable

SleepMs: TypeAlias = Callable[[float], None]
"""Waits for so many milliseconds."""
Jitter: TypeAlias = Callable[[], float]
"""Returns a number from 0 to 1 (`random.random`), which spreads pauses over their whole length."""


def carry_out(
    store: Store, transaction: Transaction, sleep: SleepMs, jitter: Jitter, *, doubtful: bool = False
) -> Verdict:
    """Sends one transaction until it is settled.

    Args:
        store: Store to send to.
        transaction: Transaction with its own token.
        sleep: Function that waits.
        jitter: Function that spreads the pauses.
        doubtful: Whether an earlier call for the same transaction ended as `Unavailable`. A refusal may then stem from
            its own success.

    Returns:
        `Committed`: the effect is in the store. `Refused`: it was not applied; the refusing items are included.
        `Unavailable`: the outcome is unknown, and an earlier send may still be applied. The caller sends it again or
        reads.

    Raises:
        StoreRequestInvalid: The transaction can never work.
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
