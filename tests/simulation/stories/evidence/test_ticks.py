"""Ticks of composites that nobody served in time (docs/internals/protocol.md, decision 21)."""

from __future__ import annotations

from tests.support.builders import MINUTE, SECOND, a_request, a_spec, all_of, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.recorded_effects import manifest_text
from tidegate_core.engine.actor_inputs import Begin


def test_given_a_tick_of_an_outage_during_a_hold_then_it_meets_what_came_before_it() -> None:
    bench = ActorHarness(shards=1)
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
    brought = [manifest_text(order) for order in bench.started]
    assert brought[:1] == ["x,y"], "I3: a tick did not meet the two events that came before it"
