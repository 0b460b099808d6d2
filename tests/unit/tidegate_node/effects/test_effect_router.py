from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.faults import small_limits
from tidegate_core.engine.membership_lease import MAP_TRUSTED_MS
from tidegate_core.rows.effects import Unavailable, Write, Written
from tidegate_core.rows.store_operations import Batch, Key, Put
from tidegate_core.shard.map_transition import HAND_OVER_MS
from tidegate_kafka.clients.client_config import GUARDED_MS_MAX

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


async def test_given_a_map_that_nobody_has_read_for_a_minute_then_nothing_irreversible_is_done_until_it_is_read_again(
    around: Surroundings,
) -> None:
    """Found by simulation (seed 32004570): a holder that had not heard of the next map sent the older version of a recurring message after
    the update was answered, by who had its shard under that map.
    """
    shell, version = around.shell(), around.facts.cluster.version
    around.clock.pass_ms(MAP_TRUSTED_MS - 1)
    assert shell.may_act(0, version)
    around.clock.pass_ms(1)
    assert not shell.may_act(0, version)
    around.map_guard.read(version, around.clock.monotonic_ms())
    assert shell.may_act(0, version)


async def test_given_the_next_map_then_what_is_held_under_the_one_before_is_not_acted_for_any_longer_by_it(
    around: Surroundings,
) -> None:
    """It is read by a node that was out of the store's reach for a minute: what it hands over has been taken by then."""
    shell, version = around.shell(), around.facts.cluster.version
    around.clock.pass_ms(MAP_TRUSTED_MS)
    around.map_guard.read(version + 1, around.clock.monotonic_ms())
    assert [shell.may_act(0, each) for each in (version, version + 1)] == [False, True]


def test_given_what_a_former_holder_may_have_sent_then_it_has_arrived_before_its_shards_are_taken() -> None:
    in_worlds = (small_limits.MAP_TRUSTED_MS, small_limits.HAND_OVER_MS)
    for trusted_ms, hand_over_ms in ((MAP_TRUSTED_MS, HAND_OVER_MS), in_worlds):
        assert trusted_ms + GUARDED_MS_MAX < hand_over_ms
