"""Which effects a bench's scripts mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tidegate_core.rows.effects import Commit, Effect, Produce, Submit, Write

Match: TypeAlias = Callable[[Effect], bool]


def a_commit(*names: str) -> Match:
    """Transactions of these names, such as `cursor`."""
    return lambda effect: isinstance(effect, Commit) and effect.transaction.name in names


def a_batch(*names: str) -> Match:
    """Unconditional batches of these names, such as `messages`."""
    return lambda effect: isinstance(effect, Write) and effect.batch.name in names


def a_produce(topic: str) -> Match:
    return lambda effect: isinstance(effect, Produce) and effect.topic == topic


def a_submit() -> Match:
    return lambda effect: isinstance(effect, Submit)
