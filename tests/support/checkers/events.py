"""Judges a counting trigger: every event that the broker has counts exactly once, however often it was sent (I3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from tests.support.checkers.faults import Fault
from tests.support.cluster.evidence import ProgramRun


def judge_counts(
    schedule: str,
    needed: int,
    events: Collection[str],
    runs: Sequence[ProgramRun],
    unacknowledged: Collection[str] = (),
) -> list[Fault]:
    """Judges a `data_partitions` trigger over events that were topped up until none had to be left.

    Args:
        schedule: With that trigger; `take: all`, so a run may have more than it needed.
        needed: The trigger's count.
        events: Ids that the broker acknowledged, each once.
        runs: Of all schedules.
        unacknowledged: Ids that were sent, and nobody knows whether the broker has them: each counts once or never.
    """
    mine = [run for run in runs if run.schedule == schedule]
    counted: dict[str, list[str]] = defaultdict(list)
    faults = []
    for run in mine:
        if len(run.manifest) < needed:
            faults.append(Fault("miscounted", f"{schedule} {run.run_id}: fired at {len(run.manifest)} of {needed}"))
        if run.ended_ns is None:
            faults.append(Fault("incomplete", f"{schedule} {run.run_id} wrote no end"))
        for entry in run.manifest:
            counted[entry.event_id or f"without id: {entry.data_partition}"].append(run.run_id)
    wanted = set(events)
    faults += [Fault("lost", f"{schedule}: event {event} was never counted") for event in wanted - counted.keys()]
    sent = wanted | set(unacknowledged)
    faults += [Fault("extra", f"{schedule}: event {event} was never sent") for event in counted.keys() - sent]
    for event, counters in counted.items():
        if len(counters) > 1:
            faults.append(Fault("miscounted", f"{schedule}: event {event} counted in {', '.join(counters)}"))
    by_run: dict[str, list[ProgramRun]] = defaultdict(list)
    for run in mine:
        by_run[run.run_id].append(run)
    for run_id, processes in by_run.items():
        if len(processes) > 1:
            faults.append(Fault("doubled", f"{schedule} {run_id}: pids {[run.pid for run in processes]}"))
    return faults
