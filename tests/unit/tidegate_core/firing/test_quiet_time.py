"""A bench that passes over routine alarms comes to the same as one on which they ring, as long as nothing gets lost."""

from __future__ import annotations

from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_send,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour


def a_story(*, passes_over_routine: bool) -> ActorHarness:
    """Two schedules with one shared limit, a pair of data that meets late, and a message; on four shards."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=SECOND, runs_for=7 * MINUTE))
    bench.run(SECOND)
    bench.passes_over_routine = passes_over_routine
    for name in ("one", "two"):
        limits = [at_most(1, "program")]
        bench.request(an_apply(a_spec(name, every("20m"), file="/jobs/same.py", constraints=limits)))
    bench.request(an_apply(a_spec("pair", all_of(on_data("a"), on_data("b"), timeout="1h"))))
    bench.request(a_send("m-1", after="50m"))
    bench.run(MINUTE)
    bench.event(an_event("d1", "a"))
    bench.run(40 * MINUTE)
    bench.event(an_event("d1", "b"))
    bench.run(HOUR)
    return bench


def test_given_routine_that_is_passed_over_then_the_same_comes_of_it_with_far_fewer_reads() -> None:
    passing, ringing = a_story(passes_over_routine=True), a_story(passes_over_routine=False)
    assert passing.summary() == ringing.summary()
    assert len(passing.started) > 10
    assert len(passing.delivered()) == 1
    assert len(passing.asked) < len(ringing.asked) // 2
