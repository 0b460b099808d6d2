"""Bugs in outages: facts that are not written, or hide behind later signs of life, and their effect on instants and time-outs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, operation_returning, returning
from tidegate_core.firing import catch_up, fire
from tidegate_core.ownership import acquisition
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.store_operations import Transaction, Update
from tidegate_core.shard.outages import outage_recorder
from tidegate_core.shard.outages.outage_recorder import OutageRecorder


def knowing_nothing_new(known: Sequence[Outage], *_: int) -> tuple[Outage, ...]:
    return tuple(known)


def in_the_first_one(outage_at: Callable[..., Outage | None], outages: Sequence[Outage], instant: int) -> Outage | None:
    return outage_at(outages, instant) or next(iter(outages), None)


def signing_the_position(record: Callable[..., Transaction], *arguments: Any, **named: Any) -> Transaction:
    written = record(*arguments, **named)
    (update,) = written.actions
    assert isinstance(update, Update)
    names, values = {**update.names, "#w": "w"}, {**update.values, ":w": written.token}
    expression = f"SET #w = :w, {update.expression.removeprefix('SET ')}"
    signing = replace(update, expression=expression, names=names, values=values)
    return replace(written, actions=(signing,), witness=update.key)


OUTAGES = (
    Mutant(
        "fact signed over a checkpoint",
        "an owner that records an outage over its own checkpoint of unknown fate takes itself for fenced",
        breaks="I8",
        patches=(Patch(outage_recorder, "record_outages", around(signing_the_position)),),
        killed_by=Seeds(within=18, trap="silence"),
    ),
    Mutant(
        "fact of an outage",
        "a node that takes a shard over does not record that nobody served it",
        breaks="I1",
        # Who recovers would see that nobody has served it since, and write the fact then.
        patches=(
            Patch(acquisition, "with_outage", instead(knowing_nothing_new)),
            Patch(OutageRecorder, "served", returning(None)),
        ),
        # Hours of instants are made one by one: elsewhere it takes a minute.
        killed_by=Seeds(within=2, directed=(1,), trap="black_out"),
    ),
    Mutant(
        "fact of a silence",
        "an owner that the store did not answer goes on as if nothing had happened",
        breaks="I1",
        patches=(Patch(OutageRecorder, "settle", operation_returning(None)),),
        killed_by=Seeds(within=2, trap="silence"),
    ),
    Mutant(
        "catch-up cursor",
        "the next transaction forgets what one transaction has gathered of an outage",
        breaks="I1",
        patches=(Patch(fire, "_moved", lambda moved: lambda *arguments: replace(moved(*arguments), gathered=None)),),
        killed_by=Seeds(within=2, trap="black_out"),
    ),
    Mutant(
        "end of an outage",
        "instants after an outage count as missed too",
        breaks="I1",
        patches=(Patch(catch_up, "outage_at", around(in_the_first_one)),),
        killed_by=Seeds(within=2, trap="black_out"),
    ),
)
