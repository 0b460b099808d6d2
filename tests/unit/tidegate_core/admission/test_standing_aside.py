"""Jobs that need several limits, of which one is busy: what they cannot use is there for others, and none of them starves (decision 24)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.crash_points import crash_points
from tests.support.harness.crowds import LATENCY_MS, SHARDS, apart, schedule_of
from tidegate_core.admission.limit_coordinator import OFFERS_MAX, SERVE_MS
from tidegate_core.rows import keys
from tidegate_core.rows.effects import LaunchOrder, WakeUp
from tidegate_core.rows.shared_limit import SharedLimit

BUSY_FOR = 20 * MINUTE
SHORT = 2 * SECOND
FIRST, LAST = sorted(("yard", "gate"), key=lambda group: keys.shared_limit("flights", "group", group))
"""Groups, in the order in which they are asked for."""


def rate(most: int, per: str = "1h") -> Doc:
    return {"type": "rate", "max": most, "per": per, "scope": "group", "group": "rated"}


def door(most: int, name: str = "door") -> Doc:
    return at_most(most, "group", group=name)


def a_bench(shards: int = SHARDS) -> ActorHarness:
    """Programs run for two seconds; those of schedules that are called `busy` for long."""

    def behaves(order: LaunchOrder) -> Behaviour:
        return Behaviour(starts_after=10, runs_for=BUSY_FOR if schedule_of(order).startswith("busy") else SHORT)

    bench = ActorHarness(shards=shards)
    bench.behaves = behaves
    bench.store_answers_after = LATENCY_MS
    bench.run(5 * SECOND)
    return bench


def schedules(bench: ActorHarness, names: Sequence[str], *constraints: Doc, priority: str = "medium") -> None:
    for name in names:
        spec = a_spec(name, every("10h"), constraints=list(constraints), overlap="allow", priority=priority)
        bench.request(an_apply(spec, f"apply-{name}"))
    bench.run(SECOND)


def trigger(bench: ActorHarness, *names: str) -> None:
    """Runs the schedules by hand, 50 ms apart."""
    for name in names:
        bench.request(a_request("trigger", name, request_id=f"now-{name}-{bench.now}"))
        bench.run(50)


def ran(bench: ActorHarness, names: Sequence[str] | None = None) -> list[str]:
    return [name for name in map(schedule_of, bench.started) if names is None or name in names]


def limits(bench: ActorHarness) -> list[SharedLimit]:
    return [SharedLimit.of(row) for row in bench.rows("LIMIT") if str(row["pk"]).startswith("LIMIT#")]


# -- what cannot be used is there for others ------------------------------------------------------------------------------------


@pytest.mark.parametrize("both", [OFFERS_MAX, OFFERS_MAX + 4])
def test_given_jobs_that_wait_for_a_busy_limit_beside_a_rate_then_others_have_the_rate_as_long_as_it_has_room(
    both: int,
) -> None:
    """From a review: sixteen of them kept all offers, and stopped a rate of any size."""
    bench = a_bench()
    need_both, need_one = apart(both + 10)[:both], apart(both + 10)[both:]
    schedules(bench, ["busy"], door(1))
    schedules(bench, need_both, rate(both + 10), door(1))
    schedules(bench, need_one, rate(both + 10))
    trigger(bench, "busy", *need_both)
    bench.run(10 * SECOND)
    trigger(bench, *need_one)
    bench.run(2 * SECOND)
    assert sorted(ran(bench, need_one)) == sorted(need_one)
    if not tier.ALL:
        return  # The turns of all of them take half a minute of virtual time each.
    bench.run(BUSY_FOR + 2 * MINUTE)
    assert ran(bench, need_both) == need_both
    assert bench.rows("IW#") == []


def test_given_a_limit_in_place_of_the_rate_then_of_its_slots_one_at_most_stands_idle() -> None:
    bench = a_bench()
    names = apart(12)
    need_both, need_one = names[:6], names[6:]
    schedules(bench, ["busy"], door(1, LAST))
    schedules(bench, need_both, door(3, FIRST), door(1, LAST))
    schedules(bench, need_one, door(3, FIRST))
    trigger(bench, "busy", *need_both)
    bench.run(10 * SECOND)
    trigger(bench, *need_one)
    bench.run(3 * SHORT + 2 * SERVE_MS)
    assert sorted(ran(bench, need_one)) == sorted(need_one)
    bench.run(BUSY_FOR + MINUTE)
    assert ran(bench, need_both) == need_both
    assert {state.in_use for state in limits(bench)} == {0}


@pytest.mark.parametrize("first", ["medium", "high"])
def test_given_a_narrow_rate_then_the_first_that_stands_aside_keeps_its_place_and_no_other(first: str) -> None:
    """Whoever passes, its turn comes: with the busy limit's slot it has both at once."""
    bench = a_bench()
    names = apart(9)
    need_both, its_name, need_one = names[:3], names[3], names[4:]
    schedules(bench, ["busy"], door(1))
    schedules(bench, need_both, rate(3), door(1))
    schedules(bench, [its_name], rate(3), door(1), priority=first)
    schedules(bench, need_one, rate(3))
    trigger(bench, "busy", *(need_both if first == "high" else ()), its_name, *(need_both if first == "medium" else ()))
    bench.run(10 * SECOND)
    trigger(bench, *need_one)
    bench.run(5 * MINUTE)
    assert sorted(ran(bench, need_one)) == sorted(need_one[:2])
    bench.run(BUSY_FOR - 4 * MINUTE)
    assert ran(bench, [*need_both, its_name]) == [its_name]


# -- coming back ----------------------------------------------------------------------------------------------------------------


def test_given_a_job_that_has_handed_a_place_back_then_it_comes_back_for_it_with_the_last_word() -> None:
    """The one before it waits for a limit that is busy for long, and keeps its own place meanwhile."""
    bench = a_bench()
    first, second = apart(2)
    schedules(bench, ["busy"], door(1))
    schedules(bench, ["busy-too"], door(1, "window"))
    schedules(bench, [first], rate(2), door(1))
    schedules(bench, [second], rate(2), door(1, "window"))
    trigger(bench, "busy", "busy-too", first, second)
    bench.run(10 * SECOND)
    assert [len(state.offered) for state in limits(bench)].count(1) == 1
    stop(bench, "busy-too")
    bench.run(2 * SERVE_MS)
    assert ran(bench, [first, second]) == [second]


def test_given_that_nothing_is_left_of_what_it_handed_back_then_it_keeps_nobody_from_the_other_limit() -> None:
    bench = a_bench()
    first, second, other, third = apart(4)
    schedules(bench, ["busy"], door(1))
    schedules(bench, ["busy-too", other], door(1, "window"))
    schedules(bench, [first], rate(2), door(1))
    schedules(bench, [second], rate(2), door(1, "window"))
    schedules(bench, [third], rate(2))
    trigger(bench, "busy", "busy-too", first, second)
    bench.run(10 * SECOND)
    trigger(bench, third)
    bench.run(SECOND)
    stop(bench, "busy")  # The first one takes the place that it kept.
    bench.run(SECOND)
    assert ran(bench, [first, second, third]) == [third, first]
    trigger(bench, other)
    stop(bench, "busy-too")
    bench.run(2 * SERVE_MS + 500)
    assert ran(bench, [other, second]) == [other]
    bench.run(HOUR)
    assert ran(bench, [other, second]) == [other, second]


def stop(bench: ActorHarness, name: str) -> None:
    (run_id,) = {order.run_id for order in bench.started if schedule_of(order) == name}
    bench.request({"id": f"stop-{name}", "type": "run.cancel", "namespace": "flights", "run_id": run_id})


# -- none starves -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("busy", [FIRST, LAST])
def test_given_streams_before_each_of_two_limits_then_who_needs_both_has_its_turn_in_the_order(busy: str) -> None:
    bench = a_bench()
    names = apart(3)
    for name, constraints in zip(
        names, ([door(1, FIRST)], [door(1, LAST)], [door(1, FIRST), door(1, LAST)]), strict=True
    ):
        schedules(bench, [name], *constraints)
    trigger(bench, *[names[0] if busy == FIRST else names[1]] * 5)
    trigger(bench, names[2])
    for _ in range(40):
        trigger(bench, names[0], names[1])
        bench.run(SECOND)
    assert names[2] in ran(bench)
    at = ran(bench).index(names[2])
    # Before it went those five, what the other limit let go meanwhile, and one of each that were under way.
    assert at <= 5 + 5 + 2 + 2


@pytest.mark.parametrize("most", [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_given_jobs_that_need_two_or_three_limits_each_in_another_mix_then_all_of_them_run(
    most: tuple[int, int],
) -> None:
    """No two of them wait for each other, whatever of the words comes first."""
    bench = a_bench()
    mixes = ([FIRST, LAST], [FIRST, "middle", LAST], ["middle", LAST], [FIRST, "middle"], [FIRST], [LAST])
    names = apart(12)
    for number, name in enumerate(names):
        wanted = [door(most[number % 2], group) for group in mixes[number % len(mixes)]]
        schedules(bench, [name], *wanted, *([rate(8, per="30s")] if number % 3 == 0 else []))
    trigger(bench, *names, *names[::-1])
    bench.run(5 * MINUTE)
    assert sorted(ran(bench)) == sorted(names * 2)
    assert bench.rows("IW#") == []
    assert {state.queued for state in limits(bench)} == {None}


# -- whatever is lost, and whoever falls --------------------------------------------------------------------------------------------


def test_given_that_every_poke_is_lost_then_they_hand_back_and_come_back_all_the_same() -> None:
    bench = a_bench()
    names = apart(6)
    schedules(bench, ["busy"], door(1))
    schedules(bench, names[:3], rate(6), door(1))
    schedules(bench, names[3:], rate(6))
    bench.answer_with(lambda effect: isinstance(effect, WakeUp) and effect.run_id is not None, None, times=10**6)
    trigger(bench, "busy", *names[:3])
    bench.run(30 * SECOND)
    trigger(bench, *names[3:])
    bench.run(30 * SECOND)
    assert sorted(ran(bench, names[3:])) == sorted(names[3:])
    bench.run(BUSY_FOR + 3 * MINUTE)
    assert ran(bench, names[:3]) == names[:3]


def a_hard_minute(bench: ActorHarness) -> None:
    schedules(bench, ["busy"], door(1))
    schedules(bench, ["a", "b"], rate(3, per="40s"), door(1))
    schedules(bench, ["c", "d"], rate(3, per="40s"))
    trigger(bench, "busy", "a", "b")
    bench.run(2 * SECOND)
    trigger(bench, "c", "d")
    bench.run(2 * SECOND)
    bench.run(MINUTE)


def test_given_a_crash_after_any_effect_then_all_of_them_run_once_and_nothing_is_left_behind() -> None:
    def begun_bench() -> ActorHarness:
        bench = ActorHarness()
        bench.behaves = lambda order: Behaviour(
            starts_after=10, runs_for=10 * SECOND if schedule_of(order) == "busy" else 50
        )
        bench.run(SECOND)
        return bench

    undisturbed = begun_bench()
    a_hard_minute(undisturbed)
    assert sorted(ran(undisturbed)) == ["a", "b", "busy", "c", "d"]
    for effects in crash_points(undisturbed, after=begun_bench().effects_outside):
        bench = begun_bench()
        bench.crash_after = effects
        a_hard_minute(bench)
        assert sorted(ran(bench)) == sorted(ran(undisturbed)), effects
        assert bench.rows("IW#") == [], effects
        assert all(state.in_use == sum(state.counts.values()) + len(state.holders) for state in limits(bench)), effects
