"""A resume that means one suspend and no other (`suspended_at`), while owners fall and writes come late (SEMANTICS 10, I7)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.two_owners import BenchPair
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleState

PERIOD = 20 * SECOND


def state_of(bench: ActorHarness) -> ScheduleState:
    (row,) = bench.rows("S#")
    return from_item(ScheduleState, row)


def a_resume(request_id: str, suspended_at: int) -> Doc:
    return a_request("resume", request_id=request_id, suspended_at=format_instant(suspended_at))


def suspended_twice(bench: ActorHarness) -> int:
    """A schedule that was suspended, let go on and suspended anew; returns the instant of the first suspend."""
    bench.request(an_apply(a_spec(trigger=every("20s"), overlap="allow")))
    bench.request(a_request("suspend", request_id="s-1"))
    bench.run(SECOND)
    first = state_of(bench).suspended_at
    bench.request(a_request("resume", request_id="r-1"))
    bench.run(SECOND)
    bench.request(a_request("suspend", request_id="s-2"))
    bench.run(SECOND)
    return first


@pytest.mark.parametrize("late_writes_after", [None, 700], ids=["", "late-writes"])
def test_given_a_crash_after_any_effect_then_the_resume_of_an_older_suspend_changes_nothing_and_that_of_this_one_does(
    late_writes_after: int | None,
) -> None:
    def a_bench() -> ActorHarness:
        bench = ActorHarness(behaviour=Behaviour(runs_for=100))
        bench.run(SECOND)
        return bench

    def a_story(bench: ActorHarness) -> None:
        first = suspended_twice(bench)
        bench.request(a_resume("older", first))
        bench.run(2 * PERIOD)
        assert state_of(bench).status == "suspended"
        assert bench.started == []
        bench.request(a_resume("this", state_of(bench).suspended_at))
        bench.run(2 * PERIOD)

    undisturbed = a_bench()
    a_story(undisturbed)
    for effects in range(a_bench().effects_outside + 1, undisturbed.effects_outside + 1):
        bench = a_bench()
        bench.crash_after, bench.late_writes_after = effects, late_writes_after
        a_story(bench)
        assert [bench.status_of(each) for each in ("older", "this")] == ["conflict", "accepted"], effects
        assert state_of(bench).status == "active", effects
        assert bench.started != [], effects


def test_given_a_resume_of_the_former_owner_that_arrives_after_another_suspend_then_the_schedule_stays_suspended() -> (
    None
):
    """It was decided when the suspend that it means was there; the successor has seen it resumed and suspended anew."""
    pair = BenchPair(shards=1)
    pair.run(SECOND)
    pair.request(an_apply(a_spec(trigger=every("20s"))))
    pair.request(a_request("suspend", request_id="s-1"))
    pair.run(SECOND)
    first = state_of(pair.first).suspended_at
    pair.first.hold_back(a_commit("control"))
    pair.request(a_resume("r-1", first))
    pair.run(SECOND)
    assert pair.first.holds_something
    pair.take_over()
    pair.run(5 * SECOND)
    assert state_of(pair.second).status == "active", "the successor has read the request again"
    pair.request(a_request("suspend", request_id="s-2"))
    pair.run(SECOND)
    pair.first.release()
    pair.request(a_resume("r-2", first))
    pair.run(MINUTE)
    assert state_of(pair.second).status == "suspended"
    assert pair.second.status_of("r-2") == "conflict"
    assert pair.second.started == []
