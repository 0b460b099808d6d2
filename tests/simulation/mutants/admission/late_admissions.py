"""Bugs in admissions that the store carries out after their owner took them for refused (docs/internals/protocol.md)."""

from __future__ import annotations

from tests.simulation.mutants.mutant import Mutant, Patch, operation_returning
from tests.simulation.mutants.sketch.replacements import NOTHING_LATE
from tidegate_core.engine.shard_writer import ShardWriter

LATE_ADMISSIONS = (
    Mutant(
        "no void",
        "a transaction whose first send is on its way counts as refused, and takes effect when nobody expects it",
        breaks="I1",
        patches=(Patch(ShardWriter, "_void", operation_returning(False)),),
        beside=(NOTHING_LATE,),
        killed_by="unit/tidegate_core/admission/test_admission_not_through.py::test_given_an_admission_that_gets_no_answer_then_there_is_one_run_and_one_permit[applied]",
    ),
    Mutant(
        "refused for good",
        "a run whose admission was refused, and carried out by a second copy when there was a slot, is nobody's: a suspend does not end it",
        breaks="I7",
        patches=(NOTHING_LATE,),
        killed_by="unit/tidegate_core/engine/test_shard_writer_answers.py::test_given_a_copy_of_what_was_refused_that_comes_when_its_condition_holds_then_what_it_wrote_is_observed[is read]",
    ),
)
