"""The events topic changes while it is read, or its end offsets are not known (docs/protocol.md)."""

from __future__ import annotations

import json

from tests.support.builders import (
    EVENTS,
    MINUTE,
    REQUESTS,
    SECOND,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.decisions.followed_topics import ASK_AGAIN_MS
from tidegate_core.decisions.inputs import LogRecord
from tidegate_core.effects import ReadEndOffsets
from tidegate_core.model.instants import format_instant

NOTICED_MS = ASK_AGAIN_MS + 10 * SECOND


def test_given_fewer_topic_partitions_than_holders_then_no_holder_is_fenced() -> None:
    """One of two holders has nothing to read."""
    first = a_serving_bench(topic_partitions=2, event_topic_partitions=1)
    second = Bench(beside=first, owner="node-b", topic_partitions=2, topic_partition=1)
    second.run(SECOND)
    first.event(an_event("d1"))
    first.run(SECOND)
    assert not first.notices("fenced"), "liveness: a holder was fenced whose topic partition still belongs to it"


def a_serving_bench(**holding: int) -> Bench:
    bench = Bench(**holding)
    bench.run(SECOND)
    return bench


def test_given_an_unread_record_when_its_topic_is_created_again_then_no_deadline_waits_for_it() -> None:
    """One topic partition has a record that nobody reads; two events 25 minutes apart come from the other one at once."""
    bench = a_serving_bench(shards=1, event_topic_partitions=2)
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
    bench.run(NOTICED_MS)
    assert bench.ledger(), "liveness: events after a deadline wait for a record that is gone with its topic"


def with_a_silent_topic() -> Bench:
    """In one shard, a schedule that fires by time, and one that fires by events; the broker tells no end offsets."""
    bench = a_serving_bench(shards=1)
    bench.request(an_apply(a_spec("tick", every("10s"), overlap="allow"), "apply-tick"))
    bench.request(an_apply(a_spec("heard", on_data()), "apply-heard"))
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, ReadEndOffsets) and effect.topic == EVENTS, times=1_000)
    return bench


def test_given_an_update_that_waits_for_end_offsets_when_a_suspend_follows_then_both_are_accepted() -> None:
    bench = with_a_silent_topic()
    bench.request(an_apply(a_spec("heard", on_data(count=2)), "update"))
    bench.request(a_request("suspend", "heard", "suspend", mode="freeze"))
    bench.run(MINUTE)
    bench.as_usual()
    bench.run(5 * SECOND)
    answers = [bench.status_of(each) for each in ("update", "suspend")]
    assert answers == ["accepted"] * 2, "answers: a suspend passed an update of its schedule"


def suspended() -> tuple[Bench, int]:
    """Returns a bench with a schedule on events that is suspended until an instant, and that instant."""
    bench = a_serving_bench(shards=1)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    end = bench.now + 20 * SECOND
    bench.request(a_request("suspend", mode="drop", until=format_instant(end), request_id="until"))
    bench.run(SECOND)
    return bench, end


def test_given_end_offsets_that_were_read_before_a_suspension_ended_then_an_event_in_between_does_not_count() -> None:
    """They were read for another request, in one batch with the request that finds the suspension over and ends it."""
    bench, end = suspended()
    bench.hold_back(a_commit("control"))
    other = an_apply(a_spec("other", trigger=on_data("other")), "other")
    bench.append(REQUESTS, 0, other, an_apply(a_spec(trigger=on_data(), args=["x"]), "another", on_update="carry"))
    bench.run(SECOND)
    bench.log(EVENTS, 0).append(LogRecord(0, bench.now, None, json.dumps(an_event("d1")).encode()))
    bench.now = end
    bench.release()
    bench.hand_over(EVENTS, 0, 0)
    bench.run(MINUTE)
    assert not bench.started, "I3: an event counted that came while its schedule was suspended"
