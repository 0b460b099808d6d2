"""A node looks at others' shards in the store: what stands still is told once, and by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.explain.watchdog.watchdog import LATE_MS, STANDS_MS, Broken
from tidegate_core.rows import keys
from tidegate_core.rows import node_status as card
from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.node_status import GONE_MS, NodeStatus
from tidegate_core.rows.scope_suspension import Scope, ScopeSuspensions, StoredSuspensions
from tidegate_core.rows.store_operations import Delete, Key, Put
from tidegate_core.shard.outages.outage_recorder import heartbeat_row
from tidegate_node.liveness import watchdog_loop as watching
from tidegate_node.liveness.watchdog_loop import TURNS, Unreadable, WatchdogLoop
from tidegate_node.node_identity import NodeFacts
from tidegate_node.topics.offset_gaps import LogGaps

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings

HOUR_MS = 3_600_000
OTHER = "0b1e5a52-7a30-4a5c-9c0b-0d7f7b6c1a11"


class World:
    """Node `OTHER` has all shards and is fine; the watcher is the node of `around`."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.facts = around.facts
        self.set_ends(5)
        self.watching = self.watcher(around.facts)
        for shard in range(self.facts.cluster.shards):
            lease = keys.lease(shard)
            self.put(lease, epoch=3, map=1, tp_epoch=2, owner=OTHER, controls=0, served=1)
            self.put(keys.progress(shard), epoch=3, fired_slot=self.now, fired_id="m")
        for number in range(self.facts.cluster.topic_partitions):
            self.put(keys.topic_position("cluster", self.facts.requests.id, number), epoch=2, next=5, page="-")
        for number in range(self.facts.events.topic_partitions):
            self.put(keys.topic_position("cluster", self.facts.events.id, number), epoch=2, next=5, page="-")
        self.live()

    def watcher(self, facts: NodeFacts) -> WatchdogLoop:
        around = self.around
        gaps = LogGaps(around.bus, around.clock)
        return WatchdogLoop(facts, around.store_effects(), around.bus, gaps, around.clock, around.metrics, around.notes)

    @property
    def now(self) -> int:
        return self.around.clock.now_ms()

    def put(self, key: Key, **fields: Any) -> None:
        self.around.store.write([Put(key, {"pk": key.pk, "sk": key.sk, **fields})])

    def set_ends(self, end: int) -> None:
        for topic in (self.facts.requests, self.facts.events):
            self.set_ends_of(topic, end)

    def set_ends_of(self, topic: TopicFacts, end: int) -> None:
        ends = {f"{topic.id}/{number}": end for number in range(topic.topic_partitions)}
        self.around.bus.ends_by_topic[topic.name] = EndOffsets(ends)

    def live(self, served: bool = True) -> None:
        """`OTHER` writes its card, and its sign of life."""
        card = NodeStatus(owner=OTHER, node="node-2", version="1", tzdata="t", started_at=0, seen=self.now)
        key = keys.node_status(OTHER)
        self.around.store.write([Put(key, to_item(card, key))])
        if served:
            signs = dict.fromkeys(range(self.facts.cluster.topic_partitions), self.now)
            self.around.store.write([heartbeat_row(OTHER, "node-2", self.now, signs, 0)])

    async def turn(self) -> None:
        for _ in range(TURNS):
            await self.watching.look()

    def told(self) -> list[str]:
        return sorted(self.around.notes.names())

    def broken(self) -> set[tuple[int, str]]:
        found = [Broken.parse(text) for text in self.watching.findings]
        return {(each.shard, each.kind) for each in found if each is not None}


@pytest.fixture
def world(around: Surroundings) -> World:
    return World(around)


async def test_given_a_node_that_serves_then_nothing_is_said(world: World) -> None:
    for _ in range(6):
        world.around.clock.pass_ms(10_000)
        world.live()
        await world.watching.look()
    assert (world.told(), world.watching.findings) == ([], ())


async def test_given_a_frozen_node_then_it_and_its_shards_are_told_once_within_a_minute(world: World) -> None:
    for _ in range(6):
        world.around.clock.pass_ms(10_000)
        await world.watching.look()
    shards = world.facts.cluster.shards
    assert world.told() == ["node_silent", *["promise_broken"] * shards]
    assert world.broken() == {(shard, "owner_silent") for shard in range(shards)}
    assert world.around.metrics.value("tidegate_silent_nodes") == 1
    assert world.around.metrics.value("tidegate_broken_promises") == shards
    world.live()
    await world.turn()
    assert world.told().count("promise_kept_again") == shards
    assert world.around.metrics.value("tidegate_silent_nodes") == 0


async def test_given_a_frozen_node_whose_shards_others_have_then_it_is_gone_and_not_missed_for_a_day(
    world: World,
) -> None:
    world.around.clock.pass_ms(GONE_MS)
    await world.watching.look()
    assert world.around.metrics.value("tidegate_silent_nodes") == 1
    world.around.clock.pass_ms(10_000)
    await world.watching.look()
    assert world.around.metrics.value("tidegate_silent_nodes") == 1, "its shards are still its own"
    for shard in range(world.facts.cluster.shards):
        world.put(keys.lease(shard), epoch=4, map=1, tp_epoch=3, owner=world.facts.owner, controls=0, served=1)
    for _ in range(3):
        await world.watching.look()
        assert world.around.metrics.value("tidegate_silent_nodes") == 0
    assert world.told().count("node_silent") == 1

    world.live()
    await world.watching.look()
    world.around.clock.pass_ms(30_000)
    await world.watching.look()
    assert world.told().count("node_silent") == 2, "it was back, and fell again"


async def test_given_more_cards_than_a_page_holds_then_the_living_are_seen_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that falls every few seconds leaves a card each time."""
    monkeypatch.setattr(card, "NODES_MAX", 2)
    world.around.clock.pass_ms(60_000)
    for number in range(7):
        owner = f"0000{number}"
        fallen = NodeStatus(owner=owner, node="node-9", version="1", tzdata="t", started_at=number, seen=number + 1)
        world.around.store.write([Put(keys.node_status(owner), to_item(fallen, keys.node_status(owner)))])
    await world.watching.look()
    silent = [fields["name"] for name, fields in world.around.notes.said if name == "node_silent"]
    assert "node-2" in silent


async def test_given_a_card_that_has_outlived_its_day_then_it_is_not_looked_at(world: World) -> None:
    """The store removes what has expired when it likes."""
    world.around.clock.pass_ms(25 * HOUR_MS)
    await world.watching.look()
    assert world.around.metrics.value("tidegate_silent_nodes") == 0


async def test_given_a_node_that_lives_and_a_shard_that_does_not_move_then_the_shard_is_told(world: World) -> None:
    """Its loop turns and its signs of life come; what is due is not dealt with."""
    due = world.now
    world.put(keys.message_timer(2, due + 1, "m2", "v"))
    world.put(keys.message_timer(3, due - 1, "m0", "v"))  # Before the position: dealt with, and not removed yet.
    world.put(keys.timer(5, due, "S", "flights/land"))
    world.put(keys.timer(4, due, "E", "flights/join#x"))
    world.around.clock.pass_ms(LATE_MS + 2)
    world.live()
    await world.turn()
    assert world.broken() == {(2, "messages_late"), (5, "fires_late")}


async def test_given_more_shards_than_a_round_reads_then_what_is_late_is_told_once_until_its_rows_say_otherwise(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a review: each round in which others had their turn took it back, and the next one told it again."""
    monkeypatch.setattr(watching, "CLOSELY_MAX", 1)
    due = world.now
    world.put(keys.timer(5, due, "S", "flights/land"))
    world.around.clock.pass_ms(LATE_MS + 2)
    world.live()
    for _ in range(3 * world.facts.cluster.shards):
        await world.watching.look()
    assert world.broken() == {(5, "fires_late")}
    assert world.told() == ["promise_broken"]
    world.around.store.write([Delete(keys.timer(5, due, "S", "flights/land"))])
    for _ in range(world.facts.cluster.shards):
        await world.watching.look()
    assert (world.broken(), world.told()) == (set(), ["promise_broken", "promise_kept_again"])


async def test_given_a_stopped_system_then_what_waits_is_not_late(world: World) -> None:
    world.put(keys.timer(5, world.now, "S", "flights/land"))
    stopped = ScopeSuspensions(version=1, scopes=(Scope(namespace=None, position="p", spans=((1, None),)),))
    stored = to_item(StoredSuspensions.of(stopped), keys.SUSPENSIONS_KEY)
    world.around.store.write([Put(keys.SUSPENSIONS_KEY, stored)])
    world.around.clock.pass_ms(LATE_MS + 2)
    world.live()
    await world.turn()
    assert world.broken() == set()


@pytest.mark.parametrize(("topic", "number"), [("requests", 1), ("events", 1), ("events", 5)])
async def test_given_records_that_nobody_reads_then_each_shard_of_the_position_is_told(
    world: World, topic: str, number: int
) -> None:
    """There are 8 topic partitions of events, and the holder of 1 of 4 reads 1 and 5."""
    topic_id = getattr(world.facts, topic).id
    world.put(keys.topic_position("cluster", topic_id, number), epoch=2, next=4, page="-")
    await world.turn()
    world.around.clock.pass_ms(STANDS_MS + 1)
    world.live()
    await world.turn()
    assert world.broken() == {(1, "reading_stands"), (5, "reading_stands")}


@pytest.mark.parametrize(("changes", "number"), [({"topic_partitions": 10}, 9), ({"id": "ef" * 16}, 1)])
async def test_given_an_events_topic_that_grows_or_is_made_anew_then_what_is_new_is_watched_too(
    world: World, changes: dict[str, Any], number: int
) -> None:
    events = replace(world.facts.events, **changes)
    world.set_ends_of(events, 5)
    world.put(keys.topic_position("cluster", events.id, number), epoch=2, next=4, page="-")
    await world.turn()
    await world.turn()
    world.around.clock.pass_ms(STANDS_MS + 1)
    world.live()
    await world.turn()
    assert world.broken() == {(1, "reading_stands"), (5, "reading_stands")}


async def test_given_a_mark_of_a_transaction_at_the_end_then_nothing_is_unread(world: World) -> None:
    """Seen of a requests topic that a transactional producer writes: the watchdog told people of it for ever."""
    world.set_ends_of(world.facts.requests, 6)
    world.around.bus.records_at = {1: 6}
    await world.turn()
    world.around.clock.pass_ms(STANDS_MS + 1)
    world.live()
    await world.turn()
    others = {shard for shard in range(world.facts.cluster.shards) if world.facts.holder_of(shard) != 1}
    assert world.broken() == {(shard, "reading_stands") for shard in others}


async def test_given_brokers_that_do_not_tell_where_records_lie_then_the_round_says_nothing(world: World) -> None:
    world.set_ends_of(world.facts.requests, 6)
    await world.turn()
    world.around.bus.records_at = Unavailable("broker")
    with pytest.raises(Unreadable):
        await world.turn()


async def test_given_another_watcher_then_the_shards_are_shared(world: World) -> None:
    third = replace(world.facts, owner="c" * 36)
    card = NodeStatus(owner=third.owner, node="node-3", version="1", tzdata="t", started_at=0, seen=world.now + 60_000)
    world.around.store.write([Put(keys.node_status(third.owner), to_item(card, keys.node_status(third.owner)))])
    around = world.around
    other = world.watcher(third)
    mine = NodeStatus(owner=world.facts.owner, node="n", version="1", tzdata="t", started_at=0, seen=world.now + 60_000)
    around.store.write([Put(keys.node_status(mine.owner), to_item(mine, keys.node_status(mine.owner)))])
    around.clock.pass_ms(40_000)
    await world.turn()
    for _ in range(TURNS):
        await other.look()
    found = [set(watching.findings) for watching in (world.watching, other)]
    assert not found[0] & found[1]
    assert len(found[0] | found[1]) == world.facts.cluster.shards


async def test_given_a_broker_that_does_not_answer_then_the_next_round_asks_again(world: World) -> None:
    world.around.bus.ends_by_topic.clear()
    world.around.bus.log_ends = Unavailable("broker")
    with pytest.raises(Unreadable):
        await world.watching.look()
    assert world.told() == []


async def test_given_an_open_transaction_then_no_owner_is_blamed_for_what_nobody_can_read(world: World) -> None:
    """Its owner was said to break its promise for as long as the transaction was open, up to 15 minutes."""
    world.set_ends(9)
    for topic in (world.facts.requests, world.facts.events):
        stable = {f"{topic.id}/{number}": 5 for number in range(topic.topic_partitions)}
        world.around.bus.stable_by_topic[topic.name] = EndOffsets(stable)
    for _ in range(12):
        world.around.clock.pass_ms(10_000)
        world.live()
        await world.watching.look()
    assert (world.told(), world.watching.findings) == ([], ())
