"""Schedules that share a rate on a bench whose store takes its time, and what the rate counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.builders import SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.crowds import FILE, LATENCY_MS
from tidegate_core.rows.shared_limit import SharedLimit

QUICK = Behaviour(starts_after=10, runs_for=50)


def rate(most: int, scope: str = "group", per: str = "1m", **more: Any) -> Doc:
    named = {"group": {"group": "crowd"}, "key": {"key": "day"}}.get(scope, {})
    return {"type": "rate", "max": most, "per": per, "scope": scope, **named, **more}


def a_bench(behaviour: Behaviour = QUICK, shards: int = 8) -> ActorHarness:
    bench = ActorHarness(shards=shards, behaviour=behaviour)
    bench.store_answers_after = LATENCY_MS
    bench.run(5 * SECOND)
    return bench


def schedules(bench: ActorHarness, names: Sequence[str], *constraints: Doc, **more: Any) -> None:
    for name in names:
        spec = a_spec(name, every("10h"), file=FILE, constraints=list(constraints), **more)
        bench.request(an_apply(spec, f"apply-{name}-{bench.now}"))
    bench.run(SECOND)


def trigger(bench: ActorHarness, *names: str) -> list[str]:
    """Runs the schedules by hand, 50 ms apart; returns the jobs."""
    made: list[str] = []
    for name in names:
        request_id = f"now-{name}-{bench.now}"
        bench.request(a_request("trigger", name, request_id=request_id))
        bench.run(50)
        made.append(str(bench.receipts()[request_id]["id"]))
    return made


def begun(bench: ActorHarness) -> list[int]:
    return [mark.at for mark in bench.marks if mark.begins]


def started(bench: ActorHarness) -> list[str]:
    return [order.run_id for order in bench.started]


def admitted(bench: ActorHarness) -> list[int]:
    """Returns when the runs were admitted, as their own items say."""
    return sorted(int(str(run["admitted_at"])) for run in bench.rows("R#"))


def the_rate(bench: ActorHarness) -> SharedLimit:
    rows = [row for row in bench.rows("LIMIT") if "#rate-" in str(row["pk"])]
    assert len(rows) <= 1
    return SharedLimit.of(rows[0] if rows else None)
