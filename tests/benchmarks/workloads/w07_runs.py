"""W7: the run plane with a launcher that takes no time: an occurrence, its admission, gate, end and finish."""

from __future__ import annotations

import time

from tests.benchmarks.rig.bulk_producer import apply
from tests.benchmarks.rig.call_recordings import recorded_runs
from tests.benchmarks.rig.call_replays import replay_s
from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.gate_player import Wrappers
from tests.benchmarks.rig.one_shot_messages import BEFORE_DUE_S, MICROSECONDS, units_each
from tests.benchmarks.rig.resource_meter import Meter, Spent, spent
from tests.benchmarks.rig.store_bounds import transacted_items_per_s
from tests.benchmarks.rig.waiting_jobs import PROGRAM, delete_schedules
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload
from tests.support.cluster.message_load import instant
from tests.support.cluster.until import now_ms, until

PATIENCE_S = 300.0
RUNS = ("R#", "R#~")
UNITS_OF_ITEM = 2
"""Of one of up to 1 KB, in a transaction."""


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Has each of many schedules fire once, `apart_ms` after one another, and waits until all runs are history."""
    count, apart_ms = parameters["runs"], parameters["apart_ms"]
    prefix = stack.new_name("run")
    names = [f"{prefix}-{number}" for number in range(count)]
    nodes, everything = Meter(stack.cluster.nodes), Meter(stack.cluster.processes)
    with Wrappers(stack.cluster.launches) as wrappers:
        due_ms = now_ms() + round(parameters["ahead_s"] * 1_000)
        instants = [due_ms + number * apart_ms for number in range(count)]
        stack.apply([apply(name, _spec(at_ms), stack.shards) for name, at_ms in zip(names, instants, strict=True)])
        time.sleep(max(0.0, (due_ms - now_ms()) / 1_000 - BEFORE_DUE_S))
        begun, begun_nodes = everything.read(), nodes.read()
        begun_ms = max(now_ms(), due_ms)
        until(lambda: len(wrappers.ended) + len(wrappers.refused) >= count, "all runs end", PATIENCE_S)
        ended_ms = now_ms()
        assert not wrappers.refused, wrappers.refused[:3]
        until(lambda: stack.settled.rows(RUNS) == 0, "all runs are history", PATIENCE_S)
    used, used_by_nodes = spent(begun, everything.read()), spent(begun_nodes, nodes.read())
    if parameters["clean"]:
        delete_schedules(stack, names)
    late = sorted(wrappers.gate_ms.values())
    per_s = count * 1_000 / max(1, ended_ms - begun_ms)
    return {
        "delivered": len(late),
        "missing": count - len(late),
        "per_s": per_s,
        "late_p50_ms": late[len(late) // 2],
        "late_p99_ms": late[min(len(late) - 1, len(late) * 99 // 100)],
        "late_max_ms": late[-1],
        "early": sum(each < 0 for each in late),
        "cpu_s": used_by_nodes.cpu_s,
        "cpu_us_each": used_by_nodes.cpu_s * MICROSECONDS / count,
        "with_api_cpu_us_each": used.cpu_s * MICROSECONDS / count,
        "rss_mib": used_by_nodes.rss_mib,
        **units_each(used.write_units, used.read_units, count),
        **_beside_the_store(stack, used, count, per_s, parameters["bound_transactions"]),
    }


def _beside_the_store(stack: Stack, used: Spent, runs: int, per_s: float, transactions: int) -> Figures:
    """Items that go in transactions, beside those that the store alone takes in transactions of their mean size; and runs, beside
    those whose calls store and broker take with nothing else to do.
    """
    items = used.transacted_units / UNITS_OF_ITEM
    mean = items / used.transactions
    bound = transacted_items_per_s(stack.cluster.store, transactions, stack.shards, max(1, round(mean)))
    bound_per_s = runs / replay_s(stack.cluster.store, recorded_runs(runs, stack.shards), stack.replay_logs())
    return {
        "transactions_each": used.transactions / runs,
        "items_per_transaction": mean,
        "store_transacted_items_per_s": bound,
        "share_of_store": items / used.wall_s / bound,
        "bound_runs_per_s": bound_per_s,
        "share_of_bound": per_s / bound_per_s,
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
        Case("burst", {"runs": 1_000, "apart_ms": 0, "ahead_s": 60.0, "bound_transactions": 1_000, "clean": False}),
        Case("idle", {"runs": 200, "apart_ms": 250, "ahead_s": 20.0, "bound_transactions": 1_000, "clean": False}),
    ],
    smoke=[Case("", {"runs": 3, "apart_ms": 100, "ahead_s": 1.0, "bound_transactions": 5, "clean": True})],
)
