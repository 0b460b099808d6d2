from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate_core.effects import Unavailable, Write, Written
from tidegate_core.store.values import Batch, Key, Put

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings

BATCH = Batch("messages", (Put(Key("S", "1"), {"pk": "S", "sk": "1"}),))


async def test_given_a_lapsed_guard_then_what_is_guarded_is_not_written_and_the_rest_is(around: Surroundings) -> None:
    shell = around.shell()
    around.bus.holds = False
    assert isinstance(await shell.ask(Write(BATCH, guarded=True), around.bus.guard_holds), Unavailable)
    assert around.store.get([BATCH.actions[0].key]) == {}
    assert await shell.ask(Write(BATCH), around.bus.guard_holds) == Written()
    assert BATCH.actions[0].key in around.store.get([BATCH.actions[0].key])


async def test_given_a_guard_that_holds_then_what_is_guarded_is_written(around: Surroundings) -> None:
    assert await around.shell().ask(Write(BATCH, guarded=True), around.bus.guard_holds) == Written()
