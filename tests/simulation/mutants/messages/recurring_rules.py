"""Planted bugs in the rules of when a recurring message is sent (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.mutants.messages.message_life import unfenced_of
from tests.simulation.mutants.mutant import Mutant, Patch, instead, operation_returning
from tidegate_core.messages.recurring.ended_fires import RefusedFires
from tidegate_core.messages.recurring.recurring_change import RecurringChange
from tidegate_core.messages.wire import delivery, delivery_retries
from tidegate_core.messages.wire.due_queue import DueQueue
from tidegate_core.ownership.shard_actor import ShardActor


def behind_the_slot(boundary: Callable[..., int]) -> Callable[..., int]:
    return lambda change, record: max(change._source.promised[0] + 1, boundary(change, record))


RULES_OF_RECURRING = (
    Mutant(
        "sent under a hold",
        "a fire that was taken before a request held its schedule is handed over behind the boundary that the request saw",
        breaks="I8",
        patches=(Patch(delivery, "_without_held", instead(lambda plane, rows: rows)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_held.py::test_given_a_fire_that_was_taken_and_not_handed_over_when_an_update_comes_then_it_is_sent_under_one_version[in the same millisecond]",
    ),
    Mutant(
        "withdrawn untold",
        "a fire waits for its next attempt as its schedule is stopped: it is cancelled, and the receipt does not say so",
        breaks="I1",
        patches=(Patch(RefusedFires, "waiting_of", lambda _: lambda refused, ref, generation: 0),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_withdrawn.py::test_given_a_topic_that_is_missing_and_an_end_between_two_attempts_then_the_receipt_says_that_it_was_withdrawn[its owner goes on-suspend]",
    ),
    Mutant(
        "alarm behind what waits",
        "what falls due behind a message that is due and cannot be sent yet is sent when that one is",
        breaks="I1",
        patches=(Patch(DueQueue, "next_slot", instead(lambda slots: slots._due[0][0] if slots._due else None)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_fires.py::test_given_a_message_in_front_whose_create_is_not_durable_then_each_fire_behind_it_is_sent_at_its_time",
    ),
    Mutant(
        "early after an outage",
        "what stands for an outage is sent at once, although its end was told by a clock that is ahead",
        breaks="I8",
        patches=(Patch(ShardActor, "_wait_for_the_present", operation_returning(None)),),
        killed_by="unit/tidegate_core/ownership/test_outage_facts.py::test_given_a_fact_whose_author_had_a_clock_ahead_then_what_it_stands_for_is_not_early[message]",
    ),
    Mutant(
        "boundary behind the slot",
        "a request takes a fire for delivered because the position stands within its millisecond",
        breaks="I1",
        patches=(Patch(RecurringChange, "_boundary", behind_the_slot),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_refusals_ended.py::test_given_messages_of_the_same_instant_that_were_passed_then_what_an_update_ends_is_no_less_open[False]",
    ),
    Mutant(
        "recurring unfenced",
        "a former owner gives rows to a refused fire that its successor has sent from its place",
        breaks="I8",
        patches=(Patch(delivery_retries, "retry", unfenced_of(stored=False)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_refusals.py::test_given_two_take_overs_within_the_pause_of_a_refused_fire_then_its_late_rows_do_not_bring_it_again",
    ),
)
