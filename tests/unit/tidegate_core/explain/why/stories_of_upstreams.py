"""What becomes of schedules that wait for one that is deleted."""

from __future__ import annotations

from typing import Any

from tests.support.builders import (
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.unit.tidegate_core.explain.why.stories import story
from tests.unit.tidegate_core.explain.why.telling import served, why, why_job
from tidegate_core.explain.why.reason import Explanation

UP = on_run_of("up")


def without_up(trigger: Doc, **more: Any) -> ActorHarness:
    """`nightly` waits for `up`, which runs and is deleted."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("1m"))))
    bench.request(an_apply(a_spec(trigger=trigger, **more)))
    bench.run(SECOND)
    bench.event(an_event("d1", "a"))
    bench.run(MINUTE)
    bench.request(a_request("delete", "up"))
    bench.run(SECOND)
    return served(bench)


def of_the_ended(bench: ActorHarness) -> Explanation:
    (ended,) = [row for row in bench.rows("L#") if row["name"] == "nightly"]
    return why_job(bench, str(ended["job_id"]))


@story(
    "upstream_gone",
    (
        "upstream_gone: its trigger does without flights/up, which was deleted; apply it again to wait "
        "for what comes under that name"
    ),
    ("waiting_for_events: since 2025-11-13T02:13:22Z some of it has come; missing: 8 of 9 data partitions of a"),
)
def _an_alternative_is_left() -> Explanation:
    return why(without_up({"type": "any_of", "triggers": [on_run_of("up", "failed"), on_data("a", 9)]}))


@story(
    "cancelled/upstream_deleted",
    (
        "cancelled/upstream_deleted: its trigger waited for a schedule that was deleted, and cannot "
        "fire without it; decided at 2025-11-13T02:14:22Z"
    ),
)
def _its_job_waits_for_a_delay() -> Explanation:
    return of_the_ended(without_up(UP, constraints=[{"type": "delay", "after": "1h"}]))


@story(
    "expired/upstream_deleted",
    (
        "expired/upstream_deleted: its trigger waited for a schedule that was deleted, and the "
        "counted events were not enough; decided at 2025-11-13T02:14:22Z: flights/up, which it waited for, was "
        "deleted"
    ),
)
def _half_of_it_has_come() -> Explanation:
    return of_the_ended(without_up(all_of(on_run_of("up", "failed"), on_data("a"))))
