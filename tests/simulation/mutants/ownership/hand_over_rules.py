"""Bugs in a hand-over during which an outage begins, or rows are loaded (docs/internals/protocol.md, A message's life)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.ownership.shard_actor import ShardActor


def of_what_is_loaded(waits_for_the_log: property) -> Any:
    def waits(plane: MessageScheduler) -> bool:
        return not plane._is_sent_ahead() and bool(waits_for_the_log.fget and waits_for_the_log.fget(plane))

    return property(waits)


def in_the_lane_alone(write: Callable[[ShardActor], None], actor: ShardActor) -> None:
    if not actor.is_draining:
        write(actor)


RULES_OF_HAND_OVERS = (
    Mutant(
        "late fires among what is left",
        "a hand-over leaves a fire that waits for the fact of an outage, and messages after it are sent again",
        breaks="I8",
        patches=(Patch(MessageScheduler, "_holds_fires_up", instead(lambda plane: plane.queue.holds_position)),),
        killed_by="unit/tidegate_core/messages/recurring/test_recurring_silence.py::test_given_a_silence_that_becomes_an_outage_while_a_drain_sends_what_is_left_then_nothing_is_sent_twice",
    ),
    Mutant(
        "fact behind a closed lane",
        "nobody writes down an outage that begins during a hand-over, and late fires wait for it",
        breaks="liveness",
        patches=(Patch(ShardActor, "_have_outage_written", around(in_the_lane_alone)),),
        killed_by="unit/tidegate_core/ownership/test_outage_facts.py::test_given_an_outage_that_opens_while_a_shard_is_recovered_then_a_drain_that_comes_before_the_end_waits_for_it",
    ),
    Mutant(
        "log left before all is loaded",
        "a row that waits for the log is loaded when a hand-over reads no more; messages after it are sent again",
        breaks="I8",
        patches=(Patch(MessageScheduler, "waits_for_the_log", of_what_is_loaded),),
        killed_by="unit/tidegate_core/messages/one_shot/test_sending_hand_overs.py::test_given_such_a_row_that_is_loaded_amid_the_hand_over_then_it_waits_for_its_record_as_well",
    ),
)
