"""Rules of decisions that share a transaction: what one of them remembers another one may just have written (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import NOW, a_definition, a_job, a_run, a_schedule, a_spec, at_most, on_data, some_evidence
from tests.support.harness.decision_harness import Desk
from tidegate_core.decisions.run_plane.admit import AdmitNext
from tidegate_core.decisions.run_plane.jobs import seal
from tidegate_core.decisions.run_plane.runs import LookAtRun
from tidegate_core.decisions.work import Decision
from tidegate_core.records.run_plane import Evidence, Job, OwnLimit
from tidegate_core.store import keys
from tidegate_core.store.values import Key, Transaction
from tidegate_core.transactions.limits import Permit, key_text, take_permit
from tidegate_core.transactions.unit_of_work import TooLarge, UnitOfWork

REF = "flights/nightly"


def together(desk: Desk, decisions: Sequence[Decision]) -> None:
    """In one transaction if they let themselves, as the lane does it."""
    try:
        desk.decide(_Together(tuple(decisions)))
    except TooLarge:
        for decision in decisions:
            desk.decide(decision)


@dataclass(frozen=True)
class _Together:
    decisions: tuple[Decision, ...]
    stale: tuple[Key, ...] = ()
    name: str = "look"
    about: str = REF

    def decide(self, unit: UnitOfWork, now: int) -> None:
        for decision in self.decisions:
            decision.decide(unit, now)
            unit.keep()


@dataclass(frozen=True)
class _Sealing:
    """What comes for a job of data that takes no more."""

    evidence: Evidence
    stale: tuple[Key, ...] = ()
    name: str = "count"
    about: str = REF

    def decide(self, unit: UnitOfWork, now: int) -> None:
        if unit.item(self.evidence.key(0)) is not None:
            seal(unit, self.evidence)


def a_look(desk: Desk) -> AdmitNext:
    return AdmitNext(REF, desk.memory, lambda goes_on: None)


def a_job_is_sealed_before_overlap_judges_it() -> Iterable[str]:
    """Of a former version, which an update lets finish; it takes the place of another one."""
    spec = a_spec(trigger=on_data(), overlap="keep_latest")
    evidence = some_evidence(job=True)
    of_data = a_job(2, id=evidence.id, trigger="data_partitions", evidence_id=evidence.id, nominal=NOW + 5)
    desk = Desk(a_definition(spec), a_definition(spec, 2), a_schedule(version=2, generation=2, kept_from=1))
    desk.lay(OwnLimit(namespace="flights", name="nightly", holders=("other",)), evidence)
    desk.lay(a_job(1, trigger="manual"), of_data)
    together(desk, (_Sealing(evidence), a_look(desk)))
    if not any(job.id == evidence.id and job.chunks == 1 for job in desk.records(Job, "J#")):
        yield "I1: a job has lost the data that it was sealed with, and is never launched"


def a_run_ends_before_a_job_aborts_because_of_it() -> Iterable[str]:
    """It holds the last permit of a group."""
    group = keys.shared_limit("flights", "group", "g")
    spec = a_spec(overlap="allow", constraints=[at_most(1, "group", group="g", on_unmet="abort")])
    run = a_run(state="running", external_id="e", ended_at=NOW + 5, outcome="succeeded", limits=(key_text(group),))
    desk = Desk(a_definition(spec), a_schedule(), a_job(1, state="pending_launch"), a_job(2))
    desk.lay(run)
    desk.store.transact(Transaction("before", take_permit(Permit(group, run.id), 1), "p", None))
    together(desk, (LookAtRun(0, run.id, lambda run: None), a_look(desk)))
    if a_job(2).id in [job_id for job_id, *_ in desk.ledger()]:
        yield "I1: an occurrence was skipped because of a run that was over"


RULES_OF_ONE_TRANSACTION = (
    Mutant(
        "judged as remembered",
        "overlap writes a job as it was before another decision of its transaction had sealed it",
        breaks="I1",
        patches=(Patch(UnitOfWork, "require_untouched", lambda _: lambda unit, wanted: None),),
        scenario=a_job_is_sealed_before_overlap_judges_it,
    ),
    Mutant(
        "skipped beside what is over",
        "a job aborts because of a run that another decision of its transaction has ended",
        breaks="I1",
        patches=(Patch(UnitOfWork, "require_untouched", lambda _: lambda unit, wanted: None),),
        scenario=a_run_ends_before_a_job_aborts_because_of_it,
    ),
)
