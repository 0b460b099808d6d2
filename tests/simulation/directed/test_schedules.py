"""A schedule's instants and lives: what a stall passes, what a name's next life must not inherit (H12, H13, H14)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.ownership.shard_actor import TIMER_WINDOW_MS


def a_bench() -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(runs_for=100))
    bench.run(SECOND)
    return bench


def nominals(bench: ActorHarness) -> list[int]:
    return [entry[2] for entry in bench.ledger()]


@pytest.mark.parametrize("away_ms", [TIMER_WINDOW_MS // 2, TIMER_WINDOW_MS, 3 * TIMER_WINDOW_MS])
def test_given_nobody_for_longer_than_is_looked_ahead_then_every_instant_gets_its_run(away_ms: int) -> None:
    """H12: timer rows are read from the very first one, not from where the last look ended or from now."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow")))
    bench.run(90 * SECOND)
    first = nominals(bench)[0]
    bench.away(away_ms)
    bench.run(2 * MINUTE)
    assert nominals(bench) == list(range(first, bench.now + 1, MINUTE))


def test_given_a_fire_that_gets_no_answer_for_longer_than_is_looked_ahead_then_it_comes_all_the_same() -> None:
    """H12, H15: looks come and go meanwhile; the row stays where it is until its instant has become a job."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow")))
    bench.lose(a_commit("fire"), times=10**6)
    bench.run(3 * TIMER_WINDOW_MS)
    assert bench.ledger() == []
    bench.as_usual()
    bench.run(2 * MINUTE)
    assert nominals(bench) == list(range(nominals(bench)[0], bench.now + 1, MINUTE))
    assert len(nominals(bench)) >= 3 * TIMER_WINDOW_MS // MINUTE


def test_given_a_schedule_that_is_made_within_what_was_looked_ahead_then_its_first_instant_comes() -> None:
    """H12: what is in memory is a cache of the rows, and learns of each row that is written."""
    bench = a_bench()
    bench.run(TIMER_WINDOW_MS // 4)
    bench.request(an_apply(a_spec(trigger=every("10s"))))
    bench.run(11 * SECOND)
    assert len(bench.started) == 1


def test_given_an_update_whose_write_is_under_way_when_the_former_instant_comes_then_that_one_does_not_fire() -> None:
    """A timer row is a lower bound: whoever takes it decides again, from the state that is there by then (DESIGN 4)."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    bench.run(30 * SECOND)
    bench.hold_back(a_commit("control"))
    bench.request(an_apply(a_spec(trigger=every("10m")), "second"))
    bench.run(20 * SECOND)
    assert bench.holds_something, "the instant passes meanwhile, and its row is taken"
    bench.release()
    bench.run(5 * MINUTE)
    assert bench.status_of("second") == "accepted"
    assert bench.started == []


def test_given_a_name_that_comes_back_then_its_first_occurrence_is_another_one_than_the_former_lifes() -> None:
    """H13: the count of occurrences begins anew with a new life; what tells them apart is the incarnation."""
    bench = ActorHarness(behaviour=Behaviour(runs_for=100))
    bench.run(SECOND)
    for life in ("first", "second"):
        bench.request(an_apply(a_spec(trigger=on_data()), f"apply-{life}"))
        bench.run(SECOND)
        bench.event(an_event(f"day of the {life}"))
        bench.run(5 * SECOND)
        bench.request(a_request("delete", request_id=f"delete-{life}"))
        bench.run(SECOND)
    runs = [order.run_id for order in bench.started]
    assert len(set(runs)) == 2
    assert [entry[0] for entry in bench.ledger()] == ["launched", "launched"]
