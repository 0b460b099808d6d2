"""The budget of retries on a bench: storms, and take-overs in them (SEMANTICS 8)."""

from __future__ import annotations

from tests.support.builders import HOUR, MINUTE, NOW, SECOND
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.retry_bench import FAILS, a_schedule, of_one_shard
from tests.support.harness.shard_bench import a_bench
from tidegate_core.shard.retry_budget import ALWAYS, BUDGET_WINDOW_MS


def test_given_a_storm_of_failures_then_the_namespace_has_a_budget_and_the_rest_is_delayed() -> None:
    bench = a_bench(FAILS)
    together = of_one_shard()
    for name in together[: 2 * ALWAYS]:
        a_schedule(bench, name, tries=1, retry={"backoff": "10s"})
    bench.run(MINUTE)
    assert sum(attempt == 2 for attempt, _ in bench.submitted_at) == ALWAYS
    bench.run(HOUR)
    assert sum(attempt == 2 for attempt, _ in bench.submitted_at) == 2 * ALWAYS


def test_given_an_owner_that_falls_in_a_storm_then_its_successor_knows_the_retries_that_are_under_way() -> None:
    """Review finding: a successor began with an empty budget, and each take-over allowed the namespace five retries more."""
    bench = a_bench(FAILS)
    together = of_one_shard()
    for name in together[:ALWAYS]:
        a_schedule(bench, name, tries=1, retry={"backoff": "30s"})
    bench.run(5 * SECOND)
    bench.crash()
    bench.run(5 * SECOND)
    for name in together[ALWAYS : 2 * ALWAYS]:
        a_schedule(bench, name, tries=1, retry={"backoff": "10s"})
    bench.run(MINUTE)
    assert sum(attempt == 2 for attempt, _ in bench.submitted_at) == ALWAYS
    bench.run(HOUR)
    assert sum(attempt == 2 for attempt, _ in bench.submitted_at) == 2 * ALWAYS


def test_given_programs_that_fail_together_then_one_transaction_has_no_more_retries_than_many() -> None:
    """Decisions that share a transaction know of each other's retries."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=10 * SECOND, outcome="failed"))
    for name in of_one_shard()[: 2 * ALWAYS]:
        a_schedule(bench, name, tries=1, retry={"backoff": "10s"})
    bench.run(5 * SECOND)
    bench.store_answers_after = 50
    bench.run(MINUTE)
    assert sum(attempt == 2 for attempt, _ in bench.submitted_at) == ALWAYS


def test_given_retries_that_were_to_begin_while_nobody_was_here_then_they_do_not_begin_all_at_once() -> None:
    """Found in review: behind an outage of hours all that had been delayed in them began in one second."""
    bench = a_bench(FAILS)
    for name in of_one_shard()[: 4 * ALWAYS]:
        a_schedule(bench, name, tries=1, retry={"backoff": "10s"})
    bench.run(MINUTE)
    bench.away(3 * HOUR)
    bench.run(MINUTE)
    bench.crash()
    bench.run(HOUR)
    begins = sorted(at - NOW for attempt, at in bench.submitted_at if attempt == 2)
    assert len(begins) == 4 * ALWAYS
    assert all(last - first >= BUDGET_WINDOW_MS for first, last in zip(begins, begins[ALWAYS:], strict=False))
