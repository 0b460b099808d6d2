"""Bugs in evidence that is read late, before a deadline or a reminder passes (docs/internals/protocol.md, docs/schedules.md)."""

from __future__ import annotations

from tests.simulation.mutants.mutant import Mutant, Patch, returning
from tidegate_core.commands.upstream_deleted import RemoveUpstream
from tidegate_core.evidence.accumulator import EvidenceAccumulator

TESTS_OF_EVENTS_READ_APART = "unit/tidegate_core/evidence/test_events_read_apart.py"


RULES_OF_DEADLINES = (
    Mutant(
        "shortest wait",
        "evidence after a deadline waits for the shortest wait only; a deadline passes whose evidence in time is unread",
        breaks="I3",
        patches=(
            Patch(EvidenceAccumulator, "_waits", lambda waits: lambda gathering, at: sorted(waits(gathering, at))[:1]),
        ),
        killed_by=f"{TESTS_OF_EVENTS_READ_APART}::test_given_a_deadline_that_is_settled_and_another_behind_it_then_what_comes_late_waits_for_that_as_well[what-settles-for-as-long-as-it-may]",
    ),
    Mutant(
        "reminder passed by",
        "after an outage a time-out gives up evidence of which an earlier reminder was to make a job",
        breaks="I3",
        patches=(Patch(EvidenceAccumulator, "_reminder", returning(None)),),
        killed_by=f"{TESTS_OF_EVENTS_READ_APART}::test_given_a_topic_partition_unread_over_two_reminders_then_what_the_second_one_is_to_make_a_job_of_is_not_given_up[time-out-False]",
    ),
    Mutant(
        "deadline passed by",
        "a reminder makes a job of evidence that an earlier deadline has ended",
        breaks="I3",
        patches=(Patch(EvidenceAccumulator, "pass_time_through", returning(None)),),
        killed_by=f"{TESTS_OF_EVENTS_READ_APART}::test_given_a_deadline_right_before_a_reminder_then_it_passes_first_whoever_of_them_has_found_out_first[over-in-part-True]",
    ),
    Mutant(
        "upstream gone before its end",
        "a delete overtakes an earlier end of a run that waits in the inbox, and the end does not count",
        breaks="I3",
        patches=(Patch(RemoveUpstream, "_waits_for_an_end", returning(False)),),
        killed_by="unit/tidegate_core/commands/test_upstream_deleted.py::test_given_an_end_that_waits_for_what_may_have_come_before_it_and_a_delete_behind_it_then_it_counts_first[False]",
    ),
)
