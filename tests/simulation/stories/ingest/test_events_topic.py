"""The events topic is deleted and created again while it is read (docs/internals/protocol.md)."""

from __future__ import annotations

import json

from tests.support.builders import EVENTS, MINUTE, SECOND, a_spec, all_of, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.topic_follower import ASK_AGAIN_MS


def test_given_an_unread_record_when_its_topic_is_created_again_then_no_deadline_waits_for_it() -> None:
    """One topic partition has a record that nobody reads; two events 25 minutes apart come from the other one at once."""
    bench = ActorHarness(shards=1, event_topic_partitions=2)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="20m"))))
    bench.run(SECOND)
    begun = bench.now
    unread, first, second = (json.dumps(an_event(name, "a")).encode() for name in "yxz")
    bench.log(EVENTS, 0).append(LogRecord(0, begun, None, unread))
    bench.run(30 * MINUTE)
    bench.log(EVENTS, 1).extend([LogRecord(0, begun, None, first), LogRecord(1, begun + 25 * MINUTE, None, second)])
    bench.hand_over(EVENTS, 1, 0)
    bench.run(2 * SECOND)
    for topic_partition in range(2):
        bench.log(EVENTS, topic_partition).clear()
    bench.create_topic(EVENTS, 2, "d" * 32)
    bench.run(ASK_AGAIN_MS + 10 * SECOND)
    assert bench.ledger(), "liveness: events after a deadline wait for a record that is gone with its topic"
