"""Bugs in stops: a stop waits for what it must not wait for, or its answer comes before everything has ended (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead, returning
from tidegate_core.commands import apply_request, schedule_commands, suspend_resume
from tidegate_core.commands.schedule_commands import StateChange
from tidegate_core.commands.shard_suspension import TRY_AGAIN_MS, EndPage, EndSuspendedWork, ShardSuspension
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.messages.one_shot import held_messages
from tidegate_core.messages.one_shot.held_messages import HeldMessages
from tidegate_core.rows.scope_suspension import ScopeSuspensions
from tidegate_core.rows.store_operations import Key

REQUEST_STOPS_TESTS = "unit/tidegate_core/commands/test_request_stops.py"
CONTROLS_NOT_THROUGH_TESTS = "unit/tidegate_core/commands/test_controls_not_through.py"

CAME_TO_NOTHING = (ReceiptStatus.UNCHANGED, ReceiptStatus.NOT_FOUND)


def answered_at_once(apply: Callable[..., StateChange], *arguments: Any) -> StateChange:
    """What finds nothing to do."""
    found = apply(*arguments)
    return replace(found, has_pages=False) if found.status in CAME_TO_NOTHING else found


def trying_again_for_itself(
    in_lane: Callable[..., Operation[None]], controls: ShardSuspension, work: Any
) -> Generator[Any, Any, None]:
    """Whatever has been asked for since."""
    while True:
        try:
            yield from in_lane(controls, work)
        except Exception:  # noqa: BLE001 - as the shard writer tells it
            yield from controls._writer.host.sleep(TRY_AGAIN_MS)
        else:
            return


def until_the_broker_has_room(
    until_there_is_room: Callable[..., Operation[None]], held: HeldMessages, _: ScopeSuspensions
) -> Generator[Any, Any, None]:
    controls = None
    while controls is not held.controls:
        controls = held.controls
        yield from until_there_is_room(held, controls)


def up_to_the_first_failure(
    ending: EndSuspendedWork, writer: ShardWriter, pending: list[Key]
) -> Generator[Any, Any, None]:
    for key in pending:
        yield from writer.decide_alone(EndPage((key,), ending._is_dropped))


RULES_OF_STOPS = (
    Mutant(
        "suspended at once",
        "a suspend of what is suspended is answered before what the first one could not end yet: that starts behind the answer",
        breaks="I7",
        patches=(Patch(apply_request, "suspended", around(answered_at_once)),),
        killed_by=f"{REQUEST_STOPS_TESTS}::test_given_an_end_that_is_not_through_then_another_one_is_not_acknowledged_before_it_either[drop]",
    ),
    Mutant(
        "deleted at once",
        "a delete of what is deleted is answered before what the first one could not end yet: that starts behind the answer",
        breaks="I7",
        patches=(Patch(schedule_commands, "deleted", around(answered_at_once)),),
        killed_by=f"{REQUEST_STOPS_TESTS}::test_given_an_end_that_is_not_through_then_another_one_is_not_acknowledged_before_it_either[delete]",
    ),
    Mutant(
        "stop behind a refused page",
        "a stop waits for ten minutes, and again, for a page of the control before it that the store refuses",
        breaks="liveness",
        patches=(Patch(ShardSuspension, "_in_lane", around(trying_again_for_itself)),),
        killed_by=f"{CONTROLS_NOT_THROUGH_TESTS}::test_given_a_page_that_is_refused_then_a_control_that_comes_meanwhile_takes_effect_at_once",
    ),
    Mutant(
        "stop behind what is let go",
        "a stop waits for the broker to which messages of before are let go",
        breaks="liveness",
        patches=(Patch(HeldMessages, "_until_there_is_room", around(until_the_broker_has_room)),),
        beside=(Patch(held_messages, "RELEASE_AHEAD_MAX", instead(10)),),
        killed_by=f"{CONTROLS_NOT_THROUGH_TESTS}::test_given_more_held_messages_than_are_let_go_ahead_and_no_broker_then_a_stop_takes_effect_at_once",
    ),
    Mutant(
        "all behind one that cannot end",
        "one thing that the store does not let end keeps all that a wide suspend ends behind it",
        breaks="liveness",
        patches=(Patch(EndSuspendedWork, "_end", instead(up_to_the_first_failure)),),
        killed_by=f"{CONTROLS_NOT_THROUGH_TESTS}::test_given_one_thing_that_cannot_end_then_the_others_do_and_other_namespaces_messages_are_let_go",
    ),
    Mutant(
        "left out, and made later",
        "what a resume leaves out of the backlog runs where its shard makes it later, having heard late that a wide suspend is over",
        breaks="I7",
        patches=(Patch(suspend_resume, "fires_through", returning(None)),),
        killed_by="unit/tidegate_core/admission/test_backlogs_heard_late.py::test_given_a_resume_that_leaves_out_some_of_the_backlog_then_what_came_due_before_it_does_not_run[its owner-none]",
    ),
)
