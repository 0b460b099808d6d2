"""The requests topic is deleted and created again while its holder is down. For tests of what outlives a topic."""

from __future__ import annotations

from tests.support.builders import REQUESTS, REQUESTS_ID
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.writes.partition_map import Cut


def recreate_requests_topic(bench: ActorHarness, version: int) -> None:
    """Creates an empty requests topic, and restarts the holder under the map of that version."""
    topic_id = f"{version:x}" * 32
    bench.create_topic(REQUESTS, 1, topic_id)
    bench.log(REQUESTS, 0).clear()
    before = Cut(version - 1, 1, bench._holding.get("requests", TopicFacts(REQUESTS, REQUESTS_ID, 1)).id)
    former = (*bench._holding.get("former_maps", ()), before)
    another = TopicFacts(REQUESTS, topic_id, 1)
    bench._holding |= {"map_version": version, "former_maps": former, "requests": another}
    bench.crash()
