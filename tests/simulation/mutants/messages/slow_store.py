"""Planted bugs in recurring messages, and in suspensions that end by themselves, while the store is slow or silent."""

from __future__ import annotations

from tests.simulation.mutants.mutant import Mutant, Patch, instead, returning
from tidegate_core.commands import timed_resume
from tidegate_core.messages.recurring import message_template
from tidegate_core.messages.recurring.fire_series import Fire
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.messages.recurring.wake_rows import LEFT_AFTER_MS, WakeRows
from tidegate_core.messages.wire.timer_window import place_of
from tidegate_core.rows.store_operations import Item, Key


def by_its_age_alone(summoned: WakeRows, key: Key) -> bool:
    return place_of(key.sk)[0] < summoned._messages.host.now - LEFT_AFTER_MS and key not in summoned._waiting


def by_its_origin_alone(item: Item | None, fire: Fire) -> bool:
    return item is not None and item["origin"] == fire.interval.origin


RULES_OF_SLOW_STORES = (
    Mutant(
        "summons left by age",
        "behind a silence the sweep takes a summons for one that nobody could deal with: what `all` wants is told as missed",
        breaks="I1",
        patches=(Patch(WakeRows, "is_left", instead(by_its_age_alone)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_slow_store.py::test_given_a_summons_that_the_look_ahead_has_not_come_to_behind_a_silence_then_the_sweep_leaves_it_alone[all]",
    ),
    Mutant(
        "search left alone",
        "how far a trigger was searched stands for its next fire for good",
        breaks="I1",
        patches=(Patch(RecurringQueue, "placed", returning(None)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_slow_store.py::test_given_a_search_that_the_lane_comes_to_when_it_is_near_then_somebody_goes_on_with_it[120]",
    ),
    Mutant(
        "left to one for all",
        "what stands for a whole outage is left to the rows of its last instant, which bring that one alone",
        breaks="I1",
        patches=(Patch(message_template, "_is_of", instead(by_its_origin_alone)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_slow_store.py::test_given_the_last_instant_of_an_outage_that_was_refused_before_it_was_known_then_the_others_are_delivered",
    ),
    Mutant(
        "cancelled behind the position",
        "what was sent of a record that was moving out is counted as cancelled by a request, and as delivered",
        breaks="I8",
        patches=(Patch(RecurringQueue, "taken_through", instead(lambda source, record, interval, behind: behind)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_slow_store.py::test_given_a_request_behind_such_a_move_then_what_was_sent_from_memory_counts_as_delivered_and_once[update-False]",
    ),
    Mutant(
        "suspended until noticed",
        "a suspension lasts until somebody ends it, and what is due at its promised end is made by nobody",
        breaks="I1",
        patches=(Patch(timed_resume, "_suspension_end", instead(lambda before, definition, now: now)),),
        killed_by="unit/tidegate_core/commands/test_suspend_until.py::test_given_an_instant_right_at_the_end_then_it_is_no_part_of_the_suspension[2-drop]",
    ),
)
