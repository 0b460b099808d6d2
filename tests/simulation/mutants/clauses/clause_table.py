"""Planted bugs in the conditions of the store's writes: one for each clause of each builder in `conditions.py`.

The bugs are generated (`clause_finder.py`). This table has what cannot be generated: the invariant that a bug breaks, the test that
fails with it, and the layers that would hide it. A new clause without a row fails `test_clauses.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final

from tests.simulation.mutants.clauses.clause_finder import Clause, always, builders, clauses_of, spoilt
from tests.simulation.mutants.mutant import Mutant, Patch

_CURSOR: Final = "unit/tidegate_core/writes/test_cursor_moves.py::test_given"
_DELIVERY: Final = "unit/tidegate_core/writes/test_message_delivery.py::test_given"
_GATE: Final = "unit/tidegate_core/writes/test_start_gate.py::test_given"
_LIMITS: Final = "unit/tidegate_core/writes/test_limit_permits.py::test_given"
_OUTAGES: Final = "unit/tidegate_core/writes/test_outages.py::test_given"
_OWNERSHIP: Final = "unit/tidegate_core/writes/test_fencing.py::test_given"
_RATES: Final = "unit/tidegate_core/writes/test_rate_counters.py::test_given"
_FENCING_STORY: Final = "simulation/stories/clauses/test_fencing.py::test_given"
_GROWTH_STORY: Final = "simulation/stories/ingest/test_partition_growth.py::test_given"
_LIMIT_QUEUE_STORY: Final = "simulation/stories/clauses/test_limit_queue.py::test_given"
_OUTAGES_STORY: Final = "simulation/stories/clauses/test_outages.py::test_given"
_POSITIONS_STORY: Final = "simulation/stories/clauses/test_positions.py::test_given"
_ROW_MIGRATION_STORY: Final = "simulation/stories/clauses/test_row_migration.py::test_given"
_RUNS_STORY: Final = "simulation/stories/clauses/test_runs.py::test_given"
_SCOPE_SUSPENSION_STORY: Final = "simulation/stories/clauses/test_scope_suspension.py::test_given"
_START_GATE_STORY: Final = "simulation/stories/clauses/test_start_gate.py::test_given"

_OTHER_POSITION: Final = f"{_CURSOR}_another_position_than_the_one_seen_then_nothing_of_the_move_happens"
_ID_AGAIN: Final = f"{_CURSOR}_an_event_id_again_then_only_who_has_read_its_row_counts_it"
_OLDER_ROW: Final = f"{_CURSOR}_a_row_of_before_then_it_is_written_over_as_it_was_read_and_by_one_only"
_CHECKPOINT_TWICE: Final = (
    f"{_POSITIONS_STORY}_a_checkpoint_that_arrives_twice_then_the_delivery_position_does_not_go_back"
)
_STOPPED: Final = (
    f"{_RUNS_STORY}_a_stop_that_was_acknowledged_when_a_frozen_owners_admission_arrives_then_no_run_is_open"
)
_SECOND_DRIVER: Final = f"{_GATE}_another_driver_then_it_does_not_pass"
_TWO_ACQUIRE: Final = f"{_OWNERSHIP}_two_who_acquire_at_once_then_one_is_refused_whole"
_LATE_ACQUIRE: Final = f"{_FENCING_STORY}_two_acquires_of_one_epoch_then_the_second_is_refused"
_NOT_OLDER: Final = f"{_OWNERSHIP}_recorded_map_and_tp_epoch_then_only_who_is_not_older_acquires"
_WIDE: Final = f"{_LIMITS}_a_wide_limit_then_each_run_has_an_item_of_its_own_taken_and_removed_once"
_OFFERED: Final = f"{_LIMITS}_a_queue_then_a_permit_is_only_there_for_who_has_the_word"
_JOINED: Final = f"{_LIMITS}_somebody_who_joined_since_then_the_queue_stays_open"
_UNNEEDED: Final = f"{_LIMIT_QUEUE_STORY}_a_limit_that_nobody_needs_then_it_is_removed"
_TAKEN_FOR_GONE: Final = (
    f"{_OUTAGES_STORY}_an_owner_that_delivers_before_it_is_taken_for_gone_then_no_outage_is_recorded"
)
_CONSUMED: Final = f"{_OUTAGES}_what_it_consumed_is_not_there_then_it_is_refused"
_HOLD_AGAIN: Final = (
    f"{_SCOPE_SUSPENSION_STORY}_a_message_that_was_let_go_when_its_hold_arrives_again_then_it_is_not_held_back"
)

IN_USE: Final = "(attribute_not_exists(#in_use) OR #in_use < :most)"
BEFORE_THE_GATE: Final = "(#state IN (:submitting, :submitted) AND attribute_not_exists(#driver))"
OF_AN_OLDER_NODE: Final = "(#until = :until_seen AND attribute_not_exists(#uses))"
NEWER: Final = "(#map < :map OR (#map = :map AND #tp_epoch <= :tp_epoch))"

KILLED_BY: Final[Mapping[str, Mapping[str, str]]] = {
    "holds_lease": {
        "#epoch = :epoch": f"I5: {_FENCING_STORY}_a_frozen_owner_when_its_fire_arrives_after_a_take_over_then_the_fire_is_refused",
        "#controls = :controls": f"I7: {_FENCING_STORY}_controls_that_an_owner_has_not_seen_then_it_admits_nothing",
    },
    "unchanged": {
        "#rev = :rev_seen": f"I7: {_RUNS_STORY}_a_program_that_starts_while_its_run_is_closed_then_suspend_does_not_report_its_end",
    },
    "absent": {
        "attribute_not_exists(#pk)": f"I2: {_RUNS_STORY}_a_job_that_arrives_again_after_its_run_has_ended_then_it_stays_away",
    },
    "schedule_is": {
        "#status = :status": f"I7: {_STOPPED}[a suspend]",
        "#generation = :generation": f"I7: {_STOPPED}[an update]",
    },
    "permit_free": {
        IN_USE: f"I4: {_WIDE}",
        "attribute_not_exists(#in_use)": f"I1: {_WIDE}",
        "#in_use < :most": f"I1: {_WIDE}",
        "NOT contains(#holders, :run)": f"I4: {_RUNS_STORY}_an_admission_that_arrives_twice_then_the_run_takes_one_permit",
        "attribute_not_exists(#queued)": f"order: {_JOINED}",
    },
    "permit_offered": {
        IN_USE: f"I4: {_LIMITS}_more_offers_than_room_then_the_limit_holds_all_the_same",
        "attribute_not_exists(#in_use)": f"I1: {_OFFERED}",
        "#in_use < :most": f"I1: {_LIMIT_QUEUE_STORY}_an_offer_of_a_permit_that_was_given_back_then_it_admits",
        "NOT contains(#holders, :run)": f"I4: {_LIMIT_QUEUE_STORY}_an_offer_and_its_admission_that_arrive_twice_then_the_run_takes_one_permit",
        "contains(#offered, :run)": f"order: {_LIMITS}_an_offer_that_lapsed_then_it_admits_nobody",
    },
    "queue_marked": {
        "#queued = :mark_seen": f"order: {_JOINED}",
    },
    "idle": {
        "(attribute_not_exists(#in_use) OR #in_use = :none)": f"I4: {_LIMIT_QUEUE_STORY}_a_limit_that_its_home_has_read_as_idle_when_a_run_takes_it_then_it_stays",
        "attribute_not_exists(#in_use)": f"liveness: {_UNNEEDED}[only waited for]",
        "#in_use = :none": f"liveness: {_UNNEEDED}[used]",
        "attribute_not_exists(#queued)": f"order: {_LIMIT_QUEUE_STORY}_a_limit_that_somebody_waits_for_then_it_stays",
    },
    "present": {
        "attribute_exists(#pk)": f"I4: {_WIDE}",
    },
    "permits_held": {
        "contains(#holders, :run)": f"I4: {_RUNS_STORY}_an_end_that_arrives_twice_then_the_run_gives_one_permit_back",
    },
    "counted_as_seen": {
        "#count = :count": f"I4: {_RATES}_two_forced_ones_that_take_out_the_same_then_the_second_is_refused",
    },
    "acquirable": {
        "attribute_not_exists(#epoch)": f"I5: {_TWO_ACQUIRE}",
        "#epoch = :epoch_seen": f"I5: {_LATE_ACQUIRE}",
        NEWER: f"I5: {_NOT_OLDER}[recorded1-mine0]",
        "#tp_epoch <= :tp_epoch": f"I5: {_NOT_OLDER}[recorded1-mine0]",
        "#map = :map": f"I6: {_NOT_OLDER}[recorded2-mine0]",
        "#map < :map": f"I6: {_NOT_OLDER}[recorded0-mine2]",
        "(#map = :map AND #tp_epoch <= :tp_epoch)": f"liveness: {_NOT_OLDER}[recorded0-mine1]",
    },
    "topic_partition_raisable": {
        "attribute_not_exists(#pk)": f"I3: {_OWNERSHIP}_two_who_make_the_position_at_once_then_one_is_refused",
        "#epoch = :epoch_seen": f"I3: {_OWNERSHIP}_two_who_raise_at_once_then_one_is_refused_and_has_to_look_again",
        "#map <= :map": f"I6: {_OWNERSHIP}_a_newer_map_on_the_position_then_an_older_holder_cannot_raise_it",
    },
    "map_is": {
        "#version = :version_seen": f"I6: {_GROWTH_STORY}_two_nodes_that_see_different_numbers_then_one_of_them_writes_the_second_map",
    },
    "cursor_at": {
        "#epoch = :epoch": f"I5: {_CURSOR}_a_raised_epoch_then_the_former_holder_moves_nothing",
        "#map = :map": f"I6: {_OTHER_POSITION}[another map]",
        "#next = :next_seen": f"I3: {_CURSOR}_the_same_move_twice_then_the_second_is_refused",
        "#page = :page_seen": f"I3: {_OTHER_POSITION}[another page]",
    },
    "not_counted_before": {
        f"attribute_not_exists(#pk) OR {OF_AN_OLDER_NODE}": f"I3: {_ID_AGAIN}[None-False]",
        "attribute_not_exists(#pk)": f"liveness: {_CURSOR}_a_move_then_position_and_rows_are_there_together",
        OF_AN_OLDER_NODE: f"liveness: {_OLDER_ROW}[oldest]",
        "#until = :until_seen": f"I3: {_POSITIONS_STORY}_an_event_id_that_an_older_node_counts_meanwhile_then_its_repeat_does_not_count",
        "attribute_not_exists(#uses)": f"I3: {_ID_AGAIN}[written again by a newer node]",
    },
    "used_as_seen": {
        "attribute_not_exists(#pk) OR #uses = :uses_seen": f"I3: {_ID_AGAIN}[seen1-False]",
        "attribute_not_exists(#pk)": f"liveness: {_CURSOR}_a_row_that_was_read_and_is_gone_then_its_id_is_counted",
        "#uses = :uses_seen": f"liveness: {_ID_AGAIN}[as it is]",
    },
    "fired_through": {
        "#epoch = :epoch": f"I5: {_DELIVERY}_a_new_owner_then_the_former_ones_checkpoint_is_refused",
        "#slot = :slot_seen": f"I8: {_CHECKPOINT_TWICE}[later]",
        "#id = :id_seen": f"I8: {_CHECKPOINT_TWICE}[within a millisecond]",
    },
    "progress_raisable": {
        "attribute_not_exists(#epoch)": f"I5: {_TWO_ACQUIRE}",
        "#epoch = :epoch_seen": f"I5: {_LATE_ACQUIRE}",
    },
    "outage_ends": {
        "#epoch = :epoch_seen": f"I5: {_OUTAGES_STORY}_an_acquire_that_ends_an_outage_when_it_arrives_after_another_one_then_it_is_refused",
        "#slot = :slot_seen": f"I1: {_TAKEN_FOR_GONE}[later]",
        "#id = :id_seen": f"I1: {_TAKEN_FOR_GONE}[within a millisecond]",
        "attribute_not_exists(#outages)": f"I1: {_OUTAGES}_a_fact_that_was_written_meanwhile_then_an_acquire_does_not_shorten_it",
        "#outages = :outages_seen": f"I1: {_OUTAGES_STORY}_an_owner_that_records_an_outage_before_it_is_taken_for_gone_then_that_outage_stays",
    },
    "outages_recordable": {
        "#epoch = :epoch": f"I5: {_CONSUMED}[a former owner]",
        "attribute_not_exists(#outages)": f"I1: {_OUTAGES}_a_fact_that_arrives_again_then_it_is_refused",
        "#outages = :outages_seen": f"I1: {_CONSUMED}[it consumed other facts]",
    },
    "holds_progress": {
        "#epoch = :epoch": f"I5: {_DELIVERY}_a_new_owner_then_the_former_one_raises_no_guard",
    },
    "moves_seen": {
        "attribute_not_exists(#moves)": f"I8: {_HOLD_AGAIN}[the first hold]",
        "#moves = :moves_seen": f"I8: {_HOLD_AGAIN}[a later hold]",
    },
    "fence_older": {
        "attribute_not_exists(#live_from) OR #live_from < :version": f"I5: {_DELIVERY}_a_guard_then_it_only_rises[older]",
        "attribute_not_exists(#live_from)": f"I7: {_DELIVERY}_a_guard_then_it_only_rises[first]",
        "#live_from < :version": f"I7: {_DELIVERY}_a_guard_then_it_only_rises[newer]",
    },
    "of_an_older_version": {
        "attribute_exists(#pk)": f"I6: {_ROW_MIGRATION_STORY}_a_waiter_that_was_admitted_when_its_migration_arrives_then_the_row_stays_away",
        "attribute_not_exists(#added)": f"I6: {_ROW_MIGRATION_STORY}_a_row_that_its_owner_has_rewritten_when_its_migration_arrives_then_the_owners_row_stays",
    },
    "may_start": {
        "#attempt = :attempt": f"I2: {_GATE}_another_attempt_than_the_current_one_then_it_does_not_pass[1]",
        "attribute_not_exists(#ended_at)": f"I2: {_GATE}_an_end_then_the_same_driver_does_not_pass_again",
        f"({BEFORE_THE_GATE} OR #driver = :driver)": f"I2: {_SECOND_DRIVER}",
        BEFORE_THE_GATE: f"I1: {_GATE}_a_run_before_the_gate_then_the_first_driver_passes[submitted]",
        "#driver = :driver": f"I1: {_GATE}_a_repeat_by_the_same_driver_then_it_passes_and_the_start_stays_the_first",
        "#state IN (:submitting, :submitted)": f"I2: {_SECOND_DRIVER}",
        "attribute_not_exists(#driver)": f"I2: {_SECOND_DRIVER}",
    },
    "runs_under": {
        "#attempt = :attempt": f"I2: {_GATE}_reports_by_somebody_else_then_they_are_refused[another attempt]",
        "#driver = :driver": f"I2: {_GATE}_reports_by_somebody_else_then_they_are_refused[another driver]",
        "attribute_not_exists(#ended_at)": f"I2: {_GATE}_a_report_before_the_start_or_after_the_end_then_it_is_refused",
        "(attribute_not_exists(#outputs_seq) OR #outputs_seq < :seq)": f"I2: {_START_GATE_STORY}_outputs_when_an_earlier_report_arrives_late_then_the_later_outputs_stay",
        "attribute_not_exists(#outputs_seq)": f"liveness: {_GATE}_refused_outputs_then_those_that_were_overtaken_are_told_from_others",
        "#outputs_seq < :seq": f"liveness: {_START_GATE_STORY}_outputs_when_the_program_reports_later_ones_then_these_are_taken",
    },
}
"""By builder and clause: the invariant that the bug breaks, a colon, and the id of the test that fails with it."""

LEASE: Final = always("holds_lease", "#epoch = :epoch")
REVISIONS: Final = (always("unchanged", "#rev = :rev_seen"), always("absent", "attribute_not_exists(#pk)"))
"""The other conditions on what these transactions read or make."""

BESIDE: Final[Mapping[tuple[str, str], tuple[Patch, ...]]] = {
    # Lease and progress are raised in one transaction, from one epoch: each refuses where the other is off.
    ("acquirable", "attribute_not_exists(#epoch)"): (always("progress_raisable", "attribute_not_exists(#epoch)"),),
    ("progress_raisable", "attribute_not_exists(#epoch)"): (always("acquirable", "attribute_not_exists(#epoch)"),),
    ("acquirable", "#epoch = :epoch_seen"): (always("progress_raisable", "#epoch = :epoch_seen"),),
    ("progress_raisable", "#epoch = :epoch_seen"): (always("acquirable", "#epoch = :epoch_seen"),),
    ("outage_ends", "#epoch = :epoch_seen"): (always("acquirable", "#epoch = :epoch_seen"),),
    ("schedule_is", "#status = :status"): (LEASE, *REVISIONS, always("schedule_is", "#generation = :generation")),
    ("schedule_is", "#generation = :generation"): (LEASE, *REVISIONS),
    ("permit_free", "NOT contains(#holders, :run)"): REVISIONS,
    ("permits_held", "contains(#holders, :run)"): REVISIONS,
    # State and driver say the same before the gate.
    ("may_start", "#state IN (:submitting, :submitted)"): (always("may_start", "attribute_not_exists(#driver)"),),
    ("may_start", "attribute_not_exists(#driver)"): (always("may_start", "#state IN (:submitting, :submitted)"),),
}
"""Layers that would hide the bug in a clause, by builder and clause."""


def killer_of(builder: str, text: str) -> str:
    """Returns the id of the test that fails with the bug in this clause."""
    return KILLED_BY[builder][text].partition(": ")[2]


def _mutant(clause: Clause) -> Mutant:
    breaks = KILLED_BY[clause.builder][clause.text].partition(": ")[0]
    rule = " ".join((inspect.getdoc(builders()[clause.builder]) or "").split())
    wrong = "the store takes what this rule forbids" if clause.always else "the store refuses what this rule allows"
    beside = BESIDE.get((clause.builder, clause.text), ())
    why = f"{wrong}: {rule}"
    return Mutant(str(clause), why, breaks, (spoilt(clause),), killer_of(clause.builder, clause.text), beside, clause)


CLAUSES: Final = tuple(
    _mutant(clause)
    for builder in builders()
    for clause in clauses_of(builder)
    if clause.text in KILLED_BY.get(builder, {})
)
