"""Many jobs before one limit, on a bench whose store takes its time, and what their programs write down."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.support import tier
from tests.support.builders import MINUTE, SECOND, Doc, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import LaunchOrder
from tidegate_core.rows.shared_limit import SharedLimit

CROWD = tier.at_night(50, else_=12)
SHARDS = 64
FILE = "/jobs/same.py"
USED_WITHIN_MS = 2 * SECOND
LATENCY_MS = 4
"""Of the store."""
STARTS_AFTER_MS = 300
"""From the submission to the gate."""


def apart(number: int) -> list[str]:
    """Returns names of schedules that live in as many shards."""
    found: dict[int, str] = {}
    for each in count():
        found.setdefault(schedule_shard("flights", f"s-{each}", SHARDS), f"s-{each}")
        if len(found) == number:
            return list(found.values())
    raise AssertionError


def a_bench(behaviour: Behaviour) -> ActorHarness:
    bench = ActorHarness(shards=SHARDS, behaviour=behaviour)
    bench.store_answers_after = LATENCY_MS
    bench.run(5 * SECOND)
    return bench


def of(scope: str, most: int, **more: Any) -> Doc:
    return at_most(most, scope, **({"group": "crowd"} if scope == "group" else {}), **more)


def due_together(bench: ActorHarness, names: list[str], *constraints: Doc, **more: Any) -> int:
    """Applies schedules that are due at one millisecond, a minute on; returns it."""
    due = (bench.now // MINUTE + 2) * MINUTE
    start, end = format_instant(due), format_instant(due + 1)
    for name in names:
        trigger = every("1m", start=start, end=end)
        bench.request(an_apply(a_spec(name, trigger, file=FILE, constraints=list(constraints), **more)))
    bench.run(due - 1 - bench.now)
    assert bench.marks == []
    return due


def most_at_a_time(bench: ActorHarness) -> int:
    running = most = 0
    for mark in bench.marks:
        running += 1 if mark.begins else -1
        most = max(most, running)
    return most


def longest_idle(bench: ActorHarness, most: int, jobs: int) -> int:
    """Returns the longest time for which a slot was free although somebody waited for it."""
    running = begun = idle = 0
    free_since: int | None = None
    for mark in bench.marks:
        if mark.begins and free_since is not None:
            idle = max(idle, mark.at - free_since)
        running, begun = running + (1 if mark.begins else -1), begun + mark.begins
        free_since = (free_since or mark.at) if running < most and begun < jobs else None
    return idle


def schedule_of(order: LaunchOrder) -> str:
    schedule = order.context["schedule"]
    assert isinstance(schedule, dict)
    return str(schedule["name"])


def limits(bench: ActorHarness) -> list[SharedLimit]:
    return [SharedLimit.of(row) for row in bench.rows("LIMIT")]


def nothing_is_held(bench: ActorHarness) -> bool:
    own = [row for row in bench.rows("LIM#") if row.get("holders")]
    rows = [*bench.rows("IW#"), *bench.rows("PERMIT#"), *own]
    return rows == [] and all(each == SharedLimit() for each in limits(bench))
