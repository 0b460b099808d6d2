"""One-shot messages, stored ahead of their time and then due: what W1, W2, W4 and W9 have in common."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.benchmarks.rig.bulk_producer import REQUESTS, message
from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.resource_meter import Reading, spent
from tests.benchmarks.rig.sink import SinkReader
from tests.benchmarks.rig.workload import Figures
from tests.support.cluster.cpu_starvation import Starvation
from tests.support.cluster.until import now_ms

CHECKPOINT_S = 6.0
"""A shard's checkpoint comes at most 5 s after the oldest fire that is not in it: until then not all is paid for."""
BEFORE_DUE_S = 1.0
"""The fires' reading is taken so long before the first one is due."""
PATIENCE_S = 120.0
TRIES = 3
LONGER = 2.5
"""By so much the time for storing them grows with each try: machines that are busy need minutes."""
MICROSECONDS = 1e6
QUICKLY: Final[Mapping[str, Any]] = {"whole_life": False, "stored_first": False}
"""What a smoke is measured with: its figures say nothing."""


class TooLate(AssertionError):
    """The messages were not stored when the first one was due: lateness would be that of the create path."""


@dataclass(frozen=True, slots=True)
class OneShots:
    """What is sent.

    Attributes:
        messages: How many.
        over_s: Their instants are spread evenly over so many seconds; 0 for all at once.
        ahead_s: How long after the first is sent the first is due.
        keyed: Each under a key of its user's, so that it may be replaced.
        whole_life: Wait for the checkpoints as well, and count the units from the create on.
        stored_first: Refuse to measure where the first is due before all are stored. A smoke does not mind.
    """

    messages: int
    over_s: float
    ahead_s: float
    keyed: bool = False
    whole_life: bool = True
    stored_first: bool = True


def fire_one_shots(stack: Stack, plan: OneShots) -> Figures:
    """Sends, waits until all are stored, and measures how they fire; begins again with more time where that was too short.

    Raises:
        TooLate: They were not stored in time, however often it was tried.
    """
    for tries_left in reversed(range(TRIES)):
        topic = stack.sink_topic()
        with stack.consumer_of(topic, plan.messages) as consumer:
            try:
                return {"ahead_s": plan.ahead_s, **_measured(stack, plan, topic, consumer)}
            except TooLate:
                if not tries_left:
                    raise
                # They fire now, late: not beside the next try.
                consumer.wait(PATIENCE_S)
        plan = replace(plan, ahead_s=plan.ahead_s * LONGER)
    raise AssertionError("the last try returns or raises")


def _measured(stack: Stack, plan: OneShots, topic: str, consumer: SinkReader) -> Figures:
    meter = stack.nodes_meter()
    begun = meter.read()
    begun_ms = now_ms()
    due_ms = begun_ms + round(plan.ahead_s * 1_000)
    step_ms = plan.over_s * 1_000 / plan.messages
    stack.producer.send(
        REQUESTS,
        (
            message(
                number,
                due_ms + round(number * step_ms),
                topic,
                stack.shards,
                name=None if plan.keyed else f"{topic}-{number}",
                key=f"{topic}-{number}" if plan.keyed else None,
            )
            for number in range(plan.messages)
        ),
    )
    stack.until_read()
    stored_ms = now_ms()
    left_s = (due_ms - stored_ms) / 1_000 - BEFORE_DUE_S
    if left_s < 0 and plan.stored_first:
        raise TooLate(f"stored after {(stored_ms - begun_ms) / 1_000:.1f} s, and due after {plan.ahead_s:g} s")
    stored = meter.read()
    time.sleep(max(0.0, left_s))
    before_fires = meter.read()
    starvation = Starvation(node.pid for node in stack.cluster.nodes)
    arrivals = consumer.wait(plan.ahead_s + plan.over_s + PATIENCE_S)
    stretch = starvation.stretch()
    fired = meter.read()
    if plan.whole_life:
        time.sleep(CHECKPOINT_S)
    return {
        **arrivals.figures(),
        "missing": plan.messages - len(arrivals.first),
        "created_per_s": plan.messages * 1_000 / (stored_ms - begun_ms),
        "create_cpu_us_each": spent(begun, stored).cpu_s * MICROSECONDS / plan.messages,
        "cpu_stretch": stretch,
        **_fires(plan, before_fires, fired, begun, meter.read()),
    }


def _fires(plan: OneShots, before: Reading, after: Reading, begun: Reading, end: Reading) -> Figures:
    fires, life = spent(before, after), spent(begun, end)
    return {
        "cpu_s": fires.cpu_s,
        "cpu_us_each": fires.cpu_s * MICROSECONDS / plan.messages,
        "rss_mib": fires.rss_mib,
        **units_each(life.write_units, life.read_units, plan.messages),
    }


def units_each(write_units: float | None, read_units: float | None, count: int) -> Figures:
    """Returns units in all, and for each of `count` things; all None where the nodes do not count."""
    return {
        "write_units": write_units,
        "write_units_each": None if write_units is None else write_units / count,
        "read_units": read_units,
        "read_units_each": None if read_units is None else read_units / count,
    }
