"""W4: a million one-shot messages are stored for the next 30 days, and a thousand others fire meanwhile."""

from __future__ import annotations

from dataclasses import replace

from tests.benchmarks.rig.bulk_producer import REQUESTS, message
from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.one_shot_messages import OneShots, fire_one_shots
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload
from tests.support.cluster.until import now_ms

DAY_MS = 86_400_000
AT_ONCE = 20_000
"""Sent, and waited for, before the next are: the node's backlog of requests stays small."""


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Fires on the empty stack, stores the many, and fires the same again."""
    plan = OneShots(**parameters["fires"])
    empty = fire_one_shots(stack, replace(plan, whole_life=False))
    begun_ms = now_ms()
    _store(stack, parameters["stored"], parameters["over_days"] * DAY_MS)
    stored_s = (now_ms() - begun_ms) / 1_000
    full = fire_one_shots(stack, plan)
    ratio = {f"{name}_to_empty": _ratio(full[name], empty[name]) for name in ("late_p50_ms", "late_p99_ms")}
    before = {f"empty_{name}": empty[name] for name in ("late_p50_ms", "late_p99_ms", "cpu_us_each", "rss_mib")}
    return {**full, **ratio, **before, "stored_per_s": parameters["stored"] / stored_s}


def _store(stack: Stack, count: int, over_ms: int) -> None:
    topic = stack.sink_topic()
    # Beyond the window of a minute that a node holds.
    begin_ms = now_ms() + DAY_MS
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, count))
        stack.producer.send(
            REQUESTS,
            (
                message(number, begin_ms + number * over_ms // count, topic, stack.shards, name=f"{topic}-{number}")
                for number in numbers
            ),
        )
        stack.until_read()


def _ratio(full: float | None, empty: float | None) -> float | None:
    return full / empty if full is not None and empty else None


WORKLOAD = Workload(
    name="W4",
    title="1,000,000 one-shot messages stored over 30 days; 1,000 others fire over 10 s, before and after",
    measure=measure,
    full=[
        Case(
            "",
            {
                "stored": 1_000_000,
                "over_days": 30,
                "fires": {"messages": 1_000, "over_s": 10.0, "ahead_s": 30.0},
            },
        )
    ],
    smoke=[
        Case(
            "",
            {
                "stored": 100,
                "over_days": 30,
                "fires": {
                    "messages": 20,
                    "over_s": 0.5,
                    "ahead_s": 1.5,
                    "whole_life": False,
                    "stored_first": False,
                },
            },
        )
    ],
)
