"""Who owns what, under whatever number of topic partitions, and with holders of an old and of a new map (H1, H2, H16, I6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import (
    MINUTE,
    REQUESTS_ID,
    SECOND,
    a_cancel,
    a_holding,
    a_request,
    a_send,
    a_spec,
    an_apply,
    every,
)
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.two_owners import BenchPair
from tidegate_core.language.values.derived_ids import message_shard, schedule_shard
from tidegate_core.rows import keys
from tidegate_core.shard.map_transition import HAND_OVER_MS
from tidegate_core.writes.partition_map import Cut

SHARDS = 4
NEW_MAP = {"map_version": 2, "topic_partitions": 2, "former_maps": (Cut(1, 1, REQUESTS_ID),)}


@given(shards=st.integers(1, 64), data=st.data())
def test_given_any_number_of_topic_partitions_then_each_shard_has_one_owner(shards: int, data: st.DataObject) -> None:
    """H2, H16: ownership follows from one topic alone, and N need not divide S."""
    topic_partitions = data.draw(st.integers(1, shards))
    owned = [
        shard
        for number in range(topic_partitions)
        for shard in a_holding(topic_partition=number, topic_partitions=topic_partitions, shards=shards).owned_shards()
    ]
    assert sorted(owned) == list(range(shards))


def owned_by(number: int) -> str:
    """A schedule of topic partition `number`'s holder, with two of them."""
    return next(name for name in map(str, range(100)) if schedule_shard("flights", name, SHARDS) % 2 == number)


def test_given_requests_in_the_topic_partition_of_anybody_then_the_owner_applies_them_once() -> None:
    """H1: clients put records where their own hash says; only ours says whose they are."""
    pair = BenchPair(
        shards=SHARDS, topic_partitions=2, others={"topic_partition": 1}, behaviour=Behaviour(runs_for=100)
    )
    pair.run(SECOND)
    pair.begin_second()
    for number in (0, 1):
        for where in (0, 1):
            pair.request(an_apply(a_spec(owned_by(number), every("1h")), f"apply-{number}-{where}"), where)
            pair.run(15 * SECOND)
        pair.request(a_request("trigger", owned_by(number), f"trigger-{number}"), 1 - number)
    pair.run(15 * SECOND)
    statuses = [pair.status_of(f"apply-{number}-{where}") for number in (0, 1) for where in (0, 1)]
    assert statuses == ["accepted", "unchanged", "accepted", "unchanged"]
    assert sorted(order.file for order in pair.started) == sorted(f"/jobs/{owned_by(number)}.py" for number in (0, 1))


def test_given_a_holder_of_the_old_map_then_it_changes_nothing_once_the_new_map_is_in_use() -> None:
    """I6, DESIGN 3: raise and acquire record the map and refuse an older one; that holder is still a member of the group."""
    pair = BenchPair(shards=SHARDS, others=NEW_MAP)
    pair.run(SECOND)
    assert sorted(pair.first.actor.shards) == [0, 1, 2, 3]
    pair.begin_second()
    pair.run(SECOND)
    assert sorted(pair.second.actor.shards) == [0, 2]
    before = {shard: pair.second.store.peek(keys.lease(shard)) for shard in (0, 2)}

    # Whatever it does next meets the newer epoch; it proves its membership and begins again, under the old map.
    pair.request(a_send("m-1", after="1s"))
    pair.run(MINUTE)
    assert pair.first.notices("outranked")
    assert not pair.first.actor.is_serving
    assert {shard: pair.second.store.peek(keys.lease(shard)) for shard in (0, 2)} == before
    assert pair.second.notices("fenced") == []


def test_given_a_create_that_was_read_under_the_old_map_then_the_new_owner_of_its_shard_delivers_it_once() -> None:
    """DESIGN 3: rows are written, the position is not. Under the new map its shard is somebody else's, so that the replay
    hands it to that one's inbox; the rows that are there already have to wait for it, and are the same.
    """
    pair = BenchPair(shards=SHARDS, others=NEW_MAP)
    pair.run(SECOND)
    pair.first.hold_back(a_commit("cursor"))
    of_the_other = next(name for name in map(str, range(100)) if message_shard("orders", None, name, SHARDS) % 2 == 1)
    pair.request(a_send(of_the_other, after="40s"))
    assert pair.first.rows("D#")
    pair.take_over()
    pair.run(SECOND)
    (row,) = pair.second.rows("I#")
    assert row["pk"] == keys.shard_pk(message_shard("orders", None, of_the_other, SHARDS))

    # The first one comes back as the holder of the second topic partition, under the new map.
    pair.first._holding |= {**NEW_MAP, "topic_partition": 1}
    pair.first.crash()
    pair.join(pair.first)
    pair.run(MINUTE)
    assert sorted(pair.first.actor.shards) == [1, 3]
    assert pair.delivered() == [of_the_other]
    assert pair.first.rows("I#") == []


SECOND_OF_TWO = {**NEW_MAP, "topic_partition": 1}


def of_the_second() -> str:
    """A message of topic partition 1's holder, with two of them."""
    return next(name for name in map(str, range(100)) if message_shard("orders", name, "", SHARDS) % 2 == 1)


def test_given_a_holder_of_the_old_map_then_nobody_takes_its_shards_before_its_position_carries_the_new_one() -> None:
    """Decision 27: it may hand over in order; when it does not, its position is raised in its place, and it is fenced."""
    pair = BenchPair(shards=SHARDS, others=SECOND_OF_TWO)
    pair.run(SECOND)
    pair.begin_second()
    pair.run(SECOND)
    assert sorted(pair.second.actor.shards) == []
    assert pair.first.actor.is_serving

    pair.run(HAND_OVER_MS)
    assert sorted(pair.second.actor.shards) == [1, 3]
    position = pair.first.store.peek(keys.topic_position("brokers", REQUESTS_ID, 0))
    assert position is not None
    assert position["map"] == 2
    pair.request(a_send("m-1", after="1s"))
    pair.run(MINUTE)
    assert pair.first.notices("outranked")


def test_given_all_positions_that_carry_the_new_map_then_shards_are_taken_at_once() -> None:
    pair = BenchPair(shards=SHARDS, others=SECOND_OF_TWO)
    pair.run(SECOND)
    pair.first._holding |= {**NEW_MAP, "topic_partition": 0}
    pair.first.crash()
    pair.run(SECOND)
    assert sorted(pair.first.actor.shards) == [0, 2]
    pair.begin_second()
    assert sorted(pair.second.actor.shards) == [1, 3]


def test_given_a_cancel_that_lies_in_an_old_topic_partition_then_it_spares_a_later_create_in_a_new_one() -> None:
    """I6: append times put them in order, whoever reads them first."""
    name = of_the_second()
    pair = BenchPair(shards=SHARDS, others=SECOND_OF_TWO)
    pair.run(SECOND)
    pair.take_over()
    pair.first.append("tidegate.requests", 0, a_cancel("c-1", key=name))
    pair.run(2 * HAND_OVER_MS)
    pair.request(a_send("m-1", key=name, after="30s"), 1)
    pair.run(SECOND)
    assert sorted(pair.second.actor.shards) == [1, 3]

    pair.first._holding |= {**NEW_MAP, "topic_partition": 0}
    pair.first.crash()
    pair.join(pair.first)
    pair.run(MINUTE)
    assert pair.status_of("c-1") == "not_found"
    assert pair.delivered() == ["m-1"]
