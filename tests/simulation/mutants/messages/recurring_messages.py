"""Bugs in recurring messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tidegate_core.messages.recurring import ended_fires, fire_series
from tidegate_core.messages.recurring.ended_fires import EndedFires
from tidegate_core.messages.recurring.fire_series import FireSeries
from tidegate_core.messages.recurring.message_template import Templates
from tidegate_core.messages.recurring.recurring_change import RecurringChange
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.messages.recurring.wake_rows import WakeRows
from tidegate_core.messages.wire.due_queue import NOTHING, DueQueue, Place, Stage
from tidegate_core.rows.store_operations import Key


def sending_again(ended: EndedFires, series: FireSeries, behind: Place) -> None:
    for fire in series.behind(behind):
        ended._add(fire, Stage.READY, NOTHING)


def going_on_from_now(_: Any) -> Any:
    return property(lambda source: max(source.messages.checkpoints.stored, (source.messages.host.now, "~", "")))


def opening_at_the_boundary(
    init: Callable[..., None], change: RecurringChange, source: RecurringQueue, *others: Any
) -> None:
    """What a request opens begins before what is on the wire."""
    init(change, source, *others)
    change.since = min([change.since, *(row.slot for row in source.open_rows(change.ref))])


RECURRING = (
    Mutant(
        "recurring not held",
        "a schedule goes on firing while a request replaces what it fires",
        breaks="I8",
        patches=(Patch(DueQueue, "is_held", returning(False)),),
        killed_by=Seeds(within=90, directed=(6,)),
    ),
    Mutant(
        "recurring not ended",
        "what was not acknowledged is sent again after its schedule was stopped",
        breaks="I7",
        patches=(Patch(EndedFires, "cover", returning(False)),),
        killed_by=Seeds(within=40, directed=(0,)),
    ),
    Mutant(
        "recurring sent again",
        "a successor sends again what its predecessor had sent before a stop",
        breaks="I7",
        patches=(Patch(EndedFires, "count", instead(sending_again)),),
        killed_by=Seeds(within=60, directed=(6,)),
    ),
    Mutant(
        "recurring revived",
        "a message that the broker refused is tried again after its schedule was stopped",
        breaks="I7",
        patches=(Patch(ended_fires, "_is_live", returning(True)),),
        killed_by=Seeds(within=4, directed=(0,), trap="refusals"),
    ),
    Mutant(
        "recurring moved",
        "a successor sends what waits for its next attempt at another slot",
        breaks="I8",
        patches=(Patch(Templates, "_moved_key", instead(lambda loading, fire: Key("SH#-", "M#-"))),),
        killed_by=Seeds(within=100, directed=(32,)),
    ),
    Mutant(
        "recurring from now",
        "a successor goes on from the present and not from the position",
        breaks="I1",
        patches=(Patch(RecurringQueue, "position", going_on_from_now),),
        killed_by=Seeds(within=18, directed=(6,)),
    ),
    Mutant(
        "recurring ids",
        "occurrences of two schedules, or of two lives of one name, have the same id",
        breaks="I8",
        patches=(Patch(fire_series, "fire_id", lambda made: lambda incarnation, nominal: made("", nominal)),),
        killed_by=Seeds(within=20, directed=(6,)),
    ),
    Mutant(
        "recurring overlap",
        "what a request opens begins before what it ended has come to its end",
        breaks="I8",
        patches=(Patch(RecurringChange, "__init__", around(opening_at_the_boundary)),),
        killed_by=Seeds(within=60, directed=(6,)),
    ),
    Mutant(
        "recurring summons",
        "nobody brings a far schedule near",
        breaks="I1",
        patches=(Patch(WakeRows, "_take", returning(None)),),
        killed_by=Seeds(within=100, directed=(22,)),
    ),
)
