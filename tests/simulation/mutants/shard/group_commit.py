"""Bugs in decisions that share a transaction: a decision remembers an item that another one may just have written (docs/internals/protocol.md)."""

from __future__ import annotations

from tests.simulation.mutants.mutant import Mutant, Patch, returning
from tidegate_core.writes.unit_of_work import UnitOfWork

ADMIT_TESTS = "unit/tidegate_core/admission/test_admit.py"

RULES_OF_ONE_TRANSACTION = (
    Mutant(
        "judged as remembered",
        "overlap writes a job as remembered, although another decision of the transaction has sealed it",
        breaks="I1",
        patches=(Patch(UnitOfWork, "require_untouched", returning(None)),),
        killed_by=f"{ADMIT_TESTS}::test_given_a_job_that_is_sealed_in_the_same_transaction_then_overlap_judges_it_in_the_next_one",
    ),
    Mutant(
        "skipped beside what is over",
        "a job aborts because of a run that another decision of the transaction has ended",
        breaks="I1",
        patches=(Patch(UnitOfWork, "require_untouched", returning(None)),),
        killed_by=f"{ADMIT_TESTS}::test_given_a_run_that_ends_in_the_same_transaction_then_no_job_ends_because_of_it[a shared limit]",
    ),
)
