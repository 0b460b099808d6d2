"""Goes once `commands/scope_suspension.py` names a test: the story is in `tests/simulation/stories/clauses/`."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.stories.stage import takes
from tests.support.builders import HOUR, NOW
from tidegate_core.records.messages import HeldMessage, MessageTimer
from tidegate_core.store import keys
from tidegate_core.store.values import Transaction
from tidegate_core.transactions.controls import hold_messages, let_go_messages
from tidegate_core.transactions.ownership import acquire_shard
from tidegate_memory.store import MemoryStore


def an_owned_store() -> MemoryStore:
    store = MemoryStore(remembers_tokens=False)
    assert takes(store, acquire_shard(0, None, None, 1, 1, "node-a", "acquire"))
    return store


def holds(moves: int) -> Transaction:
    held = HeldMessage(id="m", version="1", namespace="flights", origin="o", slot=NOW, attempt=1, size=1)
    return hold_messages(0, 1, moves, [held], f"hold {moves}")


def lets_go(moves: int) -> Transaction:
    slot = NOW + moves * HOUR
    timer = MessageTimer(slot=slot, id="m", version="1", origin="o", attempt=1, expires_at=0)
    return let_go_messages(0, 1, moves, [timer], f"let go {moves}")


def a_hold_arrives_again(times_held: int) -> Iterable[str]:
    """The message was let go since, and is on its way; its namespace may be resumed and suspended meanwhile."""
    store = an_owned_store()
    for moves in range(0, 2 * times_held, 2):
        assert takes(store, holds(moves))
        assert takes(store, lets_go(moves + 1))
    takes(store, holds(2 * times_held - 2))
    if store.peek(keys.held_message(0, "m", "1")) is not None:
        yield "I8: a message that was let go is held back once more, and will be delivered a second time"


def a_later_hold_arrives_again() -> Iterable[str]:
    return a_hold_arrives_again(times_held=2)
