"""Bugs in the decisions of the run plane and in the node's guard."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tests.simulation.runner.swarm import HALF_SESSION_MS
from tests.simulation.world import program
from tidegate_core.admission import permits
from tidegate_core.admission.admit import AdmitNext
from tidegate_core.commands import schedule_commands
from tidegate_core.commands.end_pending import EndPending
from tidegate_core.engine.membership_lease import MembershipLease
from tidegate_core.firing import fire
from tidegate_core.language.constraints.constraint import LimitRef
from tidegate_core.language.triggers.on_time.every import EveryTrigger
from tidegate_core.language.triggers.search import Next
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.shard import jobs
from tidegate_core.shard.jobs import end_job
from tidegate_core.writes.unit_of_work import UnitOfWork


def skipping_jobs(decision: AdmitNext, unit: UnitOfWork, *rest: Any) -> None:
    job, now = rest[-2:]
    end_job(unit, job, "skipped", "because", now)


def dropping_jobs_of_events(admit_job: Callable[..., None], decision: AdmitNext, unit: UnitOfWork, *rest: Any) -> None:
    job = rest[-2]
    assert isinstance(job, Job)
    if job.trigger != "events":
        admit_job(decision, unit, *rest)
        return
    unit.delete(job.key(unit.shard))
    evidence = keys.evidence(unit.shard, job.namespace, job.name, job.evidence_correlation)
    if unit.record(Evidence, evidence) is not None:
        unit.delete(evidence)


def expired(time_job: Callable[..., Job]) -> Any:
    return lambda *arguments: replace(time_job(*arguments), deadline=0)


def beginning_late(first_nominal: Callable[..., Next], spec: Any, ref: str, *rest: Any, **named: Any) -> Next:
    nominal = first_nominal(spec, ref, *rest, **named)
    for _ in range(3):
        following = None if nominal.at is None else spec.trigger.next_after(nominal.at, ref)
        nominal = nominal if following is None else Next(following)
    return nominal


def allowing_one_more(limits_of: Callable[..., tuple[LimitRef, ...]]) -> Any:
    return lambda spec, job: tuple(replace(limit, max=limit.max + 1) for limit in limits_of(spec, job))


def silent_about_the_host(start_run: Callable[..., Transaction], *arguments: Any, host: str | None) -> Transaction:
    return start_run(*arguments)


def leaving_some_out(next_after: Callable[..., int | None]) -> Any:
    calls = itertools.count(1)

    def next_but_one(trigger: EveryTrigger, after: int, *rest: Any) -> int | None:
        following = next_after(trigger, after, *rest)
        return following if following is None or next(calls) % 7 else next_after(trigger, following, *rest)

    return next_but_one


def leaving_no_trace(unit: UnitOfWork, row: LedgerRow) -> None:
    unit.put_new(row, row.key(unit.shard))


RUNS = (
    Mutant(
        "no program",
        "every job is skipped without a real reason",
        breaks="I1",
        patches=(Patch(AdmitNext, "_admit", instead(skipping_jobs)),),
        killed_by=Seeds(within=1),
    ),
    Mutant(
        "deadline",
        "every job of a time trigger has expired when it is made",
        breaks="I1",
        patches=(Patch(fire, "time_job", expired),),
        killed_by=Seeds(within=1),
    ),
    Mutant(
        "vanishing",
        "a job made by events vanishes without a ledger entry and without a run",
        breaks="I1",
        patches=(Patch(AdmitNext, "_admit", around(dropping_jobs_of_events)),),
        killed_by=Seeds(within=6),
    ),
    Mutant(
        "activation",
        "the first three instants after an activation are left out, and the receipt says so",
        breaks="I1",
        patches=(Patch(schedule_commands, "first_nominal", around(beginning_late)),),
        killed_by=Seeds(within=1),
    ),
    Mutant(
        "skipped instant",
        "every seventh search for the next instant leaves one instant out",
        breaks="I1",
        patches=(Patch(EveryTrigger, "next_after", leaving_some_out),),
        killed_by=Seeds(within=2),
    ),
    Mutant(
        "one more",
        "a limit lets one run more pass than it says",
        breaks="I4",
        patches=(Patch(permits, "limits_of", allowing_one_more),),
        killed_by=Seeds(within=6, directed=(0,)),
    ),
    Mutant(
        "copies alike",
        "the start does not record the driver's host: a copy on another host dies, and the run ends while its program runs",
        breaks="I4",
        patches=(Patch(program, "start_run", around(silent_about_the_host)),),
        killed_by=Seeds(within=3, directed=(13,), trap="copies"),
    ),
    Mutant(
        "before the gate",
        "suspend, delete and update leave runs before the gate alone",
        breaks="I7",
        patches=(Patch(EndPending, "_runs", returning([])),),
        killed_by=Seeds(within=4),
    ),
    Mutant(
        "no place",
        "the ledger entry of a job is not found by its id",
        breaks="I1",
        patches=(Patch(jobs, "write_entry", instead(leaving_no_trace)),),
        killed_by=Seeds(within=2),
    ),
    Mutant(
        "local guard",
        "a node that goes on after its session has ended produces and submits",
        breaks="I5",
        patches=(Patch(MembershipLease, "remaining_ms", instead(lambda guard, now: HALF_SESSION_MS)),),
        killed_by=Seeds(within=20),
    ),
    Mutant(
        "commit trusted",
        "with KIP-848 a commit right after a freeze counts as proof of membership, although it proves none",
        breaks="I5",
        patches=(Patch(MembershipLease, "awake", returning(None)),),
        killed_by=Seeds(within=8, trap="frozen_heartbeats"),
    ),
)
