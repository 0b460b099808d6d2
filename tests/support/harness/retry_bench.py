"""Schedules whose programs fail, and what becomes of them, for the tests of retries."""

from __future__ import annotations

from typing import Any

from tests.support.builders import a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows.effects import LaunchOrder

FAILS = Behaviour(starts_after=10, runs_for=100, outcome="failed")
SUCCEEDS = Behaviour(starts_after=10, runs_for=100)


def failing(attempts: int, error_class: str | None = None) -> Any:
    """Programs that fail so often, and then succeed."""
    fails = Behaviour(starts_after=10, runs_for=100, outcome="failed", error_class=error_class)

    def behaves(order: LaunchOrder) -> Behaviour:
        return fails if order.attempt <= attempts else SUCCEEDS

    return behaves


def a_schedule(bench: ActorHarness, name: str = "nightly", *, tries: int = 2, retry: Any = None, **more: Any) -> str:
    """Applies a schedule and runs it by hand; returns the run's id."""
    spec = a_spec(name, every("10h"), retry={"tries": tries, **(retry or {})}, **more)
    bench.request(an_apply(spec))
    return by_hand(bench, name)


def by_hand(bench: ActorHarness, name: str = "nightly") -> str:
    request = f"now-{name}-{bench.now}"
    bench.request(a_request("trigger", name, request_id=request))
    return str(bench.receipts()[request]["id"])


def of_one_shard() -> list[str]:
    return [name for name in (f"s-{number}" for number in range(99)) if schedule_shard("flights", name, 4) == 0]


def begun(bench: ActorHarness) -> list[tuple[int, int]]:
    """Returns attempt and the seconds since the first one, of all that were submitted."""
    first = bench.submitted_at[0][1]
    return [(attempt, round((at - first) / 1_000)) for attempt, at in bench.submitted_at]


def ends(bench: ActorHarness) -> list[str]:
    return [str(row["state"]) for row in bench.rows("L#") if row.get("state") is not None]
