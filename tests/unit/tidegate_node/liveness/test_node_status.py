"""A node's card, and the order to hold nothing."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.node_status import DrainOrder, NodeStatus
from tidegate_core.rows.schema_version import NEWEST, StoreSchema
from tidegate_core.rows.store_operations import Put
from tidegate_node.liveness.node_status import NodeStatusWriter

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


def a_card(around: Surroundings, **fields: Any) -> NodeStatus:
    given: dict[str, Any] = {
        "owner": around.facts.owner,
        "node": "node-1",
        "version": "0.1.0",
        "tzdata": "2025.2",
        "started_at": 5,
        "seen": around.clock.now_ms(),
    }
    return NodeStatus(**{**given, **fields})


def order_to_drain(around: Surroundings) -> None:
    order = DrainOrder(at=around.clock.now_ms(), actor="ana")
    key = order.key(around.facts.owner)
    around.store.write([Put(key, to_item(order, key))])


def never(refusal: str) -> None:
    pytest.fail(refusal)


async def test_given_a_turn_then_the_card_is_written_as_it_stands_after_the_order(around: Surroundings) -> None:
    heard: list[bool] = []

    async def drain(wanted: bool) -> None:
        heard.append(wanted)

    presence = NodeStatusWriter(
        around.facts.owner,
        around.store_effects(),
        around.notes,
        lambda: a_card(around, drained=heard[-1], held=(3, 1)),
        drain,
        lambda _: None,
        never,
    )
    await presence.turn()
    order_to_drain(around)
    await presence.turn()
    assert heard == [False, True]
    item = around.store.peek(keys.node_status(around.facts.owner))
    assert item is not None
    assert from_item(NodeStatus, item) == a_card(around, drained=True, held=(3, 1))
    assert item["expires_at"] == around.clock.now_ms() // 1000 + 86_400


async def test_given_an_end_then_card_and_order_go(around: Surroundings) -> None:
    async def drain(wanted: bool) -> None: ...

    presence = NodeStatusWriter(
        around.facts.owner, around.store_effects(), around.notes, lambda: a_card(around), drain, lambda _: None, never
    )
    order_to_drain(around)
    await presence.turn()
    await presence.leave()
    assert around.store.peek(keys.node_status(around.facts.owner)) is None
    assert around.store.peek(keys.drain_order(around.facts.owner)) is None


async def test_given_an_end_while_the_card_is_written_then_no_card_comes_behind_it(
    around: Surroundings, until: Any
) -> None:
    """Ending a task ends no call that a thread has begun."""
    goes_on = threading.Event()

    class Slow:
        """The store, whose first write takes its time."""

        def __getattr__(self, name: str) -> Any:
            return getattr(around.store, name)

        def write(self, actions: Any) -> Any:
            begun.append(actions)
            if len(begun) == 1:
                assert goes_on.wait(30)
            return around.store.write(actions)

    async def drain(wanted: bool) -> None: ...

    begun: list[Any] = []
    presence = NodeStatusWriter(
        around.facts.owner,
        around.store_effects(Slow()),
        around.notes,
        lambda: a_card(around),
        drain,
        lambda _: None,
        never,
    )
    task = asyncio.create_task(presence.run())
    await until(lambda: begun, "the card is under way")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    leaving = asyncio.create_task(presence.leave())
    for _ in range(20):
        await asyncio.sleep(0)  # Everything that may go on without that thread does so now.
    goes_on.set()
    await leaving
    await until(lambda: len(begun) == 2, "card and order are taken away")
    around.threads.shutdown(wait=True)
    assert around.store.peek(keys.node_status(around.facts.owner)) is None


async def test_given_a_bug_then_it_is_said_and_the_next_turn_comes(around: Surroundings, until: Any) -> None:
    async def drain(wanted: bool) -> None:
        raise RuntimeError("a bug")

    presence = NodeStatusWriter(
        around.facts.owner,
        around.store_effects(),
        around.notes,
        lambda: a_card(around),
        drain,
        lambda _: None,
        never,
        every_s=0.001,
    )
    task = asyncio.create_task(presence.run())
    await until(lambda: around.notes.names().count("task_failed") >= 2, "said twice")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("schema", "refusals", "writes"),
    [
        pytest.param(StoreSchema(writes=NEWEST + 1), 1, [], id="written in a version that it cannot read"),
        pytest.param(
            StoreSchema(writes=NEWEST, closing=NEWEST + 1), 0, [NEWEST], id="about to be, which may be taken back"
        ),
        pytest.param(StoreSchema(writes=NEWEST), 0, [NEWEST], id="its own"),
    ],
)
async def test_given_a_store_that_was_migrated_meanwhile_then_its_actors_hear_so_or_the_process_that_it_is_too_old(
    around: Surroundings, schema: StoreSchema, refusals: int, writes: list[int]
) -> None:
    async def drain(wanted: bool) -> None: ...

    told, heard = list[str](), list[int]()
    around.store.write([Put(keys.SCHEMA_KEY, to_item(schema, keys.SCHEMA_KEY))])
    store = around.store_effects()
    await NodeStatusWriter(
        around.facts.owner, store, around.notes, lambda: a_card(around), drain, heard.append, told.append
    ).turn()
    assert (len(told), heard) == (refusals, writes)
