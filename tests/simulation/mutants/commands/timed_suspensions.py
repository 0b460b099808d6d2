"""Bugs in suspensions with an end: what the end promises, and what is made up for after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead, operation_returning, returning
from tidegate_core.commands import apply_request, suspend_resume
from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.timed_resume import ApplyAfterTimedResume
from tidegate_core.firing import fire, misfires
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard import schedule_state

SUSPEND_UNTIL_TESTS = "unit/tidegate_core/commands/test_suspend_until.py"
STOPPED_CLOCKS_TESTS = "unit/tidegate_core/commands/test_stopped_clocks.py"
REQUESTS_BEHIND_UNTIL_TESTS = "unit/tidegate_core/commands/test_requests_behind_until.py"


def by_its_own_clock(suspended: Callable[..., Any]) -> Callable[..., Any]:
    problems = suspend_resume._suspend_problems

    def decided(before: Any, definition: Any, asked: Any, position: Any, now: int) -> Any:
        with patch.object(
            suspend_resume, "_suspend_problems", lambda spec, mode, until, _: problems(spec, mode, until, now)
        ):
            return suspended(before, definition, asked, position, now)

    return decided


def unless_it_was_updated(
    after_pause: Callable[..., ScheduleState], state: ScheduleState, spec: Any, before: ScheduleState, backlog: Any
) -> ScheduleState:
    if before.suspended_at != before.activated_at:
        before = replace(before, stopped_by="")
    return after_pause(state, spec, before, backlog)


RULES_OF_PROMISES = (
    Mutant(
        "parked behind its end",
        "what is missed behind the end of a hold is parked as its own before that is carried out, and merged by the bound of what is parked",
        breaks="I1",
        patches=(Patch(fire, "fires_through", instead(lambda state, now: now)),),
        killed_by=f"{SUSPEND_UNTIL_TESTS}::test_given_a_hold_that_ends_in_an_outage_then_what_is_missed_behind_it_is_made_up_for_as_without_it[None]",
    ),
    Mutant(
        "hold beyond its end",
        "behind the end of a hold that comes while nobody is there clocks stand still until somebody is: what came hours apart is a pair",
        breaks="I1",
        patches=(Patch(schedule_state, "goes_on_at", instead(lambda state, now: max(state.suspended_at, now))),),
        killed_by=f"{STOPPED_CLOCKS_TESTS}::test_given_a_hold_that_ends_while_nobody_is_there_then_clocks_go_on_where_it_was_to_end[too long behind it-before both]",
    ),
    Mutant(
        "earlier stops forgotten",
        "what came amid an earlier one of two suspensions, and is read late, is as old as if it had come behind that",
        breaks="I1",
        patches=(Patch(schedule_state, "last_stops", lambda last_stops: lambda state: last_stops(state)[-1:]),),
        killed_by=f"{STOPPED_CLOCKS_TESTS}::test_given_an_event_of_a_span_that_is_over_then_it_is_no_older_than_what_it_met[-600000-another since (seed 27000317)]",
    ),
    Mutant(
        "suspended still",
        "a suspend that comes before the end of another one is carried out is unchanged, and all of it starts then",
        breaks="I7",
        patches=(Patch(ApplyAfterTimedResume, "_resume_if_due", operation_returning(None)),),
        killed_by=f"{REQUESTS_BEHIND_UNTIL_TESTS}::test_given_a_request_that_ends_what_waits_then_what_was_due_since_the_end_is_told[suspend]",
    ),
    Mutant(
        "deleted before the end",
        "a request that comes before the end of a suspension is carried out takes what was due since with it, untold",
        breaks="I1",
        patches=(Patch(ApplyAfterTimedResume, "_resume_if_due", operation_returning(None)),),
        killed_by=f"{REQUESTS_BEHIND_UNTIL_TESTS}::test_given_a_request_that_ends_what_waits_then_what_was_due_since_the_end_is_told[delete]",
    ),
    Mutant(
        "resumed from now",
        "a resume that comes before the end of a suspension is carried out makes the suspended span longer",
        breaks="I1",
        patches=(Patch(ApplyAfterTimedResume, "_decide", instead(ApplyRequest._decide)),),
        killed_by=f"{REQUESTS_BEHIND_UNTIL_TESTS}::test_given_a_resume_then_it_counts_from_the_end_and_its_backlog_is_what_was_suspended[more0]",
    ),
    Mutant(
        "promised amid a span",
        "a backlog that is asked for while all is suspended lies in that, and nothing of it is made, or told",
        breaks="I1",
        patches=(Patch(fire, "_promised", returning(None)),),
        killed_by="unit/tidegate_core/commands/test_backlog_amid_a_wide_suspend.py::test_given_a_resume_with_a_backlog_amid_a_wide_suspend_then_it_is_made_up_for_behind_that[resume-drop]",
    ),
    Mutant(
        "end once more",
        "an owner whose clock is behind takes an end again that a suspension has come to, and nobody comes to it",
        breaks="liveness",
        patches=(Patch(apply_request, "suspended", by_its_own_clock),),
        killed_by=f"{SUSPEND_UNTIL_TESTS}::test_given_a_successor_whose_clock_is_behind_that_of_an_end_then_that_end_has_passed[-drop]",
    ),
    Mutant(
        "creation forgotten",
        "an update of a schedule that began suspended takes away what its creation is to make up for",
        breaks="I1",
        patches=(Patch(misfires, "after_pause", around(unless_it_was_updated)),),
        killed_by="unit/tidegate_core/firing/test_shard_catch_up.py::test_given_an_update_of_a_schedule_that_began_suspended_then_its_first_resume_makes_up_for_its_creation[restart]",
    ),
)
