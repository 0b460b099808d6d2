"""What stories play on: a watched store with one holder, or with two that both believe that they own the shard."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.simulation.monitors.store_monitor import StoreMonitor
from tests.simulation.world.observations import Record
from tests.support.builders import NOW, REQUESTS_ID, SECOND, Doc, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.effects import Commit, Effect
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Applied, Key, Put, Transaction
from tidegate_core.writes.start_gate import start_run
from tidegate_memory.store import MemoryStore

NEVER_STARTS = Behaviour(starts_after=None)
FOR_EVER = Behaviour(runs_for=None)
ONCE = every("10s", end="2025-11-13T02:13:32Z")


def run_by_hand(bench: ActorHarness) -> str:
    """A schedule far from its next instant; returns its run's id."""
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(20 * SECOND)
    return str(bench.receipts()["trigger-nightly"]["id"])


def two_under_one_limit(bench: ActorHarness, most: int = 1) -> None:
    """Two schedules of different shards, one limit."""
    for name in ("one", "two"):
        shared = [at_most(most, "program")]
        bench.request(an_apply(a_spec(name, ONCE, file="/jobs/same.py", constraints=shared, overlap="allow")))


def comes_through_the_inbox(
    bench: ActorHarness, document: Doc, append_time: int, shard: int = 0, number: int = 0, topic_id: str = REQUESTS_ID
) -> None:
    """A record of a message's request that another holder, of topic partition 7, has read and passed."""
    origin = Position(append_time, topic_id, 7, number).text()
    row = InboxRow(namespace="orders", name="x", kind="M", origin=origin, body=json.dumps(document))
    bench.store.write([Put(row.key(shard), {**to_item(row, row.key(shard)), "rev": 1})])


class Stage:
    """A holder that serves, on a store that is watched as the simulation watches it, ten minutes after any token was seen.

    Attributes:
        first: The holder.
        record: Where the monitor writes down what it objects to.
    """

    def __init__(self, **holding: Any) -> None:
        self.first = ActorHarness(owner="node-a", **holding)
        self.first.store = self.memory = MemoryStore(remembers_tokens=False)
        self.record = Record()
        StoreMonitor(self, self.record)
        self.first.run(SECOND)

    @property
    def now(self) -> int:
        return self.first.now

    @property
    def objections(self) -> list[str]:
        """What the monitor has seen that must not be."""
        return self.record.failures

    def successor(self, **holding: Any) -> ActorHarness:
        """Another node is told that all this is its own, while the first one is still at it; returns the second one."""
        second = self.idle_successor(**holding)
        second.run(SECOND)
        return second

    def idle_successor(self, **holding: Any) -> ActorHarness:
        """The same, before its first step."""
        return ActorHarness(beside=self.first, owner="node-b", **holding)


def takes(store: MemoryStore, transaction: Transaction) -> bool:
    """Whether the store takes it now."""
    return isinstance(store.transact(transaction), Applied)


def starts(run: str, now: int = NOW, *, attempt: int = 1, driver: str = "driver-1") -> Transaction:
    """A program at the gate."""
    return start_run(run, attempt, driver, now, f"start {attempt} {driver}")


def a_commit(name: str) -> Callable[[Effect], bool]:
    """Matches transactions of this name."""
    return lambda effect: isinstance(effect, Commit) and effect.transaction.name == name


def writing(prefix: str) -> Callable[[Effect], bool]:
    """Matches transactions that write an item whose sort key begins so."""
    return lambda effect: (
        isinstance(effect, Commit) and any(key.sk.startswith(prefix) for key in keys_of(effect.transaction))
    )


def keys_of(transaction: Transaction) -> list[Key]:
    return [action.key for action in transaction.actions]


def limit_of(store: MemoryStore) -> Doc:
    """Returns the one shared limit as it is stored: permits in use, and who holds them."""
    found = [item for item in store.items() if str(item["pk"]).startswith("LIMIT#")]
    assert len(found) == 1
    return {"in_use": found[0].get("in_use", 0), "holders": found[0].get("holders", frozenset())}
