"""Ticks of composites, and the order in which a backlog of ticks and events counts (docs/protocol.md, decision 21)."""

from __future__ import annotations

from typing import Any

from tests.support.builders import (
    EVENTS_ID,
    HOUR,
    MINUTE,
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
from tests.support.harness.recorded_effects import manifest_text
from tidegate_core.decisions.inputs import Begin
from tidegate_core.effects import Effect
from tidegate_core.store.keys import topic_position


def a_bench(trigger: dict[str, Any], **holding: Any) -> Bench:
    bench = Bench(**holding)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, overlap="allow")))
    bench.run(SECOND)
    return bench


def inbox_read(effect: Effect) -> bool:
    return getattr(getattr(effect, "range", None), "low", "") == "I#"


def manifests(bench: Bench) -> list[str]:
    return [manifest_text(order) for order in bench.started]


def test_given_a_topic_partition_that_is_read_a_second_later_than_another_then_a_pair_that_came_in_time_runs() -> None:
    """The first half of a pair is there. After an outage, an event that came too late for it is read before the other half."""
    bench = Bench(shards=1, event_topic_partitions=2)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="20m"))))
    bench.run(SECOND)
    bench.event(an_event("a1", "a"))
    bench.run(SECOND)
    bench.drain()
    for minutes, name, topic_partition in ((10, "b1", 1), (50, "a2", 0)):
        bench.now += minutes * MINUTE
        bench.event(an_event(name, name[0]), topic_partition)
    bench.now += HOUR
    key = topic_position(bench.holding.cluster_id, EVENTS_ID, 1)
    is_cursor = a_commit("cursor")
    bench.hold_back(lambda effect: is_cursor(effect) and f"{key.pk!r}" in str(effect), times=1_000)
    bench.new_actor()
    bench.give(Begin())
    bench.run(SECOND)
    bench.as_usual()
    bench.release()
    bench.run(MINUTE)
    assert any("a1" in each and "b1" in each for each in manifests(bench)), "I3: a pair that came in time did not run"


def test_given_a_tick_of_an_outage_during_a_hold_then_it_meets_what_came_before_it() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=all_of({**every("1h"), "driver": "time"}, on_data("a")))))
    bench.run(SECOND)
    bench.request(a_request("suspend", mode="hold"))
    bench.run(MINUTE)
    bench.drain()
    for minutes, name in ((10, "x"), (10, "y"), (50, "z")):  # The tick is 45 minutes from here.
        bench.now += minutes * MINUTE
        bench.event(an_event(name, "a"))
    bench.now += 20 * MINUTE
    bench.new_actor()
    bench.give(Begin())
    bench.request(a_request("resume"))
    bench.run(MINUTE)
    assert manifests(bench)[:1] == ["x,y"], "I3: a tick did not meet the two events that came before it"


def test_given_two_open_instances_when_data_come_then_the_older_one_runs() -> None:
    bench = a_bench(all_of({**every("10m"), "driver": "time"}, on_data("a")))
    bench.run(20 * MINUTE)
    bench.event(an_event("d1", "a"))
    bench.run(MINUTE)
    nominals = [str(order.context["nominal"]) for order in bench.started]
    assert nominals == ["2025-11-13T02:20:00Z"], "I3: the oldest instance did not get the data that it waited for"
