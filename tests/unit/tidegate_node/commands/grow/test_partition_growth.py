"""`tidegate partitions grow`: the topic first, then the group, then the map; whatever is done already is left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.store_operations import Item, Key, Transaction
from tidegate_core.writes.partition_map import ClusterMap, follow_map, map_of, put_first_map
from tidegate_node.commands.grow.partition_growth import HELD_LOOKS_MAX, NumberRefused, grow_cluster
from tidegate_node.startup_checks import NotYet, StartRefused
from tidegate_ports.bus import Topic

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


class World:
    """A cluster of four topic partitions and eight shards, with one node that is given what is new when it looks again."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.requests = around.facts.requests
        around.store.transact(put_first_map(around.facts.cluster, "init"))
        self.held_now: frozenset[int] | None = frozenset(range(4))
        self.gives_after: int | None = 1
        self.waited = 0
        self.steps: list[str] = []
        self.answer: Unavailable | None = None
        self.dies_at: str | None = None

    def run(self, number: int) -> ClusterMap:
        return grow_cluster(
            number, self.requests.name, self, self, self.around.bus, say=lambda _: None, wait=self._wait
        )

    @property
    def topic(self) -> Topic:
        name = self.requests.name
        return self.around.bus.topics.get(name, Topic(name, self.requests.id, 4))

    # -- bricks -------------------------------------------------------------------------------------------------------

    def items(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        return self.around.store.get(keys)

    def commit(self, transaction: Transaction) -> Committed | Refused | Unavailable:
        self._step("map")
        if self.answer is not None:
            return self.answer
        self.around.store.transact(transaction)
        return Committed()

    def grow(self, topic: str, topic_partitions: int) -> None:
        self._step("topic")
        self.around.bus.topics[topic] = Topic(topic, self.requests.id, topic_partitions)

    def held(self, topic: str) -> frozenset[int] | None:
        return self.held_now

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name == self.dies_at:
            raise NotYet("killed")

    def _wait(self) -> None:
        self.waited += 1
        if self.waited == self.gives_after:
            self.held_now = frozenset(range(self.topic.topic_partitions))


@pytest.fixture
def world(around: Surroundings) -> World:
    return World(around)


def test_given_a_larger_number_then_topic_group_and_map_come_in_this_order(world: World) -> None:
    grown = world.run(6)
    assert (grown.version, grown.topic_partitions) == (2, 6)
    assert (world.steps, world.waited, world.topic.topic_partitions) == (["topic", "map"], 1, 6)


def test_given_that_it_is_so_already_then_nothing_is_written(world: World) -> None:
    assert world.run(4).version == 1
    world.run(6)
    world.steps.clear()
    assert world.run(6).version == 2
    assert world.steps == []


def test_given_a_crash_before_the_map_then_the_next_time_writes_it(world: World) -> None:
    world.dies_at = "map"
    with pytest.raises(NotYet):
        world.run(6)
    world.dies_at = None
    world.steps.clear()
    assert world.run(6).topic_partitions == 6
    assert world.steps == ["map"]


@pytest.mark.parametrize(
    ("number", "said"),
    [pytest.param(3, "never fewer", id="fewer"), pytest.param(9, "8 shards", id="more than shards")],
)
def test_given_a_number_that_cannot_be_then_nothing_is_changed(world: World, number: int, said: str) -> None:
    with pytest.raises(NumberRefused, match=said):
        world.run(number)
    assert (world.steps, world.topic.topic_partitions) == ([], 4)


def test_given_another_tool_that_made_more_of_them_then_a_number_between_is_refused(world: World) -> None:
    world.around.bus.topics[world.requests.name] = Topic(world.requests.name, world.requests.id, 7)
    with pytest.raises(StartRefused, match="has 7 topic partitions"):
        world.run(6)
    assert world.run(7).topic_partitions == 7


def test_given_a_topic_that_was_made_anew_then_it_is_refused(world: World) -> None:
    world.around.bus.topics[world.requests.name] = Topic(world.requests.name, "cd" * 16, 4)
    with pytest.raises(StartRefused, match="recreated"):
        world.run(6)


def test_given_nodes_that_write_the_map_meanwhile_then_theirs_is_taken(world: World) -> None:
    world.gives_after = None
    wait = world._wait

    def written() -> None:
        wait()
        stored = map_of(world.around.store.get([MAP_KEY])[MAP_KEY])
        world.around.store.transact(follow_map(stored.grown_to(6), "a node"))

    world._wait = written  # type: ignore[method-assign]
    assert world.run(6).version == 2
    assert world.steps == ["topic"]


def test_given_a_group_without_members_then_nobody_is_waited_for(world: World) -> None:
    world.held_now = None
    assert world.run(6).topic_partitions == 6
    assert world.waited == 0


def test_given_members_that_do_not_see_them_for_a_minute_then_the_map_is_written_all_the_same(world: World) -> None:
    world.gives_after = None
    assert world.run(6).topic_partitions == 6
    assert world.waited == HELD_LOOKS_MAX


def test_given_a_store_that_does_not_say_then_it_is_to_be_run_again(world: World) -> None:
    world.answer = Unavailable("store")
    with pytest.raises(NotYet):
        world.run(6)
    world.answer = None
    assert world.run(6).version == 2
