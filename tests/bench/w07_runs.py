"""W7: the run plane with a launcher that takes no time: an occurrence, its admission, gate, end and finish."""

from __future__ import annotations

from tidegate_testkit.benchmarks.held import PROGRAM, delete_schedules
from tidegate_testkit.benchmarks.load import apply
from tidegate_testkit.benchmarks.meter import Meter, spent
from tidegate_testkit.benchmarks.one_shots import MICROSECONDS, units_each
from tidegate_testkit.benchmarks.stack import Stack
from tidegate_testkit.benchmarks.workload import Case, Figures, Parameters, Workload
from tidegate_testkit.benchmarks.wrappers import Wrappers
from tidegate_testkit.cluster.message_load import instant
from tidegate_testkit.cluster.waiting import now_ms, until

PATIENCE_S = 300.0
RUNS = ("R#", "R#~")


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Has each of many schedules fire once, `apart_ms` after one another, and waits until all runs are history."""
    count, apart_ms = parameters["runs"], parameters["apart_ms"]
    prefix = stack.new_name("run")
    names = [f"{prefix}-{number}" for number in range(count)]
    due_ms = now_ms() + round(parameters["ahead_s"] * 1_000)
    stack.apply([apply(name, _spec(due_ms + number * apart_ms), stack.shards) for number, name in enumerate(names)])
    nodes, everything = Meter(stack.cluster.nodes), Meter(stack.cluster.processes)
    begun, begun_nodes = everything.read(), nodes.read()
    begun_ms = max(now_ms(), due_ms)
    with Wrappers(stack.cluster.launches) as wrappers:
        until(lambda: len(wrappers.ended) + len(wrappers.refused) >= count, "all runs end", PATIENCE_S)
        ended_ms = now_ms()
        until(lambda: stack.settled.rows(RUNS) == 0, "all runs are history", PATIENCE_S)
    used, used_by_nodes = spent(begun, everything.read()), spent(begun_nodes, nodes.read())
    assert not wrappers.refused, wrappers.refused[:3]
    if parameters["clean"]:
        delete_schedules(stack, names)
    late = sorted(wrappers.gate_ms.values())
    return {
        "delivered": len(late),
        "missing": count - len(late),
        "per_s": count * 1_000 / max(1, ended_ms - begun_ms),
        "late_p50_ms": late[len(late) // 2],
        "late_p99_ms": late[min(len(late) - 1, len(late) * 99 // 100)],
        "late_max_ms": late[-1],
        "early": sum(each < 0 for each in late),
        "cpu_s": used_by_nodes.cpu_s,
        "cpu_us_each": used_by_nodes.cpu_s * MICROSECONDS / count,
        "with_api_cpu_us_each": used.cpu_s * MICROSECONDS / count,
        "rss_mib": used_by_nodes.rss_mib,
        **units_each(used.write_units, used.read_units, count),
    }


def _spec(at_ms: int) -> dict[str, object]:
    return {
        "target": {"type": "program", "program": PROGRAM},
        "trigger": {"type": "at", "instant": instant(at_ms)},
    }


WORKLOAD = Workload(
    name="W7",
    title="Runs with a launcher that takes no time: 1,000 at one instant, and 200 one after another; due to gate, units a run",
    measure=measure,
    full=[
        Case("burst", {"runs": 1_000, "apart_ms": 0, "ahead_s": 60.0, "clean": False}),
        Case("idle", {"runs": 200, "apart_ms": 250, "ahead_s": 20.0, "clean": False}),
    ],
    smoke=[Case("", {"runs": 3, "apart_ms": 100, "ahead_s": 1.0, "clean": True})],
)
