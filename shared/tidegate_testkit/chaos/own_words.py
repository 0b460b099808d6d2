"""What nodes themselves say of shards that they gave up before they had finished: it may explain repeats, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from tidegate_testkit.cluster.cluster import SHARDS, TOPIC_PARTITIONS
from tidegate_testkit.cluster.judging.messages import REPEATED_MAX, Crash
from tidegate_testkit.cluster.process import ClusterProcess

ENDED = ("drain_cut", "lost", "fenced", "not_a_member", "actor_failed")
GUARD_MS = 3_000
"""Half a session: for so long before it says so a node may have sent nothing any more."""
SERVED_MS = 30_000
"""Somebody serves them again by then; what repeats later is not excused."""


def given_up(nodes: Iterable[ClusterProcess]) -> list[Crash]:
    """Returns a crash for each time that a node gave topic partitions up in haste: at its word, and as long before as it may
    have been silent. Such a successor may follow at once.
    """
    found: list[Crash] = []
    for node in nodes:
        # Shards follow from the map of that time; its words do not tell which one, so each that it has known may be meant.
        counts = {TOPIC_PARTITIONS, *(said["topic_partitions"] for said in node.events("map_followed"))}
        for name in ENDED:
            for said in node.events(name):
                at = int(datetime.fromisoformat(said["at"]).timestamp() * 1_000)
                shards = _shards(said.get("topic_partitions") or _one(said.get("topic_partition")), counts)
                found += [
                    Crash(each, shards, at + SERVED_MS, alone_ms=0, last_messages=REPEATED_MAX)
                    for each in (at - GUARD_MS, at)
                ]
    return found


def _one(topic_partition: int | None) -> Sequence[int]:
    return range(TOPIC_PARTITIONS) if topic_partition is None else [topic_partition]


def _shards(topic_partitions: Sequence[int], counts: Collection[int]) -> frozenset[int]:
    return frozenset(shard for shard in range(SHARDS) if any(shard % count in topic_partitions for count in counts))
