from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate_testkit.chaos.own_words import GUARD_MS, SERVED_MS, given_up
from tidegate_testkit.cluster.cluster import SHARDS, TOPIC_PARTITIONS
from tidegate_testkit.cluster.process import ClusterProcess

AT = 1_767_225_600_500


class ALog(ClusterProcess):
    """A process that logged that."""

    def __init__(self, **events: Mapping[str, Any]) -> None:
        self.name = "node-1"
        self._events = events

    def events(self, name: str) -> list[Mapping[str, Any]]:
        return [{**self._events[name], "at": "2026-01-01T00:00:00.500000Z"}] if name in self._events else []


def test_given_a_node_lost_topic_partitions_then_their_shards_may_repeat_what_came_just_before() -> None:
    crashes = given_up([ALog(lost={"topic_partitions": [2]})])
    assert [crash.at for crash in crashes] == [AT - GUARD_MS, AT]
    for crash in crashes:
        assert crash.shards == frozenset(range(2, SHARDS, TOPIC_PARTITIONS))
        assert (crash.served_at, crash.alone_ms) == (AT + SERVED_MS, 0)


def test_given_one_topic_partition_or_none_then_its_shards_or_all() -> None:
    (_, fenced) = given_up([ALog(fenced={"topic_partition": 0})])
    (_, expelled) = given_up([ALog(not_a_member={})])
    assert fenced.shards == frozenset(range(0, SHARDS, TOPIC_PARTITIONS))
    assert expelled.shards == frozenset(range(SHARDS))


def test_given_the_map_has_grown_since_or_before_then_the_shards_of_each_map_may_be_meant() -> None:
    grown = TOPIC_PARTITIONS + 3
    (crash, _) = given_up([ALog(fenced={"topic_partition": 1}, map_followed={"topic_partitions": grown})])
    assert crash.shards == {*range(1, SHARDS, TOPIC_PARTITIONS), *range(1, SHARDS, grown)}


def test_given_other_words_then_nothing_is_explained() -> None:
    assert given_up([ALog(serving={"topic_partition": 0})]) == []
