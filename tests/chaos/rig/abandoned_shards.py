"""What nodes themselves say of shards that they gave up before they had finished: it excuses nothing, and helps who looks into a repeat."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.support.checkers.messages import Delivery
from tests.support.cluster.cluster import SHARDS, TOPIC_PARTITIONS
from tests.support.cluster.process import ClusterProcess

ENDED = ("drain_cut", "lost", "fenced", "not_a_member", "actor_failed")
GUARD_MS = 3_000
"""Half a session: for so long before it says so a node may have sent nothing any more."""
NEAR_MS = 30_000
"""What was said longer before, or after, is of no help."""


@dataclass(frozen=True, slots=True)
class Word:
    """A node said that it gave something up in haste.

    Attributes:
        at: ms since the epoch.
        shards: Of which.
    """

    node: str
    event: str
    at: int
    shards: frozenset[int]


def words_of(nodes: Iterable[ClusterProcess]) -> list[Word]:
    """Returns what all nodes have said of shards that they gave up, all their lives, in no order."""
    found: list[Word] = []
    for node in nodes:
        # Shards follow from the map of that time; its words do not tell which one, so each that it has known may be meant.
        counts = {TOPIC_PARTITIONS, *(said["topic_partitions"] for said in node.events("map_followed"))}
        for event in ENDED:
            for said in node.events(event):
                at = int(datetime.fromisoformat(said["at"]).timestamp() * 1_000)
                shards = _shards(said.get("topic_partitions") or _one(said.get("topic_partition")), counts)
                found.append(Word(node.name, event, at, shards))
    return found


def hint(words: Iterable[Word], first: Delivery, second: Delivery) -> str:
    """Returns what nodes said of the shard about then, for the text of a fault; empty where they said nothing."""
    about = [
        word
        for word in words
        if first.shard in word.shards
        and first.appended_at - GUARD_MS <= word.at <= second.appended_at + GUARD_MS
        and min(abs(word.at - first.appended_at), abs(word.at - second.appended_at)) <= NEAR_MS
    ]
    said = ", ".join(f"{word.node} {word.event} at {word.at}" for word in sorted(about, key=lambda each: each.at))
    return f"; nodes said: {said}" if said else ""


def _one(topic_partition: int | None) -> Sequence[int]:
    return range(TOPIC_PARTITIONS) if topic_partition is None else [topic_partition]


def _shards(topic_partitions: Sequence[int], counts: Collection[int]) -> frozenset[int]:
    return frozenset(shard for shard in range(SHARDS) if any(shard % count in topic_partitions for count in counts))
