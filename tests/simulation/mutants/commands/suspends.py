"""Bugs in what a suspend, its resume, and an update make of what is pending (SEMANTICS 10, 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tidegate_core.admission import admit
from tidegate_core.commands import pending_pages, run_commands, schedule_commands, suspend_resume
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.evidence import accumulator
from tidegate_core.evidence import match as count
from tidegate_core.firing import misfires
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.messages.recurring.fire_series import FireSeries
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.writes.unit_of_work import UnitOfWork

RELEASE_NOT_THROUGH_TESTS = "unit/tidegate_core/commands/test_release_not_through.py"

Restarted = Callable[..., ScheduleState]


def keeping_the_old(restarted: Restarted) -> Restarted:
    return lambda *arguments: replace(restarted(*arguments), kept_from=0)


def admitting_what_is_held(admits: Callable[[ScheduleState], bool]) -> Callable[[ScheduleState], bool]:
    return lambda state: admits(state) or (state.status == "suspended" and state.mode == "hold")


def saying_no_more(answer: Callable[..., None], unit: UnitOfWork, outcome: Outcome, receipt: Receipt, now: int) -> None:
    answer(unit, outcome, receipt.model_copy(update={"errors": ()}), now)


def forgetting_whose_it_is(after_apply: Restarted) -> Restarted:
    return lambda *arguments: replace(after_apply(*arguments), missed_by_update=None)


def forgetting_the_cut(
    with_cut: Restarted, state: ScheduleState, before: ScheduleState, *arguments: Any
) -> ScheduleState:
    return with_cut(replace(state, shedding=None), replace(before, shedding=None), *arguments)


def waiting_for_the_cut(restarted: Restarted) -> Restarted:
    return lambda state, *arguments: replace(restarted(state, *arguments), shedding=state.shedding)


SUSPENDS = (
    Mutant(
        "no reasons",
        "a manual run is refused, while its schedule is suspended or has a full queue, and nobody says why",
        breaks="answers",
        patches=(Patch(run_commands, "answer", around(saying_no_more)),),
        killed_by=Seeds(within=3),
    ),
    Mutant(
        "left unparked",
        "hold and freeze leave runs before the gate alone",
        breaks="I7",
        patches=(Patch(pending_pages, "clocks_stopped", returning(False)),),
        killed_by=Seeds(within=90, directed=(5,)),
    ),
    Mutant(
        "held jobs",
        "what is parked is admitted when its constraints hold",
        breaks="I7",
        patches=(Patch(admit, "admits", admitting_what_is_held),),
        killed_by=Seeds(within=40, directed=(12,)),
    ),
    Mutant(
        "old kept",
        "an update that restarts leaves jobs of older versions to be launched",
        breaks="I7",
        patches=(Patch(schedule_commands, "_restarted", keeping_the_old),),
        killed_by=Seeds(within=18, directed=(0,)),
    ),
    Mutant(
        "deaf hold",
        "events are not counted while a schedule is held, nor after that",
        breaks="I3",
        patches=(Patch(count, "fires", lambda fires: lambda state: fires(state) and state.mode != "hold"),),
        killed_by=Seeds(within=25, directed=(6,)),
    ),
    Mutant(
        "span made up for",
        "an update makes up for instants at which all was suspended",
        breaks="I7",
        patches=(Patch(misfires, "after_apply", forgetting_whose_it_is),),
        killed_by="unit/tidegate_core/commands/test_updates_after_wide_suspends.py::test_given_an_update_between_a_resume_and_the_first_fire_behind_it_then_nothing_of_the_span_is_made[all]",
    ),
    Mutant(
        "backlog by the last change",
        "an update that comes before a release of the backlog is through has it cut what was made since the resume",
        breaks="I1",
        patches=(Patch(pending_pages, "backlog_through", instead(lambda state: state.changed_at)),),
        killed_by=f"{RELEASE_NOT_THROUGH_TESTS}::test_given_an_update_before_the_release_is_through_then_what_was_made_since_the_resume_is_no_backlog[False-carry]",
    ),
    Mutant(
        "taken up by what is cut",
        "a job that a resume has cut, and not ended yet, takes up an event that comes, and it ends with it",
        breaks="I3",
        patches=(Patch(accumulator, "is_cut", returning(False)),),
        killed_by=f"{RELEASE_NOT_THROUGH_TESTS}::test_given_an_event_before_the_release_is_through_then_what_is_cut_does_not_take_it_up[False]",
    ),
    Mutant(
        "cut forgotten",
        "a resume of all takes back what an earlier one has cut, and not ended yet",
        breaks="I7",
        patches=(Patch(suspend_resume, "_with_cut", around(forgetting_the_cut)),),
        killed_by=f"{RELEASE_NOT_THROUGH_TESTS}::test_given_another_suspend_and_a_resume_of_all_before_the_release_is_through_then_what_was_cut_ends_all_the_same[False-hold]",
    ),
    Mutant(
        "cut of the former",
        "what an update makes that restarts waits for the cut of a backlog that has ended with the former version",
        breaks="liveness",
        patches=(Patch(schedule_commands, "_restarted", waiting_for_the_cut),),
        killed_by=f"{RELEASE_NOT_THROUGH_TESTS}::test_given_a_restart_before_the_release_is_through_then_the_new_version_waits_for_nothing_of_it",
    ),
    Mutant(
        "in the kept one's place",
        "what a new version counts takes the place of the evidence of a job that goes on under the former one, before that is sealed",
        breaks="I1",
        patches=(Patch(accumulator.EvidenceAccumulator, "_sealed", returning(False)),),
        killed_by="unit/tidegate_core/commands/test_update_modes.py::test_given_an_event_before_the_pages_of_an_update_are_through_then_the_old_job_keeps_what_it_has[finish_old-1m]",
    ),
    Mutant(
        "dropped and counted",
        "evidence that a suspend has dropped, and not ended yet, counts on behind the resume, and a run starts with it",
        breaks="I7",
        patches=(
            Patch(
                accumulator,
                "is_of_ended_generation",
                instead(lambda state, evidence: evidence.version != state.version),
            ),
        ),
        killed_by="unit/tidegate_core/commands/test_end_not_through.py::test_given_evidence_of_before_then_what_comes_behind_the_end_counts_by_itself[False-drop]",
    ),
    Mutant(
        "late ones at one place",
        "messages that are late behind the end of a suspension have one place, and the first of them alone is sent",
        breaks="I1",
        patches=(Patch(FireSeries, "_late", instead(property(lambda series: ()))),),
        killed_by="simulation/stories/commands/test_suspends.py::test_given_the_end_of_a_suspension_when_its_messages_are_late_then_each_of_them_is_sent",
    ),
)
