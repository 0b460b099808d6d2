"""Which test shows what: the twenty holes of the first design (H1-H20), and each rule that was made against an interleaving.

Where a bench next to the code shows it already, that test is named; the others are in this folder. `test_table.py` checks that
every named test exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Table: TypeAlias = Mapping[str, tuple[str, ...]]
"""What is shown, to the tests that show it: `<folder>/<file without test_ and .py>: <name without test_given_>`."""

FOLDERS: Mapping[str, str] = {
    "here": "tests/simulation/directed",
    "core": "tests/unit/tidegate_core",
    "kafka": "tests/unit/tidegate_kafka",
    "launchers": "tests/unit/tidegate_launchers",
    "node": "tests/unit/tidegate_node",
    "brokers": "tests/integration/kafka",
    "program": "tests/unit/tidegate_spark",
}

HOLES: Table = {
    "H1": (
        "core/language/values/derived_ids: golden_vectors_then_shards_never_change",
        "here/ownership: requests_in_the_topic_partition_of_anybody_then_the_owner_applies_them_once",
        "core/ingest/request_ingest: a_request_of_a_foreign_shard_then_it_lies_in_that_inbox_and_its_owner_is_poked",
    ),
    "H2": (
        "here/ownership: any_number_of_topic_partitions_then_each_shard_has_one_owner",
        "core/ownership/partition_actor: one_of_two_topic_partitions_then_shards_and_event_positions_follow_from_it",
    ),
    "H3": (
        "here/former_owner: a_move_of_the_position_that_arrives_late_then_its_events_count_once",
        "core/writes/cursor_moves: a_move_then_position_and_rows_are_there_together",
    ),
    "H4": (
        "core/ingest/event_ingest: more_listeners_than_a_transaction_holds_then_each_hears_each_event_once",
        "core/ingest/event_ingest: a_crash_between_two_pages_then_each_still_hears_each_event_once",
    ),
    "H5": (
        "here/topics: a_topic_that_is_made_again_then_its_records_count_from_the_first_one_on",
        "here/topics: a_topic_that_is_made_again_and_filled_anew_then_what_has_counted_does_not_count_again",
        "core/ingest/event_ingest: any_repeats_batches_and_crashes_then_each_id_counts_once",
    ),
    "H6": (
        "core/engine/shard_writer: many_decisions_then_at_most_sixteen_share_a_transaction_in_their_order",
        "core/engine/shard_writer: a_transaction_under_way_then_the_next_waits_for_its_answer",
    ),
    "H7": (
        "here/former_owner: an_acquire_that_arrives_late_then_the_rightful_owner_keeps_the_shard",
        "core/ownership/partition_actor: a_late_raise_by_a_former_holder_then_the_rightful_one_comes_back",
        "core/ownership/partition_actor: a_fence_then_membership_decides_what_follows",
    ),
    "H8": (
        "here/former_owner: a_successor_that_cannot_find_what_was_submitted_then_one_program_passes_the_gate",
        "core/writes/start_gate: any_calls_then_at_most_one_driver_ever_passes_and_the_end_is_set_once",
    ),
    "H9": (
        "here/gate: a_container_that_is_restarted_in_its_pod_then_the_program_does_not_run_again",
        "here/gate: a_restart_that_comes_after_the_next_attempt_was_made_then_it_is_refused",
        "launchers/local/command: users_conf_then_it_beats_the_defaults_but_not_the_runs_values",
    ),
    "H10": (
        "core/admission/admit: a_permit_taken_by_another_shard_in_between_then_the_admission_is_refused",
        "core/runs/run_lifecycle: any_observation_then_permits_are_back_exactly_when_the_run_has_ended",
        "core/ownership/shard_adoption: a_started_run_that_nobody_can_ask_then_it_is_lost_after_the_gap_and_keeps_its_permit",
    ),
    "H11": (
        "here/former_owner: a_submission_that_arrives_after_the_acknowledged_end_then_its_program_does_not_start",
        "here/gate: a_start_and_the_owners_end_of_the_run_at_one_time_then_one_of_them_counts",
        "core/admission/admit: a_suspend_that_commits_in_between_then_the_admission_is_refused",
    ),
    "H12": (
        "here/schedules: nobody_for_longer_than_is_looked_ahead_then_every_instant_gets_its_run",
        "here/schedules: a_fire_that_gets_no_answer_for_longer_than_is_looked_ahead_then_it_comes_all_the_same",
        "here/schedules: a_schedule_that_is_made_within_what_was_looked_ahead_then_its_first_instant_comes",
    ),
    "H13": (
        "here/schedules: a_name_that_comes_back_then_its_first_occurrence_is_another_one_than_the_former_lifes",
        "core/firing/fire: another_incarnation_then_the_same_instant_has_another_id",
        "core/commands/apply_request: versions_then_they_count_up_over_updates_tombstones_and_new_lives",
    ),
    "H14": (
        "core/firing/fire: any_lateness_then_following_the_rows_makes_each_instant_once",
        "core/firing/fire: a_late_look_then_every_instant_gets_its_job",
    ),
    "H15": (
        "core/ownership/crashes: a_lost_answer_to_any_write_then_the_outcome_is_the_same",
        "core/engine/shard_writer_answers: an_answer_that_was_lost_then_what_was_applied_is_observed_once_and_not_done_again",
        "core/engine/actor_context: the_own_success_met_as_a_refusal_then_it_counts_as_success",
    ),
    "H16": ("here/ownership: any_number_of_topic_partitions_then_each_shard_has_one_owner",),
    "H17": (
        "here/former_owner: a_suspended_process_then_what_it_was_about_to_send_stays_where_it_is",
        "core/ownership/partition_actor: a_successor_then_the_former_holder_changes_nothing_any_more",
        "brokers/membership: process_is_suspended_beyond_the_session_then_it_learns_its_loss_when_it_wakes",
    ),
    "H18": (
        "node/startup_checks: two_processes_then_they_have_two_owners",
        "core/engine/actor_context: tokens_then_two_hosts_never_make_the_same",
    ),
    "H19": (
        "kafka/group/group_member: guard_then_a_drain_stays_below_it",
        "kafka/consumer/flow_control: bound_reached_then_it_flows_again_at_half_of_it",
        "brokers/membership: thread_stalls_beyond_the_session_then_guard_lapses_first_and_lost_is_told",
    ),
    "H20": (
        "core/ownership/partition_actor: many_shards_then_a_few_are_acquired_at_once",
        "core/messages/wire/timer_window: a_backlog_then_it_is_loaded_as_it_is_delivered",
        "core/admission/shard_waiting: a_backlog_that_may_run_at_once_then_few_decisions_admit_all_of_it",
    ),
}

RULES: Table = {
    "a late batch write after a replacement": (
        "here/former_owner: a_batch_that_lands_after_its_message_was_replaced_then_only_the_newer_one_is_delivered",
    ),
    "a late batch write after a cancel": (
        "here/former_owner: a_batch_that_lands_after_its_message_was_cancelled_then_it_is_not_delivered",
    ),
    "a late checkpoint": (
        "here/former_owner: a_checkpoint_that_arrives_late_then_the_position_does_not_go_back",
        "core/messages/message_scheduler: a_checkpoint_of_a_new_owner_then_the_former_one_ends",
    ),
    "a create at or before the delivery position": (
        "here/messages: a_create_whose_place_was_passed_before_it_is_read_again_then_it_gets_a_new_one",
        "core/messages/one_shot/create_writer: a_create_at_or_before_the_checkpoint_then_it_gets_the_next_free_slot",
    ),
    "ties within one millisecond": (
        "core/messages/wire/checkpoints: many_messages_of_one_instant_then_the_position_moves_within_it",
        "core/messages/wire/delivery: messages_of_one_instant_then_they_are_sent_in_the_order_in_which_they_came",
        "core/messages/one_shot/cancellation: cancel_and_later_send_of_one_key_in_one_batch_then_the_send_lives",
    ),
    "a destination that stays down": (
        "here/messages: a_destination_that_stays_down_then_the_others_go_on_and_each_message_ends_once",
        "core/messages/wire/delivery_retries: a_crash_while_a_message_moves_then_one_attempt_follows",
        "core/messages/wire/delivery_retries: two_take_overs_within_the_pause_then_what_the_first_owner_had_sent_does_not_bring_the_message_again",
        "core/messages/wire/checkpoints: an_open_message_in_front_then_sending_stops_at_the_bound_until_it_has_gone_out",
    ),
    "a row that fires before its create is durable": (
        "core/messages/one_shot/sending_replays: a_create_whose_position_is_not_durable_then_it_is_not_delivered_yet",
        "core/ingest/request_ingest: a_message_through_the_inbox_then_it_fires_only_when_its_row_is_gone",
    ),
    "a load without an answer": (
        "core/messages/wire/timer_window: a_load_without_an_answer_then_no_checkpoint_passes_what_it_would_bring",
    ),
    "a write without an answer": (
        "core/messages/wire/timer_window: a_write_beyond_the_window_without_an_answer_then_no_checkpoint_passes_its_place",
    ),
    "a cancel against a queued message": (
        "core/messages/one_shot/cancellation: a_message_that_waits_then_its_cancel_takes_it_back",
        "here/messages: a_cancel_between_the_guards_that_a_load_has_read_and_its_rows_then_it_is_not_delivered",
        "core/messages/message_scheduler: a_cancel_while_its_page_is_on_its_way_then_it_is_not_delivered",
        "core/messages/wire/timer_window: a_cancel_while_its_payload_is_on_its_way_then_nothing_is_held_for_it",
        "core/messages/one_shot/cancellation: a_message_on_its_way_then_its_cancel_is_too_late",
    ),
    "a cancel of what the predecessor may have sent": (
        "here/messages: a_predecessor_whose_clock_was_ahead_then_a_cancel_of_what_it_sent_is_too_late",
        "core/messages/one_shot/cancellation: a_message_that_a_predecessor_may_have_sent_then_its_cancel_is_too_late",
    ),
    "an older cancel or replacement that comes late": (
        "core/writes/message_delivery: a_guard_then_it_only_rises",
        "core/writes/message_delivery: a_new_owner_then_the_former_one_raises_no_guard",
    ),
    "two owners' rows of one create": (
        "core/messages/one_shot/sending_replays: a_late_row_of_a_former_owner_at_another_slot_then_the_message_is_delivered_once",
        "core/messages/one_shot/sending_replays: half_of_a_batch_from_a_predecessor_then_its_replay_makes_it_whole_and_once",
    ),
    "checkpoints that get no answer": (
        "core/messages/wire/checkpoints: checkpoints_that_get_no_answer_then_sending_stops_at_the_bound_and_goes_on_with_them",
        "core/messages/wire/checkpoints: payloads_and_checkpoints_that_get_no_answer_then_what_was_taken_before_keeps_the_bound_too",
    ),
    "a planned hand-over": (
        "core/messages/message_scheduler: a_planned_hand_over_then_nothing_repeats",
        "core/ownership/partition_actor: a_transaction_under_way_then_a_drain_waits_for_it",
    ),
    "the outbox produced, a crash, and again": (
        "here/outbox: an_end_that_is_told_and_a_crash_again_and_again_then_listeners_hear_it_once",
        "here/outbox: an_end_that_was_told_twice_then_both_say_which_end_it_is",
        "here/outbox: an_end_that_nobody_heard_and_a_listener_before_its_row_is_gone_then_that_one_does_not_hear_it",
    ),
    "index version and rows visible one after the other": (
        "here/index: a_moment_between_rows_version_and_receipt_then_what_comes_after_the_receipt_counts",
        "here/index: rows_without_a_version_from_an_owner_that_fell_then_its_successor_raises_it_before_it_answers",
        "here/index: a_suspend_then_what_the_other_node_still_matches_does_not_count",
    ),
    "who leaves the index": (
        "here/index: an_event_after_the_last_listener_left_then_its_repeat_counts_for_who_listens_again",
        "here/index: an_owner_that_fell_as_it_left_the_index_then_its_successor_leaves_it_whole",
        "here/index: an_owner_that_has_not_left_the_index_then_nothing_stands_there_that_the_api_answers_from",
    ),
    "a container restart in one pod": (
        "here/gate: a_container_that_is_restarted_in_its_pod_then_the_program_does_not_run_again",
        "here/gate: a_container_that_is_restarted_before_the_gate_then_one_of_them_runs",
        "program/wrapper: two_processes_of_one_attempt_then_each_is_a_driver_of_its_own",
    ),
    "an old and a new map": (
        "here/ownership: a_holder_of_the_old_map_then_it_changes_nothing_once_the_new_map_is_in_use",
        "here/ownership: a_create_that_was_read_under_the_old_map_then_the_new_owner_of_its_shard_delivers_it_once",
        "here/ownership: a_holder_of_the_old_map_then_nobody_takes_its_shards_before_its_position_carries_the_new_one",
        "here/ownership: all_positions_that_carry_the_new_map_then_shards_are_taken_at_once",
        "here/ownership: a_cancel_that_lies_in_an_old_topic_partition_then_it_spares_a_later_create_in_a_new_one",
        "core/ownership/partition_actor: a_newer_map_then_a_holder_of_the_older_one_does_not_serve",
    ),
    "a topic that is made again": (
        "here/topics: a_topic_that_is_made_again_then_its_records_count_from_the_first_one_on",
        "here/topics: events_of_the_old_topic_in_the_inbox_then_they_count_beside_those_at_the_same_offsets",
        "here/topics: a_schedule_that_was_activated_before_then_the_new_topic_counts_whole",
        "node/startup_checks: a_map_of_something_else_then_it_is_refused",
    ),
    "a timer row that was left behind": (
        "here/schedules: an_update_whose_write_is_under_way_when_the_former_instant_comes_then_that_one_does_not_fire",
        "core/firing/fire: a_row_left_behind_then_it_goes_and_nothing_fires",
    ),
    "the order of a take-over": (
        "core/ownership/partition_actor: a_take_over_then_its_order_is_raise_acquire_look_at_the_end_recover_serve",
        "core/ownership/partition_actor: a_slow_acquire_then_nothing_of_any_shard_is_read_before_all_are_fenced",
        "core/ownership/partition_actor: a_holder_that_comes_between_the_reads_of_lease_and_position_then_the_former_one_is_fenced",
    ),
    "a program that starts before its submission is known": (
        "core/runs/shard_launching: a_program_that_starts_before_its_submission_is_known_then_it_runs_on",
    ),
    "a lost run that is released": (
        "core/runs/releasing_runs: an_end_that_is_reported_first_then_it_counts_and_the_answer_says_too_late",
        "core/runs/releasing_runs: a_program_that_is_found_first_then_it_runs_on_and_the_answer_says_so",
        "core/runs/releasing_runs: a_driver_that_lives_after_all_then_its_reports_are_refused",
        "core/runs/released_runs: a_look_that_finds_the_program_after_its_release_then_nothing_changes",
        "core/runs/released_runs: an_owner_that_falls_at_any_effect_of_a_release_then_the_attempt_ends_once_and_the_answer_is_given",
    ),
    "two drivers of one run, on two hosts": (
        "core/runs/copies_of_runs: the_end_of_what_is_not_the_driver_then_the_run_goes_on_until_the_driver_reports",
    ),
    "a time-out that an event could still prevent": (
        "core/evidence/expiry: unread_events_then_the_time_out_waits_for_them_and_no_longer",
        "core/evidence/expiry: a_clock_ahead_of_the_brokers_then_what_is_in_time_by_the_brokers_still_counts",
    ),
    "a request that comes after a newer one": (
        "core/commands/apply_request: an_older_request_that_comes_later_then_it_is_superseded",
    ),
    "the guard of a process that was frozen": (
        "core/engine/membership_lease: any_history_then_it_holds_only_by_a_success_sent_less_than_half_a_session_ago",
        "brokers/membership: thread_stalls_while_a_rebalance_asks_it_to_give_then_guard_lapses_first",
        "kafka/group/group_session: a_session_of_the_brokers_then_the_guard_ends_before_anybody_else_is_given_anything",
        "kafka/producer/producer: guard_lapses_then_all_is_purged_and_only_a_new_proof_brings_a_new_client",
    ),
    "an old assignment of a process that was frozen": (
        "here/former_owner: a_process_that_wakes_up_with_an_old_assignment_then_it_answers_nothing_while_the_rightful_owner_sends",
        "core/ownership/partition_actor: no_proof_of_membership_after_the_fence_then_nothing_is_read_or_answered",
    ),
    "an activation while brokers tell of fewer topic partitions, or of a former topic": (
        "core/shard/events/subscription_index: a_topic_partition_that_no_broker_told_of_at_the_activation_then_what_came_before_the_request_is_not_heard",
    ),
    "a waiting recurring message that a predecessor was refused": (
        "core/messages/recurring/recurring_refusals: refusals_that_a_successor_reads_before_it_comes_to_their_fires_then_those_behind_them_are_sent",
    ),
    "an overdue create whose rows a former owner makes once more": (
        "here/former_owner: an_overdue_create_whose_rows_a_former_owner_puts_behind_it_later_then_its_cancel_is_too_late",
    ),
    "a cancel that waits for the store": (
        "core/messages/one_shot/held_messages: a_cancel_that_asks_for_long_what_is_held_back_then_what_fell_due_meanwhile_is_cancelled_and_not_too_late",
    ),
    "late index rows of a request that came to nothing": (
        "core/rows/keys: two_repeats_of_a_request_that_makes_a_schedule_then_their_index_rows_never_meet",
    ),
    "late index rows with other ends": (
        "core/shard/events/subscription_index: a_late_row_with_other_ends_then_the_schedule_listens_once_and_hears_what_either_hears",
        "core/rows/keys: two_owners_that_write_of_one_activation_then_their_index_rows_never_meet",
    ),
    "a late row that no checkpoint passes": (
        "core/messages/one_shot/doubles: two_rows_then_the_position_passes_both_and_nobody_sends_the_second",
        "core/messages/one_shot/doubles: a_second_row_that_is_still_there_when_the_first_one_was_passed_then_a_cancel_is_too_late",
    ),
    "two checkpoints at a time": (
        "core/messages/wire/checkpoints: groups_that_end_in_one_step_then_one_checkpoint_is_begun",
    ),
    "a hand-over behind a message without acknowledgement": (
        "core/messages/wire/checkpoints: a_message_without_acknowledgement_before_one_that_was_delivered_then_a_drain_sends_it_until_there_is_one",
    ),
    "signs of life of a process that lost the topic partition": (
        "core/ownership/outage_facts: an_owner_that_lost_it_within_a_beat_and_lives_on_then_its_other_signs_of_life_hide_no_outage",
        "node/assigned_partitions: what_was_held_for_less_than_a_beat_then_it_has_its_last_sign_of_life_too",
    ),
    "signs of life of a process amid its acquires": (
        "core/ownership/outage_facts: a_process_that_takes_over_again_what_it_had_then_no_sign_of_life_amid_its_acquires_hides_the_outage",
    ),
    "a request while the position stands within the slot of a fire": (
        "core/messages/recurring/recurring_refusals_ended: messages_of_the_same_instant_that_were_passed_then_what_an_update_ends_is_no_less_open",
    ),
    "a hand-over in front of requests in the queue": (
        "core/messages/one_shot/sending_hand_overs: inbox_rows_that_are_left_as_a_drain_begins_then_those_before_what_was_sent_are_dealt_with",
        "core/messages/one_shot/sending_hand_overs: an_inbox_whose_look_has_no_end_then_what_lay_there_at_the_recovery_goes_out_and_a_hand_over_repeats_nothing",
    ),
    "a hand-over before all is recovered": (
        "core/messages/one_shot/sending_hand_overs: a_hand_over_before_all_is_recovered_then_what_lay_in_the_inbox_was_dealt_with_and_nothing_repeats",
        "core/messages/one_shot/sending_hand_overs: a_hand_over_before_the_log_is_read_again_then_it_waits_for_what_stands_before_what_was_sent",
        "core/messages/one_shot/sending_hand_overs: a_payload_that_is_being_read_as_a_hand_over_begins_then_its_message_is_the_next_owners",
    ),
    "a resume that means an older suspend": (
        "here/suspends: a_resume_of_the_former_owner_that_arrives_after_another_suspend_then_the_schedule_stays_suspended",
        "here/suspends: a_crash_after_any_effect_then_the_resume_of_an_older_suspend_changes_nothing_and_that_of_this_one_does",
    ),
    "a fire behind a message that cannot be sent yet": (
        "core/messages/recurring/recurring_fires: a_message_in_front_whose_create_is_not_durable_then_each_fire_behind_it_is_sent_at_its_time",
        "core/messages/wire/due_queue: a_row_that_is_due_and_not_ready_then_the_slot_behind_it_is_the_next_one",
    ),
    "an outage whose end was told by a clock ahead": (
        "core/ownership/outage_facts: a_fact_whose_author_had_a_clock_ahead_then_what_it_stands_for_is_not_early",
    ),
    "another outage while a catch-up waits": (
        "core/firing/shard_catch_up: another_outage_within_a_turn_then_what_it_brings_waits_for_as_long_as_its_own_time_out_says",
        "core/admission/overlap_rules: one_that_makes_up_for_the_past_in_the_place_of_one_that_waited_then_its_time_out_goes_on",
    ),
    "a crash after any effect": (
        "core/ownership/crashes: a_crash_after_any_effect_then_the_outcome_is_that_without_one",
    ),
}


def place_of(name: str) -> tuple[str, str]:
    """Returns file and function of a test that the tables name."""
    where, _, text = name.partition(": ")
    folder, _, path = where.partition("/")
    *parents, file = path.split("/")
    return "/".join([FOLDERS[folder], *parents, f"test_{file}.py"]), f"test_given_{text}"
