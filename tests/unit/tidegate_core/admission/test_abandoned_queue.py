"""A queue that all have left while its home did not look: what its mark says holds up nobody, and keeps no item (DESIGN 6)."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.crash_points import crash_points
from tests.support.harness.shard_bench import a_bench
from tests.unit.tidegate_core.admission.test_shared_limits import FILE, a_poke, started, the_limit, trigger
from tidegate_core.admission import abandoned_queue
from tidegate_core.rows.effects import Commit, Effect, ReadRange
from tidegate_core.rows.store_operations import Key, Put, Update
from tidegate_core.shard.limits import limit_queue_entry

RUNS_FOR = 30 * SECOND
RATE: Doc = {"type": "rate", "max": 1, "per": "5s", "scope": "group", "group": "calls"}
NOBODY_THERE = "flights#gone@1"
"""A mark as somebody has left it who is in no queue any more."""


def a_bench_with(limit: Doc, waits: int = 2) -> ActorHarness:
    """Schedules s-0 and on share the limit; those behind the first `waits` abort."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=RUNS_FOR))
    for number in range(4):
        constraint = {**limit, "on_unmet": "wait" if number < waits else "abort"}
        spec = a_spec(f"s-{number}", every("100h"), file=FILE, constraints=[constraint], overlap="allow")
        bench.request(an_apply(spec, f"apply-s-{number}"))
    bench.run(SECOND)
    return bench


def cancelled(bench: ActorHarness, job_id: str) -> None:
    bench.request({"id": f"cancel-{job_id}", "type": "job.cancel", "namespace": "flights", "job_id": job_id})


def with_a_left_queue(limit: Doc) -> ActorHarness:
    """Whoever had joined was cancelled while the limit's home was away."""
    bench = a_bench_with(limit)
    trigger(bench, "s-0")
    (waits,) = trigger(bench, "s-1")
    bench.run(3 * SECOND)
    cancelled(bench, waits)
    bench.crash()
    bench.run(2 * MINUTE)
    assert bench.rows("IW#") == []
    assert the_limit(bench).queued is not None
    return bench


# -- who aborts --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [at_most(1, "program"), RATE], ids=["limit", "rate"])
def test_given_that_the_home_fell_as_the_queue_was_left_then_a_job_that_aborts_starts(limit: Doc) -> None:
    bench = with_a_left_queue(limit)
    made = trigger(bench, "s-2")
    bench.run(SECOND)
    assert started(bench)[-1:] == made
    assert the_limit(bench).queued is None


def test_given_that_the_poke_of_joining_was_lost_and_the_queue_left_then_a_job_that_aborts_starts() -> None:
    bench = a_bench_with(at_most(1, "program"))
    trigger(bench, "s-0")
    bench.answer_with(a_poke, None, times=1_000)
    (waits,) = trigger(bench, "s-1")
    cancelled(bench, waits)
    bench.run(MINUTE)
    made = trigger(bench, "s-2")
    bench.run(SECOND)
    assert started(bench)[-1:] == made


@pytest.mark.parametrize("slot", ["taken", "free"])
def test_given_that_others_wait_then_a_job_that_aborts_ends_and_they_lose_nothing(slot: str) -> None:
    bench = a_bench_with(at_most(1, "program"))
    made = trigger(bench, "s-0", "s-1")
    bench.run(SECOND)
    if slot == "free":
        bench.answer_with(a_poke, None, times=1_000)
        while the_limit(bench).in_use:
            bench.run(50)
    trigger(bench, "s-2")
    bench.as_usual()
    bench.run(MINUTE)
    assert started(bench) == made
    (entry,) = [entry for entry in bench.ledger() if entry[0].startswith("skipped")]
    assert entry[0] == "skipped/concurrency"


def test_given_that_the_limit_is_full_then_nobody_looks_into_its_queue_before_a_job_aborts() -> None:
    bench = a_bench_with(at_most(1, "program"))
    trigger(bench, "s-0", "s-1")
    bench.run(SECOND)
    bench.asked.clear()
    trigger(bench, "s-2")
    bench.run(100)
    assert not any(map(looks_into_a_queue, bench.asked))


def looks_into_a_queue(effect: Effect) -> bool:
    limit = abandoned_queue.ROWS_MAX
    return isinstance(effect, ReadRange) and effect.range.low.startswith("IW#") and effect.range.limit == limit


# -- races -------------------------------------------------------------------------------------------------------------------------


def test_given_that_somebody_joins_between_the_look_and_the_closing_then_the_job_stands_in_its_place_before_him() -> (
    None
):
    bench = with_a_left_queue(at_most(1, "program"))
    bench.hold_back(closes)
    (first,) = trigger(bench, "s-2")
    while not bench.holds_something:
        bench.run(1)
    bench.answer_with(a_poke, None, times=1_000)
    (joins,) = trigger(bench, "s-1")
    bench.release()
    bench.run(100)
    assert the_limit(bench).queued is not None
    assert len(started(bench)) == 1
    assert [row["job_id"] for row in bench.rows("IW#")] == [first, joins]
    bench.as_usual()
    bench.run(MINUTE)
    assert started(bench)[1:] == [first, joins]


def closes(effect: Effect) -> bool:
    return isinstance(effect, Commit) and any(
        isinstance(each, Update) and each.expression == "REMOVE #queued" for each in effect.transaction.actions
    )


def test_given_a_crash_after_any_effect_then_the_job_that_aborts_starts_once() -> None:
    def a_story(bench: ActorHarness) -> None:
        trigger(bench, "s-2")
        bench.run(10 * SECOND)

    undisturbed = with_a_left_queue(at_most(1, "program"))
    before = undisturbed.effects_outside
    a_story(undisturbed)
    assert undisturbed.effects_outside > before
    for effects in crash_points(undisturbed, after=before):
        bench = with_a_left_queue(at_most(1, "program"))
        bench.crash_after = effects
        a_story(bench)
        assert len({order.run_id for order in bench.started}) == 2, effects


def test_given_two_that_abort_then_the_queue_is_closed_once_and_one_of_them_has_the_slot() -> None:
    bench = with_a_left_queue(at_most(1, "program"))
    made = trigger(bench, "s-2", "s-3")
    bench.run(SECOND)
    assert len(started(bench)) == 2
    assert started(bench)[-1] in made
    assert [entry[0] for entry in bench.ledger()].count("skipped/concurrency") == 1


# -- limits of keys ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _idle_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_queue_entry, "IDLE_MS", MINUTE)


@pytest.mark.usefixtures("_idle_soon")
def test_given_a_key_whose_queue_was_left_then_nothing_is_left_of_its_limit() -> None:
    bench = a_bench_with(at_most(1, "key", key="it"))
    trigger(bench, "s-0")
    (waits,) = trigger(bench, "s-1")
    bench.run(3 * SECOND)
    cancelled(bench, waits)
    bench.crash()
    bench.answer_with(a_poke, None, times=1_000)
    bench.run(20 * MINUTE)
    assert bench.rows("LIMIT") == []
    assert [row for row in bench.rows("T#") if row["kind"] == "L"] == []


@pytest.mark.usefixtures("_idle_soon")
def test_given_a_key_whose_mark_stays_while_it_is_used_then_its_home_closes_the_queue_all_the_same() -> None:
    bench = a_bench_with(at_most(2, "key", key="it"))
    bench.behaves = lambda order: Behaviour(starts_after=10, runs_for=HOUR)
    trigger(bench, "s-0")
    bench.run(SECOND)
    (item,) = bench.rows("LIMIT")
    bench.store.write([Put(Key(str(item["pk"]), "LIMIT"), {**item, "queued": NOBODY_THERE})])
    bench.run(20 * MINUTE)
    assert the_limit(bench).queued is None
    assert the_limit(bench).in_use == 1
