"""The map as a running node sees it: read every second, and grown after the requests topic (DESIGN 3)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tidegate_core.engine.membership_lease import MAP_TRUSTED_MS
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.writes.partition_map import ClusterMap, Cut, follow_map, map_of, put_first_map
from tidegate_node.assigned_partitions import AssignedPartitions
from tidegate_node.topics.partition_map_watch import ASK_EVERY_MS, FOLLOWED, MapWatch
from tidegate_ports.bus import Topic

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


class World:
    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.followed: list[ClusterMap] = []
        around.store.transact(put_first_map(around.facts.cluster, "init"))
        self.brokers_tell(around.facts.cluster.topic_partitions)

    def watch(self, *, beyond: frozenset[int] = frozenset(), doubted: bool = False) -> MapWatch:
        around, world = self.around, self

        class Listening(AssignedPartitions):
            beyond_the_map = beyond

            def __init__(self) -> None:
                self.requests_doubted = doubted

            def follow(self, cluster: ClusterMap) -> None:
                around.facts.follow(cluster)
                world.followed.append(cluster)

        store = around.store_effects()
        return MapWatch(around.facts, Listening(), around.map_guard, store, around.bus, around.clock, around.notes)

    def brokers_tell(self, topic_partitions: int, topic_id: str | None = None) -> None:
        requests = self.around.facts.requests
        self.around.bus.topics[requests.name] = Topic(requests.name, topic_id or requests.id, topic_partitions)

    @property
    def stored(self) -> ClusterMap:
        return map_of(self.around.store.get([MAP_KEY])[MAP_KEY])


@pytest.fixture
def world(around: Surroundings) -> World:
    return World(around)


async def test_given_a_map_that_somebody_grew_then_it_is_followed_once(world: World) -> None:
    world.brokers_tell(6)
    world.around.store.transact(follow_map(world.stored.grown_to(6), "command"))
    watch = world.watch()

    await watch.look()
    await watch.look()

    assert [(each.version, each.topic_partitions) for each in world.followed] == [(2, 6)]
    assert world.around.facts.holding(5, 1).former_maps == (Cut(1, 4, world.stored.topic_id),)
    assert world.around.facts.holding(5, 1).requests.topic_partitions == 6


async def test_given_a_store_that_is_asked_for_the_map_then_it_is_trusted_from_when_it_was_asked(world: World) -> None:
    guard, clock = world.around.map_guard, world.around.clock
    asked_at = clock.monotonic_ms()
    await world.watch().look()
    assert guard.holds(1, asked_at + MAP_TRUSTED_MS - 1)
    assert not guard.holds(1, asked_at + MAP_TRUSTED_MS)
    world.around.store.transact(follow_map(world.stored.grown_to(6), "command"))
    clock.pass_ms(10)
    await world.watch().look()
    assert [guard.holds(version, asked_at + MAP_TRUSTED_MS) for version in (1, 2)] == [False, True]


async def test_given_a_topic_that_another_tool_grew_then_the_map_follows_within_a_minute(world: World) -> None:
    watch = world.watch()
    await watch.look()
    world.brokers_tell(5)
    await watch.look()
    assert world.stored.version == 1

    world.around.clock.pass_ms(ASK_EVERY_MS)
    await watch.look()
    await watch.look()

    assert (world.stored.version, world.stored.topic_partitions) == (2, 5)
    assert [each.version for each in world.followed] == [2]


async def test_given_what_the_group_gave_beyond_the_map_then_the_brokers_are_asked_at_once(world: World) -> None:
    watch = world.watch(beyond=frozenset({4}))
    await watch.look()
    world.brokers_tell(5)

    await watch.look()

    assert world.stored.topic_partitions == 5


async def test_given_two_nodes_that_see_it_grow_then_one_map_is_written(world: World) -> None:
    world.brokers_tell(5)
    first, second = world.watch(), world.watch()
    await first.look()
    world.brokers_tell(6)
    await second.look()
    assert world.stored.history[1:] == (Cut(2, 5, world.stored.topic_id), Cut(3, 6, world.stored.topic_id))


async def test_given_records_of_another_topic_then_the_map_follows_it_at_once(world: World) -> None:
    watch = world.watch()
    await watch.look()
    world.brokers_tell(4, "cd" * 16)
    await watch.look()
    assert world.stored.version == 1

    await world.watch(doubted=True).look()
    await watch.look()

    assert (world.stored.version, world.stored.topic_id, world.stored.topic_partitions) == (2, "cd" * 16, 4)
    assert world.around.facts.requests.id == "cd" * 16
    assert [each.version for each in world.followed] == [2]


async def test_given_a_broker_that_tells_the_former_topic_late_then_no_map_is_written(world: World) -> None:
    former = world.around.facts.requests.id
    world.brokers_tell(4, "cd" * 16)
    await world.watch().look()
    world.brokers_tell(9, former)
    await world.watch(doubted=True).look()
    assert (world.stored.version, world.stored.topic_id) == (2, "cd" * 16)


@pytest.mark.parametrize(("number", "topic_id"), [(3, None), (3, "cd" * 16)], ids=["fewer", "another topic with fewer"])
async def test_given_no_growth_then_no_map_is_written(world: World, number: int, topic_id: str | None) -> None:
    world.brokers_tell(number, topic_id)
    await world.watch().look()
    assert world.stored == dataclasses.replace(world.around.facts.cluster)
    assert ("requests_made_anew" in world.around.notes.names()) == (topic_id is not None)


async def test_given_a_topic_made_anew_then_it_is_said_until_the_map_has_followed(world: World) -> None:
    watch, said = world.watch(doubted=True), []
    await watch.look()
    said.append(watch.made_anew)
    world.brokers_tell(4, "cd" * 16)
    for _ in range(2):
        await watch.look()
        said.append(watch.made_anew)
    assert said == [None, (world.around.facts.requests.name, FOLLOWED), None]


async def test_given_a_topic_made_anew_with_fewer_topic_partitions_then_it_is_said_what_to_do(world: World) -> None:
    world.brokers_tell(3, "cd" * 16)
    watch, said = world.watch(doubted=True), []
    await watch.look()
    said.append(watch.made_anew)
    world.brokers_tell(4, "ce" * 16)
    for _ in range(2):
        await watch.look()
        said.append(watch.made_anew)
    why = "the topic has 3 topic partitions and the map has 4; make it again, with at least 4 topic partitions"
    name = world.around.facts.requests.name
    assert said == [(name, f"the map cannot follow: {why}"), (name, FOLLOWED), None]
