"""Evidence that is read late, before a deadline or a reminder passes (docs/protocol.md, docs/schedules.md)."""

from __future__ import annotations

import json
from typing import Any

from tests.support.builders import (
    EVENTS,
    MINUTE,
    SECOND,
    Doc,
    a_spec,
    all_of,
    an_apply,
    an_event,
    on_data,
)
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.inputs import LogRecord

A, B, C = map(on_data, "abc")


def a_bench(trigger: Doc, topic_partitions: int = 2) -> Bench:
    bench = Bench(shards=1, event_topic_partitions=topic_partitions)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, overlap="allow")))
    bench.run(SECOND)
    return bench


def append_unread(bench: Bench, name: str, topic_partition: int) -> None:
    log = bench.log(EVENTS, topic_partition)
    log.append(LogRecord(len(log), bench.now, None, json.dumps(an_event(name, name[0])).encode()))


def brought(bench: Bench) -> list[list[str]]:
    """Returns the data partitions of each run's manifest."""
    manifests: list[Any] = [order.context["manifest"] for order in bench.started]
    return [sorted(each["partition"] for each in manifest) for manifest in manifests]


def test_given_an_outage_over_a_reminder_and_a_later_time_out_then_the_reminder_runs_what_had_come() -> None:
    bench = a_bench(all_of(A, B, timeout="20m", at_least_every="15m"))
    bench.run(5 * MINUTE)
    bench.event(an_event("a1", "a"))
    bench.run(MINUTE)
    bench.away(54 * MINUTE)
    bench.run(20 * MINUTE)
    assert brought(bench) == [["a1"]], "I3: a time-out gave up evidence that an earlier reminder was to run"


def test_given_a_deadline_right_before_a_reminder_then_the_reminder_runs_without_what_has_expired() -> None:
    """An event is unread when both are due, and is read when the reminder checks next."""
    bench = a_bench(all_of({**A, "ttl": "10s"}, B, C, at_least_every="1m"))
    state = bench.state_of()
    assert state is not None
    reminder = state.next_nominal or 0
    bench.run(reminder - 10_100 - bench.now)
    for name in ("a1", "b1"):
        bench.event(an_event(name, name[0]))
    append_unread(bench, "x", 1)
    bench.run(reminder + 950 - bench.now)
    bench.hand_over(EVENTS, 1, 0)
    bench.run(5 * SECOND)
    assert brought(bench) == [["b1"]], "I3: a reminder made a job of evidence that had expired before"
