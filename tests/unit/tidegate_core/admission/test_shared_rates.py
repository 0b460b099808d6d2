"""Runs per time of a program, a group or a key, across shards: never more than may in any span, in order (issue 5)."""

from __future__ import annotations

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, NOW, SECOND, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.crowds import CROWD, SHARDS, USED_WITHIN_MS, apart, due_together, schedule_of
from tests.support.harness.rates_bench import a_bench, admitted, begun, rate, schedules, started, trigger
from tidegate_core.rows.effects import Commit, Read
from tidegate_core.shard.limits.limit_queue_entry import ASK_AGAIN_MS


@pytest.mark.parametrize("scope", ["program", "group"])
@pytest.mark.parametrize("most", [1, 3, 50])
def test_given_a_crowd_of_schedules_on_as_many_shards_due_at_once_then_no_minute_has_more_than_the_rate(
    scope: str, most: int
) -> None:
    """SEMANTICS 7.5, issue 5: and what time gives back is used within two seconds."""
    bench = a_bench(shards=SHARDS)
    due_together(bench, apart(CROWD), rate(most, scope), overlap="allow", pending_timeout="2h")
    bench.asked.clear()
    bench.run(CROWD // most * 63 * SECOND + MINUTE)
    instants = admitted(bench)
    assert len(instants) == CROWD
    spans = [later - first for first, later in zip(instants, instants[most:], strict=False)]
    assert all(MINUTE <= span <= MINUTE + USED_WITHIN_MS for span in spans)
    assert bench.rows("IW#") == []


@pytest.mark.parametrize("most", [3, tier.at_night(20, else_=8)])
def test_given_a_crowd_then_what_is_refused_is_bounded_by_who_came(most: int) -> None:
    """No storm: who is refused once knows that it has to wait, and then goes when it is told to."""
    bench = a_bench(shards=SHARDS)
    due_together(bench, apart(CROWD), rate(most), overlap="allow", pending_timeout="2h")
    bench.asked.clear()
    bench.run(CROWD // most * 63 * SECOND + MINUTE)
    admissions = [each.transaction for each in bench.all_asked(Commit) if each.transaction.name == "admit"]
    tried = sum(any(action.key.sk.startswith("R#") for action in each.actions) for each in admissions)
    assert len(admitted(bench)) == CROWD
    assert tried <= 2 * CROWD


def test_given_a_wait_of_hours_then_nobody_asks_the_store_for_the_rate_but_now_and_then() -> None:
    """CD-100: a rate's home knows when it has room again."""
    bench = a_bench()
    names = apart(4)
    schedules(bench, names, rate(1, per="6h"), pending_timeout="9h")
    trigger(bench, *names)
    bench.run(SECOND)
    bench.asked.clear()
    bench.run(HOUR)
    reads = [read for read in bench.all_asked(Read) if any("#rate-" in key.pk for key in read.keys)]
    # Three jobs look after their rows, and the home's sweep after its queues.
    assert len(reads) <= 4 * (HOUR // ASK_AGAIN_MS) + 10
    assert bench.all_asked(Commit) == []
    bench.passes_over_routine = True
    bench.run(6 * HOUR)
    assert len(begun(bench)) == 2


def test_given_jobs_of_several_shards_then_they_go_in_the_order_in_which_they_were_satisfied() -> None:
    bench = a_bench()
    names = apart(6)
    schedules(bench, names, rate(2))
    made = trigger(bench, *names)
    bench.run(5 * MINUTE)
    assert started(bench) == made


def test_given_classes_then_the_highest_goes_first() -> None:
    bench = a_bench()
    low, high = apart(4)[:2], apart(4)[2:]
    schedules(bench, low, rate(1), priority="low")
    schedules(bench, high, rate(1), priority="high")
    made = trigger(bench, *low, *high)
    bench.run(5 * MINUTE)
    assert started(bench) == [made[0], made[2], made[3], made[1]]


def test_given_a_key_then_each_value_has_a_rate_of_its_own() -> None:
    bench = a_bench()
    for name, day in (("a", "mon"), ("b", "mon"), ("c", "tue")):
        spec = a_spec(name, every("10h"), constraints=[rate(1, "key") | {"key": f"day {day}"}])
        bench.request(an_apply(spec))
    bench.run(SECOND)
    trigger(bench, "a", "b", "c")
    bench.run(SECOND)
    assert sorted(map(schedule_of, bench.started)) == ["a", "c"]
    bench.run(MINUTE)
    assert sorted(map(schedule_of, bench.started)) == ["a", "b", "c"]


def test_given_a_calendar_then_each_hour_has_its_own_count() -> None:
    """NOW is 02:13:20."""
    bench = a_bench()
    names = apart(3)
    schedules(bench, names, rate(1, per="1h", window="calendar", zone="Asia/Kolkata"))
    trigger(bench, *names)
    bench.run(2 * HOUR)
    half_past = NOW - (13 * MINUTE + 20 * SECOND) + 30 * MINUTE
    assert [instant - half_past for instant in admitted(bench)[1:]] == [
        pytest.approx(0, abs=USED_WITHIN_MS),
        pytest.approx(HOUR, abs=USED_WITHIN_MS),
    ]


def test_given_schedules_with_other_bounds_then_each_is_admitted_by_its_own_and_counts_all() -> None:
    bench = a_bench()
    wide, narrow = apart(2)
    schedules(bench, [wide], rate(3), overlap="allow")
    schedules(bench, [narrow], rate(1))
    trigger(bench, wide, wide)
    trigger(bench, narrow)
    bench.run(50 * SECOND)
    assert list(map(schedule_of, bench.started)) == [wide, wide]
    bench.run(MINUTE)
    assert list(map(schedule_of, bench.started)) == [wide, wide, narrow]


def test_given_two_spans_of_one_group_then_both_hold() -> None:
    bench = a_bench()
    names = apart(5)
    schedules(bench, names, rate(2), rate(3, per="1h"))
    trigger(bench, *names)
    bench.run(30 * MINUTE)
    assert len(begun(bench)) == 3
    bench.run(40 * MINUTE)
    assert len(begun(bench)) == 5


def test_given_a_limit_beside_the_rate_then_who_waits_for_time_to_pass_keeps_nobody_from_a_slot() -> None:
    """SEMANTICS 7.2: the rate is asked for before the limit."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=SECOND))
    first, second, other = apart(3)
    door = at_most(1, "group", group="door")
    schedules(bench, [first, second], door, rate(1, per="1h"))
    schedules(bench, [other], door)
    made = trigger(bench, first, second)
    bench.run(MINUTE)
    made += trigger(bench, other, other)
    bench.run(10 * SECOND)
    assert started(bench) == [made[0], *made[2:]]
    bench.run(HOUR)
    assert started(bench) == [made[0], *made[2:], made[1]]


def test_given_two_spans_then_who_waits_for_the_longer_one_keeps_nobody_from_the_shorter_one() -> None:
    bench = a_bench()
    first, second, other = apart(3)
    schedules(bench, [first, second], rate(1), rate(1, per="1h"))
    schedules(bench, [other], rate(1))
    made = trigger(bench, first, second)
    bench.run(2 * MINUTE)
    made += trigger(bench, other)
    bench.run(SECOND)
    assert started(bench) == [made[0], made[2]]
    bench.run(HOUR)
    assert started(bench) == [made[0], made[2], made[1]]
