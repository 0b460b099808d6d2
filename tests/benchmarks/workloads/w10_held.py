"""W10: jobs that wait for a window that opens in hours: what they cost the store while nothing happens."""

from __future__ import annotations

import time

from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.resource_meter import Spent, spent
from tests.benchmarks.rig.waiting_jobs import delete_schedules, make_held_jobs
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload

HOUR_S = 3_600.0


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Watches the idle node without jobs, makes them, and watches it again."""
    # What looks by turns, each minute, is seen in its stride only behind its first turn: else it would be counted as the jobs'.
    time.sleep(parameters["pause_s"])
    idle = _watched(stack, parameters["idle_s"])
    begun_s = time.monotonic()
    names = make_held_jobs(stack, parameters["jobs"])
    made_s = time.monotonic() - begun_s
    time.sleep(parameters["pause_s"])
    held = _watched(stack, parameters["lasts_s"])
    if parameters["clean"]:
        delete_schedules(stack, names)
    more_calls = held.calls / held.wall_s - idle.calls / idle.wall_s
    more_cpu = held.cpu_s / held.wall_s - idle.cpu_s / idle.wall_s
    return {
        "jobs_made_per_s": len(names) / made_s,
        "store_calls_per_job_hour": more_calls * HOUR_S / len(names),
        "store_calls_per_s": held.calls / held.wall_s,
        "idle_store_calls_per_s": idle.calls / idle.wall_s,
        "cpu_s": held.cpu_s,
        "cpu_share": held.cpu_s / held.wall_s,
        "cpu_s_per_job_hour": more_cpu * HOUR_S / len(names),
        "write_units": held.write_units,
        "write_units_per_job_hour": _an_hour(held.write_units, held, len(names)),
        "read_units": held.read_units,
        "read_units_per_job_hour": _an_hour(held.read_units, held, len(names)),
        "rss_mib": held.rss_mib,
    }


def _watched(stack: Stack, seconds: float) -> Spent:
    meter = stack.nodes_meter()
    begun = meter.read()
    time.sleep(seconds)
    return spent(begun, meter.read())


def _an_hour(units: float | None, over: Spent, jobs: int) -> float | None:
    """Those of the idle node are in it: an upper bound."""
    return None if units is None else units * HOUR_S / over.wall_s / jobs


WORKLOAD = Workload(
    name="W10",
    title="10,000 held jobs for 10 min: calls to the store for each job and hour",
    measure=measure,
    full=[Case("", {"jobs": 10_000, "idle_s": 300.0, "pause_s": 60.0, "lasts_s": 600.0, "clean": False})],
    smoke=[Case("", {"jobs": 5, "idle_s": 1.0, "pause_s": 0.0, "lasts_s": 2.0, "clean": True})],
)
