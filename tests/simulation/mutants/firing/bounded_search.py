"""Planted bugs in searches for the next instant that end before they have found one (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, instead, operation_returning
from tests.support.builders import HOUR
from tidegate_core.evidence import accumulator
from tidegate_core.firing import fire
from tidegate_core.language.triggers.search import Next
from tidegate_core.messages.recurring.fire_series import FireSeries
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.ownership.repair import repair_sweep
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.timer_rows import move_rows
from tidegate_core.writes.unit_of_work import UnitOfWork

TESTS = "simulation/stories/firing/test_bounded_search.py"
WITHOUT_SWEEP = Patch(repair_sweep, "TIMERS_CHECK_MS", instead(365 * 24 * HOUR))
"""The sweep would find that a timer row is missing, and write it."""


def arming_no_row(row_of: Callable[[ScheduleState | None], TimerRow | None]) -> Any:
    return lambda state: None if state.next_nominal_is_bound else row_of(state)


def passing_over_what_follows(following: Next, next_after: Callable[[int], Next]) -> Next:
    """The next search begins an hour after the point at which the last one ended."""
    return next_after(following.at + HOUR) if following.is_bound and following.at is not None else following


def moving_no_row_of_a_bound(unit: UnitOfWork, before: ScheduleState | None, after: ScheduleState) -> None:
    if not after.next_tick_is_bound:
        move_rows(unit, before, after)


def sending_it(next_of: Callable[[FireSeries, int], Next]) -> Any:
    return lambda series, nominal: next_of(series, nominal)._replace(is_bound=False)


SEARCHES = (
    Mutant(
        "cut search fires",
        "how far was searched is taken for an instant: an occurrence is made of what the trigger leaves out",
        breaks="I1",
        patches=(Patch(fire, "gone_on", instead(lambda following, next_after: following._replace(is_bound=False))),),
        killed_by=f"{TESTS}::test_given_instants_left_out_that_no_decision_passes_at_once_then_a_program_runs_at_each_other_one",
    ),
    Mutant(
        "cut search forgotten",
        "a search ends without an instant, and has no timer row: nobody goes on with it",
        breaks="I1",
        patches=(Patch(fire, "nominal_row", arming_no_row),),
        killed_by=f"{TESTS}::test_given_instants_left_out_that_no_decision_passes_at_once_then_a_program_runs_at_each_other_one",
        beside=(WITHOUT_SWEEP,),
    ),
    Mutant(
        "cut search goes on too far",
        "a search goes on behind where it was cut, and passes over what lies between",
        breaks="I1",
        patches=(Patch(fire, "gone_on", instead(passing_over_what_follows)),),
        killed_by=f"{TESTS}::test_given_instants_left_out_that_no_decision_passes_at_once_then_a_program_runs_at_each_other_one",
    ),
    Mutant(
        "cut search of ticks forgotten",
        "the ticks of a composite are searched up to a bound that has no timer row: it ticks no more",
        breaks="I1",
        patches=(Patch(accumulator, "move_rows", instead(moving_no_row_of_a_bound)),),
        killed_by=f"{TESTS}::test_given_ticks_left_out_that_no_decision_passes_at_once_then_data_meets_the_tick_behind_them",
        beside=(WITHOUT_SWEEP,),
    ),
    Mutant(
        "cut search sends",
        "how far a recurring message was searched is taken for a fire of it",
        breaks="I1",
        patches=(Patch(FireSeries, "_next", sending_it),),
        killed_by=f"{TESTS}::test_given_instants_left_out_that_no_search_passes_at_once_then_a_message_is_sent_at_each_other_one",
    ),
    Mutant(
        "cut search of messages forgotten",
        "nobody goes on with the search for a recurring message that ended near",
        breaks="I1",
        patches=(Patch(RecurringQueue, "_search_on", operation_returning(None)),),
        killed_by=f"{TESTS}::test_given_instants_left_out_that_no_search_passes_at_once_then_a_message_is_sent_at_each_other_one",
    ),
)
