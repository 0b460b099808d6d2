from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.chaos.rig.abandoned_shards import NEAR_MS, Word, hint, words_of
from tests.support.checkers.messages import Delivery
from tests.support.cluster.cluster import SHARDS, TOPIC_PARTITIONS
from tests.support.cluster.process import ClusterProcess

AT = 1_767_225_600_500


class ALog(ClusterProcess):
    """A process that logged that."""

    def __init__(self, **events: Mapping[str, Any]) -> None:
        self.name = "node-1"
        self._events = events

    def events(self, name: str) -> list[Mapping[str, Any]]:
        return [{**self._events[name], "at": "2026-01-01T00:00:00.500000Z"}] if name in self._events else []


def copies(first: int, second: int, shard: int = 2) -> tuple[Delivery, Delivery]:
    return Delivery(1, f"{shard:04d}-a", first, first), Delivery(1, f"{shard:04d}-a", first, second)


def test_given_a_node_lost_topic_partitions_then_its_word_is_about_their_shards() -> None:
    (word,) = words_of([ALog(lost={"topic_partitions": [2]})])
    assert word == Word("node-1", "lost", AT, frozenset(range(2, SHARDS, TOPIC_PARTITIONS)))


def test_given_one_topic_partition_or_none_then_its_shards_or_all() -> None:
    (fenced,) = words_of([ALog(fenced={"topic_partition": 0})])
    (expelled,) = words_of([ALog(not_a_member={})])
    assert fenced.shards == frozenset(range(0, SHARDS, TOPIC_PARTITIONS))
    assert expelled.shards == frozenset(range(SHARDS))


def test_given_the_map_has_grown_since_or_before_then_the_shards_of_each_map_may_be_meant() -> None:
    grown = TOPIC_PARTITIONS + 3
    (word,) = words_of([ALog(fenced={"topic_partition": 1}, map_followed={"topic_partitions": grown})])
    assert word.shards == {*range(1, SHARDS, TOPIC_PARTITIONS), *range(1, SHARDS, grown)}


def test_given_other_words_then_they_are_left_out() -> None:
    assert words_of([ALog(serving={"topic_partition": 0})]) == []


def test_given_a_repeat_then_what_was_said_of_its_shard_about_then_is_told() -> None:
    word = Word("node-1", "drain_cut", AT, frozenset({2}))
    assert hint([word], *copies(AT - 500, AT + 900)) == f"; nodes said: node-1 drain_cut at {AT}"
    assert hint([word], *copies(AT - 500, AT + 900, shard=3)) == ""
    assert hint([word], *copies(AT + 9_000, AT + 9_900)) == ""
    assert hint([word], *copies(AT - 2 * NEAR_MS, AT + 2 * NEAR_MS)) == ""
