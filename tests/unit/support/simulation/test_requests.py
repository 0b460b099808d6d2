"""Users who ask again: as people and their clients do, and no faster because the broker was away."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.faults.broker_faults import calm_broker
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.requests import REPEAT_MS, Requests
from tests.simulation.world.cluster import REQUESTS
from tests.simulation.world.world import build

SEED = 0
DOWN_MS = 20_000
LOOKED_AT_MS = 70_000


def test_given_a_request_that_nobody_answers_after_an_outage_then_it_is_repeated_by_one_clock() -> None:
    """Seed 300334: each send that failed had a clock of its own, and a shard never got through its inbox again."""
    broker = replace(calm_broker(), downs=((0, DOWN_MS),))
    cluster = build(SEED, faults=False, swarm=replace(swarm_of(SEED, faults=False), broker=broker)).cluster
    timeline = cluster.timeline
    # Apart from the world's own users, so that it sees no receipt.
    Requests(cluster).ask({"type": "schedule.trigger", "namespace": "sim", "name": "unanswered"}, lambda asked: None)
    timeline.run(timeline.now + DOWN_MS + LOOKED_AT_MS)
    records = [record for log in cluster.broker.topics[REQUESTS].logs for record in log]
    repeats = [record for record in records if b'"unanswered"' in (record.value or b"")]
    assert LOOKED_AT_MS // REPEAT_MS <= len(repeats) <= LOOKED_AT_MS // REPEAT_MS + 1
