"""Limits and rates of keys come to an end: a key has one for each of its values, and most values never come again (DESIGN 6)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.crash_points import crash_points
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.shard_bench import a_bench
from tidegate_core.admission.limit_coordinator import SERVE_MS
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Read, ReadRange
from tidegate_core.rows.shared_limit import EXPIRED_MAX, SharedLimit
from tidegate_core.rows.store_operations import Item
from tidegate_core.shard.limits import limit_queue_entry
from tidegate_core.writes.limit_permits import HOLDERS_INLINE_MAX

QUICK = Behaviour(starts_after=10, runs_for=50)
IDLE_MS = MINUTE
"""Here; an hour in production. Nothing in these stories comes that late."""
GONE_WITHIN_MS = 2 * IDLE_MS + 5 * MINUTE
"""After the last use; rows are read into memory at least every five minutes."""
OF_EACH_INSTANT = "at ${nominal}"


@pytest.fixture(autouse=True)
def _idle_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_queue_entry, "IDLE_MS", IDLE_MS)


def limit(most: int = 1, key: str = OF_EACH_INSTANT) -> Doc:
    return at_most(most, "key", key=key)


def rate(most: int = 1, per: str = "1m", key: str = OF_EACH_INSTANT) -> Doc:
    return {"type": "rate", "max": most, "per": per, "scope": "key", "key": key}


def applied(bench: ActorHarness, name: str, *constraints: Doc) -> None:
    bench.request(
        an_apply(a_spec(name, every("100h"), constraints=list(constraints), overlap="allow"), f"apply-{name}")
    )
    bench.run(SECOND)


def trigger(bench: ActorHarness, *names: str) -> None:
    for number, name in enumerate(names):
        bench.request(a_request("trigger", name, request_id=f"{name}-{bench.now}-{number}"))
        bench.run(10)


def items(bench: ActorHarness) -> list[Item]:
    return [row for prefix in ("LIMIT", "PERMIT#") for row in bench.rows(prefix)]


def looks(bench: ActorHarness) -> list[Item]:
    return [row for row in bench.rows("T#") if row["kind"] == "L"]


def a_bench_of(behaviour: Behaviour = QUICK) -> ActorHarness:
    return a_bench(behaviour)


# -- what ends -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param(limit(), id="limit"),
        pytest.param(limit(HOLDERS_INLINE_MAX + 4), id="wide limit"),
        pytest.param(rate(), id="rate"),
        pytest.param(rate(per="15m"), id="long rate"),
    ],
)
def test_given_values_that_never_come_again_then_nothing_is_left_of_their_limits(constraint: Doc) -> None:
    bench = a_bench_of()
    applied(bench, "a", constraint)
    trigger(bench, *"aaaaa")
    bench.run(SECOND)
    assert len(bench.rows("LIMIT")) == len(looks(bench)) == len(bench.started) == 5
    bench.run(15 * MINUTE + GONE_WITHIN_MS)
    assert (items(bench), looks(bench)) == ([], [])


@pytest.mark.parametrize("constraint", [limit(), rate()], ids=["limit", "rate"])
def test_given_ever_new_values_and_no_job_that_waits_then_an_admission_reads_its_own_value_and_none_of_before(
    constraint: Doc,
) -> None:
    """It read all of them, and from 2,000 on, more than a shard writer's view holds, the job was set aside for ten minutes."""
    bench = a_bench_of()
    applied(bench, "a", constraint)
    for number in range(40):
        bench.asked.clear()
        trigger(bench, "a")
        bench.run(SECOND)
        assert len(bench.started) == number + 1
    limits = [key for read in bench.all_asked(Read) for key in read.keys if key.pk.startswith(keys.SHARED_LIMIT)]
    assert len(limits) == 1


def test_given_a_value_that_is_used_often_then_its_uses_of_an_hour_share_a_row() -> None:
    bench = a_bench_of()
    applied(bench, "a", limit(key="it"), rate(100, key="it"))
    for _ in range(30):
        trigger(bench, "a")
        bench.run(2 * SECOND)
    assert len(bench.started) == 30
    assert len(looks(bench)) <= 2 * 3
    bench.run(GONE_WITHIN_MS)
    assert (items(bench), looks(bench)) == ([], [])


def test_given_a_rate_with_many_counts_that_have_passed_then_they_are_taken_out_and_it_goes() -> None:
    bench = a_bench_of()
    applied(bench, "a", rate(40, per="10m", key="it"))
    trigger(bench, *["a"] * (2 * EXPIRED_MAX))
    bench.run(10 * MINUTE + GONE_WITHIN_MS)
    assert (items(bench), looks(bench)) == ([], [])


def test_given_limits_of_groups_and_programs_then_they_stay_and_cost_no_rows() -> None:
    bench = a_bench_of()
    applied(bench, "a", at_most(1, "program"), at_most(1, "group", group="all"))
    trigger(bench, "a")
    bench.run(GONE_WITHIN_MS)
    assert (len(items(bench)), looks(bench)) == (2, [])


# -- what does not -----------------------------------------------------------------------------------------------------------------


def test_given_a_run_that_takes_long_then_its_limit_stays_until_it_has_ended_and_nobody_waits() -> None:
    bench = a_bench_of(Behaviour(starts_after=10, runs_for=20 * MINUTE))
    applied(bench, "a", limit(key="it"))
    trigger(bench, "a", "a")
    bench.run(19 * MINUTE)
    assert len(bench.started) == 1
    (item,) = bench.rows("LIMIT")
    assert SharedLimit.of(item).in_use == 1
    assert len(looks(bench)) == 1
    bench.run(21 * MINUTE + GONE_WITHIN_MS)
    assert len(bench.started) == 2
    assert (items(bench), looks(bench)) == ([], [])


def test_given_a_limit_that_was_removed_then_the_next_one_of_its_value_finds_it_as_it_first_was() -> None:
    """Permits, order and the way back are the same in its second life."""
    bench = a_bench_of(Behaviour(starts_after=10, runs_for=5 * SECOND))
    applied(bench, "a", limit(key="it"), rate(2, per="5m", key="it"))
    lives: list[list[int]] = []
    for _ in range(2):
        began = bench.now
        trigger(bench, *"aaa")
        bench.run(10 * MINUTE + GONE_WITHIN_MS)
        lives.append([(mark.at - began) // SECOND for mark in bench.marks if mark.begins and mark.at >= began])
        assert (items(bench), looks(bench)) == ([], [])
    first, second = lives
    assert len(first) == 3
    assert first == second


# -- whatever falls, or comes between -----------------------------------------------------------------------------------------------


def test_given_an_admission_between_look_and_removal_then_the_limit_stays() -> None:
    """I4: the home has read it idle."""
    bench = a_bench_of(Behaviour(starts_after=10, runs_for=30 * MINUTE))
    applied(bench, "a", limit(key="it"))
    bench.behaves = lambda order: QUICK
    trigger(bench, "a")
    bench.hold_back(a_commit("idle"))
    while not bench.holds_something:
        bench.run(SECOND)
    bench.behaves = lambda order: Behaviour(starts_after=10, runs_for=30 * MINUTE)
    trigger(bench, "a")
    bench.run(SECOND)
    bench.release()
    bench.run(MINUTE)
    (item,) = bench.rows("LIMIT")
    assert SharedLimit.of(item).in_use == 1
    trigger(bench, "a")
    bench.run(10 * MINUTE)
    assert len(bench.started) == 2
    bench.run(60 * MINUTE + GONE_WITHIN_MS)
    assert (items(bench), looks(bench)) == ([], [])


@pytest.mark.parametrize("constraint", [limit(), rate()], ids=["limit", "rate"])
def test_given_a_crash_after_any_effect_then_all_of_them_end_all_the_same(constraint: Doc) -> None:
    def a_day(bench: ActorHarness) -> None:
        applied(bench, "a", constraint)
        trigger(bench, "a", "a")
        bench.run(MINUTE + GONE_WITHIN_MS + MINUTE)

    undisturbed = a_bench_of()
    a_day(undisturbed)
    for effects in crash_points(undisturbed, after=a_bench_of().effects_outside):
        bench = a_bench_of()
        bench.crash_after = effects
        a_day(bench)
        assert len({order.run_id for order in bench.started}) == 2, effects
        assert (items(bench), looks(bench)) == ([], []), effects


# -- the sweep of queues ---------------------------------------------------------------------------------------------------------------


def test_given_a_store_that_is_away_then_its_sweeps_of_queues_do_not_pile_up() -> None:
    """From a review: one more began every ten seconds, and all of them went on when the store was back."""
    bench = a_bench_of(Behaviour(starts_after=10, runs_for=None))
    applied(bench, "a", limit(key="it"))
    trigger(bench, "a", "a")
    bench.run(MINUTE)
    assert bench.rows("IW#") != []

    def a_sweep(effect: object) -> bool:
        return isinstance(effect, ReadRange) and effect.range.low == "IW#"

    bench.hold_back(a_sweep, times=10**6)
    bench.asked.clear()
    bench.run(3 * MINUTE)
    assert sum(map(a_sweep, bench.asked)) == 1  # Of the home; the three other shards see that nobody waits there.
    bench.as_usual()
    bench.release()
    bench.asked.clear()
    bench.run(MINUTE + SERVE_MS)
    assert sum(map(a_sweep, bench.asked)) >= 4


def test_given_a_store_that_is_away_then_looks_at_what_others_brought_do_not_pile_up_either() -> None:
    """Each shard's sweep waits for its own, and goes on with what it finds."""
    bench = a_bench_of(Behaviour(starts_after=10, runs_for=None))
    applied(bench, "a", limit(key="it"))
    trigger(bench, "a", "a")
    bench.run(MINUTE)

    def a_look(effect: object) -> bool:
        return isinstance(effect, ReadRange) and effect.range.low == "I#" and effect.range.limit == 1

    bench.hold_back(a_look, times=10**6)
    bench.asked.clear()
    bench.run(3 * MINUTE)
    assert sum(map(a_look, bench.asked)) == 4  # One of each of the four shards.
    bench.as_usual()
    bench.release()
    bench.asked.clear()
    bench.run(MINUTE)
    assert sum(map(a_look, bench.asked)) >= 4 * 4
