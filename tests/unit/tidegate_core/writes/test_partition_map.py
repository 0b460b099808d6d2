"""The item MAP: made once, read back as it was, and whatever contradicts it is named."""

import dataclasses

import pytest

from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.store_operations import Applied, Cancelled, Item
from tidegate_core.writes.partition_map import (
    ClusterMap,
    Cut,
    MapUnreadable,
    follow_map,
    history_of,
    map_of,
    misfits,
    put_first_map,
)
from tidegate_memory.store import MemoryStore

REQUESTS = TopicFacts("tidegate.requests", "ab" * 16, 8)
FIRST = ClusterMap.first(32, REQUESTS, "cluster")


def test_given_no_map_then_the_first_one_is_stored_and_read_back_as_it_was() -> None:
    store = MemoryStore()

    assert store.transact(put_first_map(FIRST, "one")) == Applied()

    assert map_of(store.get([MAP_KEY])[MAP_KEY]) == FIRST


def test_given_two_who_make_the_map_then_the_second_is_refused() -> None:
    store = MemoryStore()
    store.transact(put_first_map(FIRST, "one"))
    other = dataclasses.replace(FIRST, shards=64)

    outcome = store.transact(put_first_map(other, "two"))

    assert isinstance(outcome, Cancelled)
    assert map_of(store.get([MAP_KEY])[MAP_KEY]) == FIRST


@pytest.mark.parametrize("shards", [7, 10_001])
def test_given_shards_that_cannot_be_then_the_map_is_refused(shards: int) -> None:
    with pytest.raises(ValueError, match=f"shards is {shards}"):
        ClusterMap.first(shards, REQUESTS, "cluster")


def test_given_the_same_brokers_then_nothing_contradicts() -> None:
    assert misfits(FIRST, REQUESTS, "cluster") == []


@pytest.mark.parametrize(
    ("requests", "cluster", "said"),
    [
        pytest.param(REQUESTS, "other", "belongs to the Kafka cluster", id="other brokers"),
        pytest.param(
            dataclasses.replace(REQUESTS, topic_partitions=7), "cluster", "the map says 8", id="another topic"
        ),
    ],
)
def test_given_brokers_that_contradict_then_it_is_said(requests: TopicFacts, cluster: str, said: str) -> None:
    (sentence,) = misfits(FIRST, requests, cluster)

    assert said in sentence


@pytest.mark.parametrize("name", ["version", "n", "shards", "topic_id", "cluster_id"])
def test_given_a_damaged_item_then_it_is_unreadable(name: str) -> None:
    store = MemoryStore()
    store.transact(put_first_map(FIRST, "one"))
    item: Item = dict(store.get([MAP_KEY])[MAP_KEY])
    item[name] = None

    with pytest.raises(MapUnreadable, match=name):
        map_of(item)


def test_given_a_map_that_grows_then_the_item_keeps_all_versions() -> None:
    store = MemoryStore()
    store.transact(put_first_map(FIRST, "one"))
    assert store.transact(follow_map(FIRST.grown_to(12), "two")) == Applied()
    second = map_of(store.get([MAP_KEY])[MAP_KEY])
    assert (second.version, second.topic_partitions, second.shards) == (2, 12, 32)
    assert second.former == (Cut(1, 8, REQUESTS.id),)
    assert store.transact(follow_map(second.grown_to(16), "three")) == Applied()
    assert map_of(store.get([MAP_KEY])[MAP_KEY]).history == (*second.history, Cut(3, 16, REQUESTS.id))


@pytest.mark.parametrize("number", [7, 8])
def test_given_no_larger_number_then_no_map_follows(number: int) -> None:
    with pytest.raises(ValueError, match="larger"):
        FIRST.grown_to(number)


def test_given_a_lease_of_a_former_map_then_it_says_from_which_topic_partition_the_shard_followed() -> None:
    grown = FIRST.grown_to(12)
    assert grown.holder_of(20) == 20 % 12
    assert grown.holder_of(20, {"pk": "SH#0020", "sk": "LEASE", "map": 1}) == 20 % 8


def test_given_a_history_of_an_earlier_release_then_its_versions_were_of_the_same_topic() -> None:
    item: Item = {"topic_id": REQUESTS.id, "history": [{"version": 1, "n": 8}]}
    assert history_of(item) == (Cut(1, 8, REQUESTS.id),)


def test_given_a_topic_with_more_topic_partitions_than_the_map_then_nothing_contradicts() -> None:
    assert misfits(FIRST, dataclasses.replace(REQUESTS, topic_partitions=9), "cluster") == []


def test_given_a_topic_that_was_made_anew_then_the_next_map_is_of_that_one() -> None:
    store = MemoryStore()
    store.transact(put_first_map(FIRST, "one"))
    assert store.transact(follow_map(FIRST.on_another_topic("cd" * 16, 8), "two")) == Applied()
    second = map_of(store.get([MAP_KEY])[MAP_KEY])
    assert (second.version, second.topic_id, second.topic_partitions) == (2, "cd" * 16, 8)
    assert second.former == (Cut(1, 8, REQUESTS.id),)
    assert misfits(second, dataclasses.replace(REQUESTS, id="cd" * 16), "cluster") == []
    with pytest.raises(ValueError, match="former requests topic"):
        second.on_another_topic(REQUESTS.id, 8)
    with pytest.raises(ValueError, match="7 topic partitions"):
        second.on_another_topic("ef" * 16, 7)
