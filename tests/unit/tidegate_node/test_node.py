"""A node's life: begun in order, ended in order, with the exit code that says why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.engine.actor_inputs import Input
from tidegate_core.engine.membership_lease import MAP_TRUSTED_MS
from tidegate_core.rows.effects import EffectRequest, NotProduced, Produced
from tidegate_core.rows.schema_version import NEWEST
from tidegate_node.assigned_partitions import AssignedPartitions
from tidegate_node.liveness.health_server import HealthServer
from tidegate_node.liveness.heartbeat import Verdict
from tidegate_node.liveness.heartbeat_loop import HeartbeatLoop
from tidegate_node.liveness.overload import Limits
from tidegate_node.node import Node, Parts
from tidegate_node.partition_driver import DriverEvents, PartitionDriver
from tidegate_node.startup_checks import EXIT_BUG, EXIT_TRY_LATER

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings

DAY_MS = 86_400_000


class FakeClient:
    """A Kafka client with a thread, as far as a node sees it; the membership among them holds what a test gives it."""

    def __init__(self, name: str, order: list[str]) -> None:
        self._name = name
        self._order = order
        self.polled_at_ms = 1_000_000
        self.rebalances = 0
        self.joined = False
        self.stuck = 0
        """So many orders to stop are not obeyed in time."""
        self.held: frozenset[int] = frozenset()

    def start(self) -> None:
        self._order.append(f"start {self._name}")

    async def stop(self) -> bool:
        self._order.append(f"stop {self._name}")
        if self.stuck:
            self.stuck -= 1
            return False
        self.held, self.joined = frozenset(), False
        return True

    def owned(self) -> frozenset[int]:
        return self.held

    def guard_holds(self) -> bool:
        return True

    def seek_and_resume(self, topic_partition: int, offset: int) -> None: ...

    def stop_reading(self, topic_partition: int) -> None: ...

    def taken(self, topic_partition: int, count: int) -> None: ...

    def commit_hint(self, topic_partition: int, offset: int) -> None: ...

    def standing(self, ends: Mapping[int, int]) -> Mapping[int, int]:
        return {}

    def restart(self, topic_partition: int, offset: int) -> None: ...

    async def prove(self, topic_partition: int) -> bool | None:
        return True


class ServingActor:
    """Serves from its first input on."""

    has_ended = False
    writes = NEWEST

    def __init__(self) -> None:
        self.is_serving = False

    def step(self, now: int, incoming: Input) -> list[EffectRequest]:
        self.is_serving = True
        return []

    def next_wake(self) -> int | None:
        return None

    def awaits(self, token: int) -> bool:
        return True

    def served_until(self, now: int) -> int | None:
        return now


class World:
    def __init__(self, around: Surroundings, appended_at: int | None = None) -> None:
        self.around = around
        around.bus.outcome = Produced(around.clock.now_ms() if appended_at is None else appended_at)
        self.order: list[str] = []
        # Nobody reads the map here.
        around.map_guard.read(around.facts.cluster.version, around.clock.monotonic_ms() + DAY_MS)
        loop = asyncio.get_running_loop()
        self.holdings = AssignedPartitions(around.facts, around.standing_still, around.clock, around.notes, loop)
        self.membership, reader, guarded, plain = (
            FakeClient(name, self.order) for name in ("membership", "reader", "guarded", "plain")
        )
        parts = Parts(
            around.facts,
            self.holdings,
            self.membership,
            reader,
            guarded,
            plain,
            around.map_guard,
            around.launch_effects(),
            around.clock,
            around.metrics,
            around.notes,
        )
        self.node = Node(parts)
        self.heartbeats = HeartbeatLoop(
            around.facts,
            store=around.store_effects(),
            plain=around.bus,
            clock=around.clock,
            metrics=around.metrics,
            notices=around.notes,
            act=self.node.act,
            served=self.holdings.served,
            takes=lambda: self.node.takes,
            limits=Limits(0, 1_000, 1_000),
        )
        events = DriverEvents(self.node.actor_failed, self.node.actor_ended)
        self.holdings.connect(
            lambda number: PartitionDriver(number, ServingActor, around.shell(), events, loop),
            around.bus,
            self.heartbeats,
        )
        health = HealthServer("127.0.0.1", 0, self.node.standing, self.node.refresh, around.metrics)
        self.node.connect(self.heartbeats, health)
        self.running = loop.create_task(self.node.run())

    async def ended(self) -> int:
        return await asyncio.wait_for(self.running, 20)


@pytest.fixture
async def world(around: Surroundings, until: Any) -> World:
    world = World(around)
    await until(lambda: "start membership" in world.order, "started")
    return world


async def test_given_an_order_to_stop_then_the_group_is_left_before_anything_is_closed(world: World) -> None:
    world.node.stop()

    assert await world.ended() == 0
    assert world.order[:4] == ["start plain", "start guarded", "start reader", "start membership"]
    assert world.order[4:6] == ["stop membership", "stop reader"]
    assert set(world.order[6:]) == {"stop guarded", "stop plain"}
    assert world.around.notes.names()[-1] == "node_stopped"


async def test_given_several_orders_then_the_first_one_counts(world: World) -> None:
    world.node.actor_failed(1, ValueError("a bug"), True)
    world.node.stop(0)

    assert await world.ended() == EXIT_BUG


async def test_given_heartbeats_that_fail_then_what_is_held_is_given_back_before_the_process_ends_with_70(
    around: Surroundings, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a review: the failure came again out of the stop, and the group heard of the end by the session's."""
    fails = asyncio.Event()

    async def run(beats: HeartbeatLoop) -> None:
        beats.clock_agreed.set()
        await fails.wait()
        raise RuntimeError("a bug")

    monkeypatch.setattr(HeartbeatLoop, "run", run)
    world = World(around)
    await until(lambda: "start membership" in world.order, "started")
    fails.set()

    assert await world.ended() == EXIT_BUG
    assert world.order[4:6] == ["stop membership", "stop reader"]
    (told,) = [fields for event, fields in world.around.notes.said if event == "task_failed"]
    assert told["task"].endswith("run")
    assert world.around.notes.names()[-1] == "node_stopped"


async def test_given_one_bug_then_the_node_goes_on(world: World) -> None:
    world.node.actor_failed(1, ValueError("a bug"), False)
    world.node.actor_ended(2)

    assert not world.node.standing().stopping
    world.node.stop()
    await world.ended()


async def test_given_no_broker_that_tells_the_time_then_it_takes_no_share_until_one_does(
    around: Surroundings, until: Any
) -> None:
    """Between its first share and its second beat a node whose clock is an hour ahead would fire all of that hour."""
    world = World(around)
    around.bus.outcome = NotProduced("unavailable", "away")
    await until(lambda: "node_started" in around.notes.names(), "started")
    await until(lambda: around.bus.produced, "a beat")
    await world.node.drain(True)
    await world.node.drain(False)
    assert world.node.standing().why_unready() == [
        "its clock has not been compared with the brokers' yet, and it takes no share before"
    ]
    assert "start membership" not in world.order
    assert "membership" not in world.node.standing().poll_silence_ms

    around.clock.pass_ms(1_000)
    around.bus.outcome = Produced(around.clock.now_ms() - 300)
    await until(lambda: "start membership" in world.order, "joined")
    assert "clock_agreed" in around.notes.names()
    world.node.stop()
    await world.ended()


async def test_given_a_start_with_a_clock_that_is_off_then_it_ends_without_ever_taking_a_share(
    around: Surroundings, until: Any
) -> None:
    world = World(around, appended_at=around.clock.now_ms() - 3_600_000)
    await until(lambda: around.bus.produced, "a beat")
    around.clock.pass_ms(1_000)

    assert await world.ended() == EXIT_TRY_LATER
    assert "start membership" not in world.order


async def test_given_a_clock_that_is_off_then_the_node_gives_up(world: World) -> None:
    await world.node.act(Verdict.CLOCK_OFF)

    assert await world.ended() == EXIT_TRY_LATER
    assert "clock_off" in world.around.notes.names()


async def test_given_a_store_out_of_reach_then_it_leaves_and_comes_back_with_the_store(
    world: World, until: Any
) -> None:
    world.membership.joined = True
    world.around.clock.pass_ms(30_000)
    world.order.clear()
    assert world.node.standing().joined

    stepping = asyncio.create_task(world.node.act(Verdict.STORE_OUT_OF_REACH))
    await until(stepping.done, "back")

    assert world.order == ["stop membership", "start membership"]
    names = world.around.notes.names()
    assert names.index("store_out_of_reach") < names.index("store_back")
    world.node.stop()
    await world.ended()


async def test_given_too_much_to_do_then_it_leaves_and_comes_back_when_told_that_it_is_at_ease(world: World) -> None:
    world.order.clear()
    await world.node.act(Verdict.OVERLOADED)
    assert world.order == ["stop membership"]
    assert not world.node.takes
    standing = world.node.standing()
    assert standing.why_unready() == ["it is too busy, and has handed its share to a node that is at ease"]
    assert "membership" not in standing.poll_silence_ms

    await world.node.drain(True)
    await world.node.drain(False)
    assert "start membership" not in world.order, "an order to drain that is taken back leaves it as it was"

    await world.node.act(Verdict.AT_EASE)
    assert world.order[-1] == "start membership"
    assert [name for name in world.around.notes.names() if name in {"node_overloaded", "node_at_ease"}] == [
        "node_overloaded",
        "node_at_ease",
    ]
    world.node.stop()
    await world.ended()


async def test_given_a_membership_that_hangs_in_its_end_then_it_is_not_started_before_it_has_ended(
    world: World, until: Any
) -> None:
    """Else the start would do nothing, and the thread would end afterwards: a node without membership."""
    world.membership.stuck = 2
    world.around.clock.pass_ms(30_000)
    world.order.clear()

    stepping = asyncio.create_task(world.node.act(Verdict.STORE_OUT_OF_REACH))
    await until(stepping.done, "back")

    assert world.order == ["stop membership"] * 3 + ["start membership"]
    world.node.stop()
    await world.ended()


async def test_given_an_expulsion_then_the_node_is_not_ready_until_it_has_joined_again(world: World) -> None:
    world.membership.joined, world.membership.rebalances = True, 1
    assert world.node.standing().why_unready() == []

    world.membership.joined, world.membership.rebalances = False, 2
    assert world.node.standing().why_unready() == ["it has not joined its group"]
    world.node.refresh()
    world.membership.joined, world.membership.rebalances = True, 3
    assert world.node.standing().why_unready() == []
    world.node.refresh()
    assert world.around.metrics.value("tidegate_rebalances_total") == 3

    world.node.stop()
    await world.ended()


async def test_given_holdings_then_health_and_figures_say_so(world: World, until: Any) -> None:
    assert not world.node.standing().joined
    world.membership.joined = True
    world.membership.held = frozenset({0, 1})
    world.holdings.assigned([0])
    await until(lambda: world.holdings.serving == {0}, "serving")

    standing = world.node.standing()
    assert (standing.joined, standing.held, standing.serving) == (True, frozenset({0, 1}), frozenset({0}))
    world.node.refresh()
    assert world.around.metrics.value("tidegate_owned_shards") == 4
    assert world.around.metrics.value("tidegate_serving_shards") == 2
    assert world.around.metrics.value("tidegate_guard_holds") == 1
    world.around.clock.pass_ms(DAY_MS + MAP_TRUSTED_MS)
    world.node.refresh()
    assert world.around.metrics.value("tidegate_guard_holds") == 0, "which shards are its own is not known any more"

    world.node.stop()
    await world.ended()
    assert world.holdings.held == frozenset()


async def test_given_an_order_to_drain_then_the_group_is_left_and_joined_again_when_it_goes(world: World) -> None:
    world.order.clear()
    world.membership.stuck = 1
    await world.node.drain(True)
    await world.node.drain(True)
    standing = world.node.standing()
    assert world.order == ["stop membership", "stop membership"]
    assert standing.why_unready() == ["an operator has drained it (tidegate node drain --undo)"]
    assert "membership" not in standing.poll_silence_ms, "its thread has ended, and that is no reason to restart"
    await world.node.drain(False)
    assert world.order[2:] == ["start membership"]
    world.node.stop()
    assert await world.ended() == 0


async def test_given_a_drained_node_whose_store_was_away_then_it_takes_nothing_when_the_store_is_back(
    world: World,
) -> None:
    await world.node.drain(True)
    world.order.clear()
    world.around.clock.pass_ms(30_000)
    await world.node.act(Verdict.STORE_OUT_OF_REACH)
    assert world.order == ["stop membership"]
    assert "store_back" in world.around.notes.names()
    world.node.stop()
    await world.ended()
