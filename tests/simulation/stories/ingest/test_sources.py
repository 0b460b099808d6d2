"""Sources map records of users' topics to events (docs/internals/protocol.md): which records count, and what waits for them."""

from __future__ import annotations

import json
from typing import Any

from tests.support.builders import MINUTE, SECOND, Doc, a_spec, all_of, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.rows.effects import ReadEndOffsets

TOPIC = "lake.commits"
ENDS = ReadEndOffsets(TOPIC, may_be_missing=True)


def a_source() -> Doc:
    event = {"dataset": "raw", "partition": {"pointer": "/day"}}
    spec = {"kind": "source", "namespace": "flights", "name": "landed", "topic": TOPIC, "event": event}
    return {"id": "apply", "type": "source.apply", "namespace": "flights", "name": "landed", "spec": spec}


def with_a_topic(**holding: Any) -> ActorHarness:
    bench = ActorHarness(**holding)
    bench.run(SECOND)
    bench.create_topic(TOPIC, topic_id="c" * 32)
    return bench


def test_given_a_record_that_is_older_than_its_source_then_no_schedule_runs() -> None:
    """The schedule is older than both; only the first offset of the source says that the record is no event."""
    bench = with_a_topic()
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(2 * SECOND)
    bench.append(TOPIC, 0, {"day": "d1"})
    bench.request(a_source())
    bench.run(10 * SECOND)
    assert not bench.started, "I3: a record counted that is older than its source"


def test_given_a_source_that_is_being_opened_when_a_schedule_is_activated_then_earlier_records_do_not_count() -> None:
    """The end offsets of the topic are on their way; a record comes, then the schedule, then the end offsets."""
    bench = with_a_topic()
    bench.hold_back(lambda effect: effect == ENDS, answer_only=True)
    bench.request(a_source())
    bench.run(50)
    bench.append(TOPIC, 0, {"day": "d1"})
    bench.run(50)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(300)  # Within the shard writer's patience: after that they would be asked for again.
    bench.release()
    bench.run(10 * SECOND)
    assert not bench.started, "I3: a record counted that is older than its schedule"


def test_given_an_unread_source_when_a_time_out_of_another_namespace_passes_then_it_does_not_wait() -> None:
    """In each of two namespaces half of a pair waits for its time-out."""
    bench = with_a_topic(shards=1)
    pair = a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="20m"), overlap="allow")
    bench.request(a_source())
    for namespace in ("flights", "trains"):
        bench.request(an_apply(pair | {"namespace": namespace}, namespace))
        bench.event(an_event("x", "a", namespace) | {"namespace": namespace})
    bench.run(19 * MINUTE)
    bench.log(TOPIC, 0).append(LogRecord(0, bench.now, None, json.dumps({"day": "d1"}).encode()))
    bench.run(MINUTE + 10 * SECOND)
    timed_out = [row["namespace"] for row in bench.rows("L#")]
    assert "trains" in timed_out, "liveness: a time-out waits for a source of another namespace"
