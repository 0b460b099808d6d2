"""W5: recurring messages of a short period; a fire writes nothing of its own."""

from __future__ import annotations

import time

from tests.benchmarks.rig.bulk_producer import apply
from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.one_shot_messages import CHECKPOINT_S, MICROSECONDS, units_each
from tests.benchmarks.rig.resource_meter import spent
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload

ENDLESS = 1 << 62
"""More than ever come: the consumer is ended by the clock."""


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Applies the schedules, and lets them fire for a while."""
    count, period_s, lasts_s = parameters["schedules"], parameters["period_s"], parameters["lasts_s"]
    topic = stack.sink_topic()
    spec = {
        "target": {"type": "message", "topic": topic, "payload": {"tick": True}},
        "trigger": {"type": "every", "period": f"{period_s}s"},
    }
    names = [f"{topic}-{number}" for number in range(count)]
    begun_s = time.monotonic()
    stack.apply([apply(name, spec, stack.shards) for name in names])
    applied_s = time.monotonic() - begun_s
    # What was due while they were applied is paid for before the measurement begins.
    time.sleep(parameters["pause_s"])
    meter = stack.nodes_meter()
    with stack.consumer_of(topic, ENDLESS) as consumer:
        # What the consumer reads first are the fires until now; they are left out of the figures by their instant.
        begun, begun_ms = meter.read(), time.time() * 1_000
        time.sleep(lasts_s)
        end, end_ms = meter.read(), time.time() * 1_000
        time.sleep(parameters.get("arrives_s", parameters["pause_s"]))
        arrivals = consumer.end()
    fires = len(arrivals.between(begun_ms, end_ms).first)
    # Of the last period some may still be on their way; of the one before, each schedule has delivered one.
    last_ms = end_ms - period_s * 1_000
    used = spent(begun, end)
    return {
        **arrivals.between(begun_ms, last_ms).figures(),
        "fires": fires,
        "missing": len(names) - len(arrivals.between(last_ms - period_s * 1_000, last_ms).first),
        "applied_per_s": count / applied_s,
        "cpu_s": used.cpu_s,
        "cpu_us_each": used.cpu_s * MICROSECONDS / max(fires, 1),
        "rss_mib": used.rss_mib,
        **units_each(used.write_units, used.read_units, max(fires, 1)),
    }


WORKLOAD = Workload(
    name="W5",
    title="10,000 recurring messages every 10 s for 2 min: units and CPU of a fire",
    measure=measure,
    full=[Case("", {"schedules": 10_000, "period_s": 10, "lasts_s": 120.0, "pause_s": CHECKPOINT_S})],
    smoke=[Case("", {"schedules": 10, "period_s": 1, "lasts_s": 3.0, "pause_s": 1.0, "arrives_s": 6.0})],
)
