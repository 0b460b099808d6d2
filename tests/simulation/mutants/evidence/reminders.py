"""Bugs in `at_least_every`: when a reminder comes, what it waits for, and what it makes of nothing (docs/schedules.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tidegate_core.evidence import at_least_every
from tidegate_core.evidence.accumulator import EvidenceAccumulator
from tidegate_core.evidence.at_least_every import AtLeastEvery
from tidegate_core.firing import fire
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.timer_rows import AT_LEAST
from tidegate_core.writes.unit_of_work import UnitOfWork

Remind = Callable[[UnitOfWork, ScheduleState, EventTrigger, int], None]


def reminding_once(remind: Remind, unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, now: int) -> None:
    remind(unit, state, trigger, now)
    unit.put(replace(state, next_nominal=None), state.key(unit.shard))


def deciding_at_once(remind: Remind, unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, now: int) -> None:
    reminder = state.next_nominal
    remind(unit, state, trigger, now)
    ref = f"{keys.schedule_ref(state.namespace, state.name)}{AT_LEAST}"
    row = TimerRow(at=reminder or now, kind="E", ref=ref, detail=str(state.generation))
    AtLeastEvery(row).decide(unit, now)


def making_a_job_of_nothing(unit: UnitOfWork, job: Job, *told: object) -> None:
    unit.put_new(job, job.key(unit.shard))


def adding_it_unnoticed(gathering: EvidenceAccumulator, job: Job) -> None:
    gathering._unit.put_new(job, job.key(gathering._unit.shard))


REMINDERS = (
    Mutant(
        "reminded once",
        "a reminder that finds nothing is the last one",
        breaks="I1",
        patches=(Patch(fire, "remind", around(reminding_once)),),
        killed_by=Seeds(within=20, directed=(9,)),
    ),
    Mutant(
        "reminded amid jobs",
        "reminders ignore when the last job was made",
        breaks="I1",
        patches=(Patch(EvidenceAccumulator, "add_job", instead(adding_it_unnoticed)),),
        killed_by=Seeds(within=30),
    ),
    Mutant(
        "reminded beside a job",
        "evidence that was counted while a reminder waited has made a job, and the reminder makes another",
        breaks="I1",
        patches=(Patch(at_least_every, "is_dealt_with", returning(False)),),
        killed_by=Seeds(within=60, directed=(20,)),
    ),
    Mutant(
        "reminded unread",
        "a reminder does not wait for earlier events that are not counted yet",
        breaks="I3",
        patches=(Patch(fire, "remind", around(deciding_at_once)),),
        killed_by=Seeds(within=30, directed=(6,)),
    ),
    Mutant(
        "job of nothing",
        "a reminder that finds nothing makes a job, even if the schedule wants no empty one",
        breaks="I1",
        patches=(Patch(at_least_every, "write_ledger", instead(making_a_job_of_nothing)),),
        killed_by=Seeds(within=4),
    ),
)
