"""Judges programs: each expected occurrence started exactly once, to its end, not early, with the right inputs, within limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

from tests.support.checkers.faults import Fault
from tests.support.cluster.evidence import ProgramRun

DATA_PARTITION_VERSION = "1"
"""Version that a program's report has when it names none; part of the event's id (SEMANTICS 16)."""


def judge_instants(schedule: str, expected: Collection[int], runs: Sequence[ProgramRun]) -> list[Fault]:
    """Judges a schedule with a time trigger: one start for each expected nominal instant, none other, none early."""
    mine = [run for run in runs if run.schedule == schedule]
    faults = _once_each(schedule, expected, mine, lambda run: run.nominal)
    faults += [
        Fault("early", f"{schedule} at {run.nominal}: started {run.nominal - run.started_at} ms before")
        for run in mine
        if run.nominal is not None and run.started_at < run.nominal
    ]
    return faults + _incomplete(mine)


def judge_joins(schedule: str, sources: Mapping[str, str], runs: Sequence[ProgramRun]) -> list[Fault]:
    """Judges an `all_of` correlated by data partition.

    Each data partition that all upstream programs announced has exactly one run, whose manifest names exactly those
    announcements.

    Args:
        schedule: The joining one.
        sources: Upstream schedule by dataset.
        runs: Of all schedules.
    """
    announced = {
        dataset: {str(run.nominal // 1_000): run for run in runs if run.schedule == source and run.nominal is not None}
        for dataset, source in sources.items()
    }
    expected = set.intersection(*(set(partitions) for partitions in announced.values()))
    mine = [run for run in runs if run.schedule == schedule]
    faults = _once_each(schedule, expected, mine, lambda run: run.correlation)
    for run in mine:
        wanted = sorted(
            (dataset, run.correlation, _event_id(partitions[run.correlation], dataset, run.correlation))
            for dataset, partitions in announced.items()
            if run.correlation in partitions
        )
        found = sorted((entry.dataset, entry.data_partition, entry.event_id or "") for entry in run.manifest)
        if found != wanted:
            faults.append(Fault("wrong_input", f"{schedule} {run.correlation}: manifest {found}, expected {wanted}"))
    return faults + _incomplete(mine)


def judge_follow_ups(schedule: str, upstream: str, runs: Sequence[ProgramRun]) -> list[Fault]:
    """Judges a `run_status` trigger: one run for each upstream run that ended, and it was told which."""
    ended = {run.run_id for run in runs if run.schedule == upstream and run.ended_ns is not None}
    mine = [run for run in runs if run.schedule == schedule]
    return _once_each(schedule, ended, mine, lambda run: run.upstream) + _incomplete(mine)


def judge_limit(name: str, most: int, runs: Iterable[ProgramRun]) -> list[Fault]:
    """Judges a concurrency limit: at no instant do more than `most` of the runs overlap (I4)."""
    moments: list[tuple[int, int, ProgramRun]] = []
    for run in runs:
        moments.append((run.started_ns, 1, run))
        if run.ended_ns is not None:
            moments.append((run.ended_ns, -1, run))
    faults, running = [], 0
    for _, change, run in sorted(moments, key=lambda moment: (moment[0], moment[1])):
        running += change
        if change > 0 and running > most:
            faults.append(Fault("overlap", f"{name}: {run.run_id} started as number {running} of {most}"))
    return faults


def judge_blackout(what: str, begins: int, ends: int, runs: Iterable[ProgramRun]) -> list[Fault]:
    """Judges an outage: no program starts in [begins, ends), ms since the epoch."""
    return [
        Fault("unguarded", f"{what}: {run.schedule} {run.nominal} started {run.started_at - begins} ms into it")
        for run in runs
        if begins <= run.started_at < ends
    ]


def _once_each(
    schedule: str,
    expected: Iterable[Hashable],
    runs: Sequence[ProgramRun],
    occurrence_of: Callable[[ProgramRun], Hashable],
) -> list[Fault]:
    started: dict[Hashable, list[ProgramRun]] = defaultdict(list)
    for run in runs:
        started[occurrence_of(run)].append(run)
    wanted = set(expected)
    faults = [Fault("lost", f"{schedule} {occurrence}") for occurrence in wanted - started.keys()]
    faults += [Fault("extra", f"{schedule} {occurrence}") for occurrence in started.keys() - wanted]
    for occurrence, processes in started.items():
        if len(processes) > 1:
            names = ", ".join(f"{run.run_id} a{run.attempt} pid {run.pid}" for run in processes)
            faults.append(Fault("doubled", f"{schedule} {occurrence}: {names}"))
    return faults


def _incomplete(runs: Iterable[ProgramRun]) -> list[Fault]:
    return [
        Fault("incomplete", f"{run.schedule} {run.nominal}: {run.run_id} a{run.attempt} wrote no end")
        for run in runs
        if run.ended_ns is None
    ]


def _event_id(run: ProgramRun, dataset: str, data_partition: str | None) -> str:
    return f"{run.run_id}/{dataset}/{data_partition}/{DATA_PARTITION_VERSION}"
