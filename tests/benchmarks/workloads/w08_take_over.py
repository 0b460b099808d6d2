"""W8: a node takes over shards that hold a lot: from its assignment until each of them serves."""

from __future__ import annotations

import time
from datetime import datetime

from tests.benchmarks.rig.bulk_producer import REQUESTS, apply, message
from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.resource_meter import used_by
from tests.benchmarks.rig.waiting_jobs import delete_schedules, make_held_jobs
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload
from tests.support.cluster.until import now_ms

FAR_MS = 86_400_000
NEAR_MS = (45_000, 60_000)
"""In the window that a take-over loads, and not due before it is over."""
RECURRING_PERIOD = "10m"


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Fills the shards, ends the node, and watches its next life take all over."""
    topic = stack.sink_topic()
    far, near = parameters["messages"] - parameters["in_window"], parameters["in_window"]
    now = now_ms()
    stack.producer.send(
        REQUESTS,
        (
            message(number, now + FAR_MS + number, topic, stack.shards, name=f"{topic}-f{number}")
            for number in range(far)
        ),
    )
    recurring = _make_recurring(stack, topic, parameters["recurring"])
    held = make_held_jobs(stack, parameters["jobs"])
    now = now_ms()
    stack.producer.send(
        REQUESTS,
        (
            message(
                number,
                now + NEAR_MS[0] + number * (NEAR_MS[1] - NEAR_MS[0]) // near,
                topic,
                stack.shards,
                name=f"{topic}-n{number}",
            )
            for number in range(near)
        ),
    )
    stack.until_applied()
    figures = _take_over(stack, kill=parameters["kill"])
    if parameters["clean"]:
        delete_schedules(stack, [*recurring, *held])
    return figures


def _make_recurring(stack: Stack, topic: str, count: int) -> list[str]:
    spec = {
        "target": {"type": "message", "topic": topic, "payload": {"tick": True}},
        "trigger": {"type": "every", "period": RECURRING_PERIOD},
    }
    names = [f"{topic}-r{number}" for number in range(count)]
    stack.apply([apply(name, spec, stack.shards) for name in names])
    return names


def _take_over(stack: Stack, *, kill: bool) -> Figures:
    node = stack.node
    if kill:
        node.kill()
    else:
        node.terminate()
        node.wait()
    ended_s = time.time()
    node.start()
    node.until_ready()
    stack.cluster.until_all_serve()
    # The new process's own counters begin with it.
    used = used_by(node)
    assigned_s = min(_since(stack, "assigned", ended_s))
    served_s = max(_since(stack, "serving", ended_s))
    return {
        "assigned_to_serving_s": served_s - assigned_s,
        "end_to_serving_s": served_s - ended_s,
        "cpu_s": used.cpu_s,
        "rss_mib": used.rss_mib,
        "store_calls": used.calls,
        "write_units": used.write_units,
        "read_units": used.read_units,
    }


def _since(stack: Stack, event: str, begin_s: float) -> list[float]:
    moments = [datetime.fromisoformat(str(each["at"])).timestamp() for each in stack.node.events(event)]
    return [moment for moment in moments if moment >= begin_s]


WORKLOAD = Workload(
    name="W8",
    title="Take-over of 100,000 one-shots (5,000 in the window), 5,000 recurring messages, 5,000 held jobs",
    measure=measure,
    full=[
        Case(
            "",
            {"messages": 100_000, "in_window": 5_000, "recurring": 5_000, "jobs": 5_000, "kill": True, "clean": False},
        )
    ],
    smoke=[Case("", {"messages": 40, "in_window": 20, "recurring": 3, "jobs": 3, "kill": False, "clean": True})],
)
