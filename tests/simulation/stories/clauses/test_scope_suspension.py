"""Conditions that hold messages back and let them go once, under wide controls."""

from __future__ import annotations

import pytest

from tests.simulation.stories.stage import takes
from tests.support.builders import HOUR, NOW
from tidegate_core.rows import keys
from tidegate_core.rows.message import HeldMessage, MessageTimer
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.fencing import acquire_shard
from tidegate_core.writes.message_delivery import hold_messages, release_messages
from tidegate_memory.store import MemoryStore


def holds(moves: int) -> Transaction:
    held = HeldMessage(id="m", version="1", namespace="flights", origin="o", slot=NOW, attempt=1, size=1)
    return hold_messages(0, 1, moves, [held], f"hold {moves}")


def lets_go(moves: int) -> Transaction:
    slot = NOW + moves * HOUR
    timer = MessageTimer(slot=slot, id="m", version="1", origin="o", attempt=1, expires_at=0)
    return release_messages(0, 1, moves, [timer], f"let go {moves}")


@pytest.mark.parametrize("times_held", [pytest.param(1, id="the first hold"), pytest.param(2, id="a later hold")])
def test_given_a_message_that_was_let_go_when_its_hold_arrives_again_then_it_is_not_held_back(times_held: int) -> None:
    """The message is on its way. Its namespace may have been resumed and suspended meanwhile."""
    store = MemoryStore(remembers_tokens=False)
    assert takes(store, acquire_shard(0, None, None, 1, 1, "node-a", "acquire"))
    for moves in range(0, 2 * times_held, 2):
        assert takes(store, holds(moves))
        assert takes(store, lets_go(moves + 1))
    takes(store, holds(2 * times_held - 2))
    held = store.peek(keys.held_message(0, "m", "1"))
    assert held is None, "I8: a message that was let go is held back again, and will be delivered a second time"
