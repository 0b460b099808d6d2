"""Bugs in what follows a program that failed (SEMANTICS 8), or an attempt whose launcher cannot be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tests.simulation.users.schedule_definitions import FAILURES
from tidegate_core.commands import run_commands
from tidegate_core.rows.effects import ProgramEnded
from tidegate_core.rows.run import Run
from tidegate_core.runs import attempts, run_completion, run_lifecycle
from tidegate_core.runs import retries as retrying
from tidegate_core.runs.run_completion import end_before_gate
from tidegate_core.runs.run_lifecycle import CheckRun
from tidegate_core.shard import retry_budget
from tidegate_core.shard.retry_budget import BUDGET_WINDOW_MS
from tidegate_core.writes.unit_of_work import UnitOfWork


def one_try_more(is_used_up: Callable[..., bool]) -> Any:
    return lambda retry, run, error: run.retries > retry.tries


def failing_with_its_host(
    submit_again: Callable[..., None],
    unit: UnitOfWork,
    run: Run,
    message: str,
    error_class: str,
    now: int,
    gone: ProgramEnded | None = None,
) -> None:
    if message == "host_lost":
        end_before_gate(unit, run, "failed", message, "lost", now)
    else:
        submit_again(unit, run, message, error_class, now, gone)


def since_the_first_attempt(
    read: Callable[[CheckRun, UnitOfWork], Run | None], decision: CheckRun, unit: UnitOfWork
) -> Run | None:
    run = read(decision, unit)
    return None if run is None else replace(run, passed_at=None)


def behind_the_latest(retries: Sequence[int], most: int, at: int) -> int | None:
    return retries[-most] if len(retries) >= most and retries[-most] + BUDGET_WINDOW_MS > at else None


GIVEN_UP_TESTS = "unit/tidegate_core/ownership/test_shard_given_up.py"
RUNS_TESTS = "unit/tidegate_core/runs/test_run_lifecycle.py"
SHARD_RETRIES_TESTS = "unit/tidegate_core/runs/test_shard_retries.py"
SHARD_BUDGET_TESTS = "unit/tidegate_core/runs/test_shard_retry_budget.py"
BUDGET_TESTS = "unit/tidegate_core/shard/test_retry_budget.py"

RETRIES = (
    Mutant(
        "success again",
        "a program that has succeeded is tried again as if it had failed",
        breaks="I2",
        patches=(Patch(retrying, "FAILED", instead(frozenset({"failed", "succeeded"}))),),
        killed_by=Seeds(within=12),
    ),
    Mutant(
        "one try more",
        "a run gets one attempt more than its schedule allows",
        breaks="I2",
        patches=(Patch(retrying, "_is_used_up", one_try_more),),
        killed_by=Seeds(within=47, directed=(8,)),
    ),
    Mutant(
        "given up in silence",
        "a run fails for the last time, and no dead letter says that no further attempt comes",
        breaks="dead letters",
        patches=(Patch(run_completion, "outbox_row", lambda outbox_row: lambda run, given_up=None: outbox_row(run)),),
        killed_by=f"{GIVEN_UP_TESTS}::test_given_a_program_that_fails_for_the_last_time_while_its_schedule_is_suspended_then_it_has_its_dead_letter",
    ),
    Mutant(
        "retry after the stop",
        "a program that fails after its schedule was stopped is tried again",
        breaks="I7",
        patches=(Patch(retrying, "_may_launch", returning(True)),),
        killed_by=Seeds(within=75, directed=(9,)),
    ),
    Mutant(
        "retry after too late",
        "a cancel answers that the run is over, but the next look at the run makes a further attempt",
        breaks="I7",
        patches=(Patch(run_commands, "conclude", returning(None)),),
        killed_by=Seeds(within=20, directed=(5,), trap=FAILURES),
    ),
    Mutant(
        "failed with its host",
        "a run fails when its host goes down before the gate, although its program never began",
        breaks="I1",
        patches=(Patch(run_lifecycle, "submit_again", around(failing_with_its_host)),),
        killed_by=f"{RUNS_TESTS}::test_given_a_state_and_an_observation_then_the_outcome[submitted, lost]",
    ),
    Mutant(
        "lost since its first attempt",
        "a further attempt that took long to reach the gate is marked lost as soon as it passes, and listeners are told",
        breaks="I3",
        patches=(Patch(CheckRun, "read", around(since_the_first_attempt)),),
        killed_by=f"{SHARD_RETRIES_TESTS}::test_given_a_try_that_was_long_on_its_way_to_the_gate_then_it_is_not_lost_as_soon_as_it_has_passed",
    ),
    Mutant(
        "retries behind an outage",
        "all further attempts that were due during an outage begin at once after it",
        breaks="I4",
        patches=(Patch(attempts, "is_overdue", returning(False)),),
        killed_by=f"{SHARD_BUDGET_TESTS}::test_given_retries_that_were_to_begin_while_nobody_was_here_then_they_do_not_begin_all_at_once",
    ),
    Mutant(
        "retry of the day before",
        "after an outage an attempt begins as soon as the budget has room, even 24 h after its run's admission",
        breaks="dead letters",
        patches=(Patch(run_lifecycle, "is_too_late", returning(False)),),
        killed_by=f"{GIVEN_UP_TESTS}::test_given_an_outage_behind_which_a_try_would_come_too_late_then_the_run_is_given_up",
    ),
    Mutant(
        "retries behind later ones",
        "further attempts that are planned for hours later delay one that is due now",
        breaks="liveness",
        patches=(Patch(retry_budget, "_last_of_full_windows", instead(behind_the_latest)),),
        killed_by=f"{BUDGET_TESTS}::test_given_retries_that_are_planned_for_later_then_one_before_them_begins_when_it_likes",
    ),
)
