"""Bugs in what waits for hours: a silent store, a full limit, earlier jobs, or a great many things at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulation.mutants.mutant import Mutant, Patch, instead, returning
from tidegate_core.admission import admit, overlap_rules
from tidegate_core.admission.admit import AdmitNext
from tidegate_core.admission.pending_timeout import Late
from tidegate_core.commands import apply_request, end_pending
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.evidence import match as count
from tidegate_core.evidence import watermark
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.receipt import StoredReceipt
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.limits import limit_queue_entry
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork

SHARED_LIMITS_TESTS = "unit/tidegate_core/admission/test_shared_limits.py"
REPEATS_TESTS = "unit/tidegate_core/commands/test_repeats.py"

EVERY_TIME = 10**9


def each_by_its_name(unit: UnitOfWork, wanted: Sequence[Key], ref: str) -> list[Run]:
    return [from_item(Run, item) for item in unit.items(wanted) if item is not None]


def asking_for_what_it_ignores(after_pending_timeout: Callable[..., Late]) -> Callable[..., Late]:
    return lambda *arguments: after_pending_timeout(*arguments)._replace(is_forced=False)


def whenever_it_was_given(writer: ShardWriter, key: Key) -> StoredReceipt | None:
    item = writer.view.item(key) if writer.view.knows(key) else None
    stored = None if item is None else from_item(StoredReceipt, item)
    return stored if stored is not None and stored.settled else None


RULES_OF_LONG_WAITS = (
    Mutant(
        "admitted hours later",
        "an admission that the store leaves without an answer is sent until it gets through, and its rate counts it as of hours ago",
        breaks="I4",
        patches=(Patch(UnitOfWork, "send_until", returning(None)),),
        killed_by="unit/tidegate_core/admission/test_admission_not_through.py::test_given_a_store_that_takes_no_write_for_hours_then_a_rate_counts_what_starts_then[group]",
    ),
    Mutant(
        "runs without a permit",
        "what an older version let go without a bound counts for nothing when an update bounds the runs",
        breaks="I4",
        patches=(Patch(ShardCache, "without_permit", returning(())),),
        killed_by="unit/tidegate_core/admission/test_shard_overlap.py::test_given_an_update_that_bounds_the_runs_then_those_that_are_open_count[queue-constraints0-1-carry]",
    ),
    Mutant(
        "patience in an outage",
        "the time-out of a pair waits by the clock for what nobody can read, and an outage ends it",
        breaks="I3",
        patches=(Patch(watermark, "CHECKS_APART_MS_MAX", instead(EVERY_TIME)),),
        killed_by="unit/tidegate_core/evidence/test_expiry.py::test_given_a_time_out_in_an_outage_then_what_came_before_it_is_still_waited_for[a process that stands still]",
    ),
    Mutant(
        "limit of before",
        "jobs that an update carries on wait in their queue for the limit of before",
        breaks="liveness",
        patches=(Patch(limit_queue_entry, "_has_moved", instead(lambda row, written: row.aside != written.aside)),),
        killed_by=f"{SHARED_LIMITS_TESTS}::test_given_an_update_that_carries_what_waits_then_its_rows_bear_the_new_limit[raised-of_limit]",
    ),
    Mutant(
        "merged over a gap",
        "jobs on either side of one that has ended by itself are merged, and its data are those of another one",
        breaks="I7",
        patches=(Patch(overlap_rules, "_adjoin", returning(True)),),
        killed_by="unit/tidegate_core/admission/test_overlap_rules.py::test_given_a_gap_between_data_intervals_then_jobs_on_either_side_are_not_merged[coalesce]",
    ),
    Mutant(
        "time-outs of the first alone",
        "a job behind one that may wait for longer is not looked at, however long its own time-out has passed",
        breaks="I1",
        patches=(Patch(AdmitNext, "_decide_overdue", returning(False)),),
        killed_by="unit/tidegate_core/admission/test_pending_timeout.py::test_given_a_job_behind_those_that_time_out_later_then_its_own_time_out_counts[abort-expired/constraint_timeout]",
    ),
    Mutant(
        "leaves in one decision",
        "what dozens of leaves hear is counted in one decision, which no transaction holds",
        breaks="I3",
        patches=(Patch(count, "GROUPS_PER_DECISION", instead(EVERY_TIME)),),
        killed_by="unit/tidegate_core/evidence/test_event_triggers.py::test_given_a_run_that_fifty_leaves_hear_then_each_of_them_has_its_job[]",
    ),
    Mutant(
        "forced behind its rate",
        "what is forced asks for the rate that it ignores first, and stands in no limit's line before that has room",
        breaks="order",
        patches=(Patch(admit, "after_pending_timeout", asking_for_what_it_ignores),),
        killed_by="unit/tidegate_core/admission/test_shared_rates_given_back.py::test_given_a_time_out_that_forces_then_the_job_stands_in_its_limits_line_whatever_its_rate_says",
    ),
    Mutant(
        "in line behind a window",
        "jobs behind one that a closed window holds up keep their places, and each is offered the slot in turn",
        breaks="liveness",
        patches=(Patch(AdmitNext, "_leave_queues", returning(False)),),
        killed_by=f"{SHARED_LIMITS_TESTS}::test_given_jobs_of_one_schedule_whose_window_closes_then_all_of_them_leave_the_queue_at_once[1]",
    ),
    Mutant(
        "a read for each repeat",
        "repeats of what is answered come as fast as a slow store is read, and who has no answer yet stands behind them",
        breaks="liveness",
        patches=(Patch(apply_request, "_settled_answer_in_memory", returning(None)),),
        killed_by=f"{REPEATS_TESTS}::test_given_many_repeats_of_what_was_answered_then_who_stands_behind_them_is_answered_soon[its owner]",
    ),
    Mutant(
        "answers for ever",
        "an owner that has little to do answers an id that is used again from what has expired",
        breaks="answers",
        patches=(Patch(apply_request, "_settled_answer_in_memory", instead(whenever_it_was_given)),),
        killed_by=f"{REPEATS_TESTS}::test_given_an_id_that_is_used_again_when_its_answer_is_gone_then_it_is_a_first_request",
    ),
    Mutant(
        "runs by name",
        "of a schedule with more open runs than the view holds each is read by name, and no page of its stop is ever decided",
        breaks="liveness",
        patches=(Patch(end_pending, "runs_of", instead(each_by_its_name)),),
        killed_by="unit/tidegate_core/runs/test_very_many_runs.py::test_given_very_many_open_runs_then_a_stop_is_answered[delete-more0]",
    ),
)
