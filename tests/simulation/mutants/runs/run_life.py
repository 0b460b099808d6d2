"""Bugs in rules of a schedule's and a run's life (docs/internals/protocol.md)."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.mutants.mutant import Mutant, Patch, instead, operation_returning, returning
from tests.simulation.mutants.sketch.replacements import torn
from tidegate_core.commands.end_pending import EndPending
from tidegate_core.evidence import match as count
from tidegate_core.language.triggers.latches import Latches
from tidegate_core.ownership import evidence_deadlines
from tidegate_core.rows.effects import DUPLICATE
from tidegate_core.rows.run import Run
from tidegate_core.rows.trigger_rows import IndexRow
from tidegate_core.runs import run_completion, run_lifecycle
from tidegate_core.runs.run_lifecycle import AttemptEnded
from tidegate_core.shard.events import subscriptions
from tidegate_core.writes.unit_of_work import UnitOfWork


def ending_what_cannot_be_asked(unit: UnitOfWork, run: Run, _now: int) -> None:
    at = run.started_at or run.admitted_at
    run_completion.finish(unit, replace(run, ended_at=at, outcome="failed", reason="lost"), at)


def going_by_the_exit_alone(decision: AttemptEnded, run: Run) -> bool:
    return run.external_id is not None and decision.gone.error_class != DUPLICATE


INDEX_TESTS = "simulation/directed/test_index.py"
CRASHED_OUTBOX_TESTS = "simulation/directed/test_outbox.py"
OUTBOX_TESTS = "unit/tidegate_core/shard/events/test_outbox.py"
COUNT_TESTS = "unit/tidegate_core/evidence/test_match.py"
READ_APART_TESTS = "unit/tidegate_core/evidence/test_events_read_apart.py"
TIME_OUTS_TESTS = "unit/tidegate_core/evidence/test_count_time_outs.py"
COPIES_TESTS = "unit/tidegate_core/runs/test_copies_of_runs.py"
ADOPTION_TESTS = "unit/tidegate_core/ownership/test_shard_adoption.py"
STOPS_TESTS = "unit/tidegate_core/commands/test_request_stops.py"
RUN_LIFE_TESTS = "simulation/stories/runs/test_run_life.py"

RULES_OF_RUNS = (
    Mutant(
        "index version",
        "nodes do not read new rows of the index, because its version was not raised",
        breaks="I3",
        patches=(Patch(subscriptions, "_raise_versions", operation_returning(())),),
        killed_by=f"{INDEX_TESTS}::test_given_a_moment_between_rows_version_and_receipt_then_what_comes_after_the_receipt_counts[rows]",
    ),
    Mutant(
        "told from the row's instant",
        "the last writer of a row of the index decides from when on runs are told to its listener",
        breaks="I3",
        patches=(Patch(IndexRow, "told_from", instead(property(lambda row: row.activated_at))),),
        killed_by=f"{OUTBOX_TESTS}::test_given_a_run_then_it_is_told_unless_it_was_admitted_before_the_request_and_the_activation[before the instant of a row that a former owner wrote anew]",
    ),
    Mutant(
        "whatever was told counts",
        "runs count from the request for an activation on, not from the activation on",
        breaks="I3",
        patches=(
            Patch(count, "cutoff_of", lambda heard: lambda unit, state: heard(unit, replace(state, activated_at=0))),
        ),
        killed_by=f"{COUNT_TESTS}::test_given_a_run_admitted_before_the_activation_then_it_counts_within_the_clocks_skew_only[1001-False]",
    ),
    Mutant(
        "watermark",
        "a time-out does not wait for events that were announced in time and are not read yet",
        breaks="I3",
        patches=(Patch(evidence_deadlines, "wait_for_watermark", operation_returning(())),),
        killed_by=f"{READ_APART_TESTS}::test_given_what_came_in_time_and_is_read_behind_what_came_too_late_then_the_pair_is_one[0-partial]",
    ),
    Mutant(
        "order of reading",
        "whether two events are a pair depends on the order in which they are read",
        breaks="I3",
        patches=(Patch(Latches, "ends_amid", returning(False)),),
        killed_by=f"{TIME_OUTS_TESTS}::test_given_an_event_of_long_before_that_is_read_late_then_it_is_not_paired_with_what_waits",
    ),
    Mutant(
        "told before it is written",
        "an end is marked as told before its listeners have it",
        breaks="I3",
        patches=(torn("distribute", lambda action: not action.key.sk.startswith("I#")),),
        killed_by=f"{CRASHED_OUTBOX_TESTS}::test_given_an_end_that_is_told_and_a_crash_again_and_again_then_listeners_hear_it_once[handed on, not known]",
    ),
    Mutant(
        "loser's exit",
        "the exit of a copy that the gate refused counts as the end of the run",
        breaks="I4",
        patches=(Patch(run_lifecycle, "DUPLICATE", instead("nothing is called so")),),
        killed_by=f"{COPIES_TESTS}::test_given_the_end_of_what_is_not_the_driver_then_the_run_goes_on_until_the_driver_reports[refused at the gate]",
    ),
    Mutant(
        "copy's end",
        "the end of a copy that waited at the gate on one host counts as the end of the program on another host",
        breaks="I4",
        patches=(Patch(AttemptEnded, "_was_the_driver", instead(going_by_the_exit_alone)),),
        killed_by=f"{COPIES_TESTS}::test_given_the_end_of_another_hosts_copy_then_the_run_goes_on_however_that_ended[end1-b]",
    ),
    Mutant(
        "driver's exit",
        "a program that exits with the wrapper's code for a duplicate counts as a duplicate, and its run never ends",
        breaks="liveness",
        patches=(Patch(AttemptEnded, "_was_the_driver", instead(going_by_the_exit_alone)),),
        killed_by=f"{COPIES_TESTS}::test_given_the_end_of_the_copy_that_passed_the_gate_then_the_run_has_ended_whatever_its_code[end0]",
    ),
    Mutant(
        "permit by time",
        "a run whose launcher cannot be asked counts as ended after a while",
        breaks="I4",
        patches=(Patch(run_lifecycle, "mark_lost", instead(ending_what_cannot_be_asked)),),
        killed_by=f"{ADOPTION_TESTS}::test_given_a_started_run_that_nobody_can_ask_then_it_is_lost_after_the_gap_and_keeps_its_permit[unknown]",
    ),
    Mutant(
        "pending jobs",
        "suspend is acknowledged while jobs still wait",
        breaks="I7",
        patches=(Patch(EndPending, "_jobs", returning([])),),
        killed_by=f"{STOPS_TESTS}::test_given_pending_jobs_then_all_are_cancelled_before_the_answer[6-suspend]",
    ),
    Mutant(
        "lost by a deploy",
        "an update ends what is due of a time trigger and waits for its place in a window, or for a constraint",
        breaks="I1",
        patches=(Patch(EndPending, "_stays", returning(False)),),
        killed_by="unit/tidegate_core/commands/test_update_modes.py::test_given_a_deploy_each_half_hour_then_no_hourly_run_is_lost[a constraint]",
    ),
    Mutant(
        "permit last",
        "a run ends before its permits are returned",
        breaks="I4",
        patches=tuple(torn(name, lambda action: action.key.sk != "LIMIT") for name in ("look", "gone", "mixed")),
        killed_by=f"{RUN_LIFE_TESTS}::test_given_an_owner_that_falls_while_a_run_ends_then_the_permit_is_free_and_the_next_run_begins",
    ),
)
