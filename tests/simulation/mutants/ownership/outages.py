"""Bugs in outages: facts that are not written, or hide behind later signs of life, and their effect on instants and time-outs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, operation_returning
from tidegate_core.decisions import acquisition, outage_watch
from tidegate_core.decisions.outage_watch import OutageWatch
from tidegate_core.decisions.run_plane import catch_up, fire
from tidegate_core.records.outages import Outage
from tidegate_core.records.run_plane import ScheduleState
from tidegate_core.store.values import Transaction, Update


def knowing_nothing_new(_: Any) -> Any:
    def known_before(known: Sequence[Outage], *_: int) -> tuple[Outage, ...]:
        return tuple(known)

    return known_before


def forgetting_what_was_gathered(moved: Callable[..., ScheduleState]) -> Any:
    return lambda *arguments: replace(moved(*arguments), gathered=None)


def in_the_first_one(outage_at: Callable[..., Outage | None]) -> Any:
    def in_any(outages: Sequence[Outage], instant: int) -> Outage | None:
        return outage_at(outages, instant) or next(iter(outages), None)

    return in_any


def signing_the_position(record: Callable[..., Transaction]) -> Any:
    def signed(*arguments: Any, **named: Any) -> Transaction:
        written = record(*arguments, **named)
        (update,) = written.actions
        assert isinstance(update, Update)
        names, values = {**update.names, "#w": "w"}, {**update.values, ":w": written.token}
        expression = f"SET #w = :w, {update.expression.removeprefix('SET ')}"
        signing = replace(update, expression=expression, names=names, values=values)
        return replace(written, actions=(signing,), witness=update.key)

    return signed


OUTAGES = (
    Mutant(
        "fact signed over a checkpoint",
        "an owner that records an outage over its own checkpoint of unknown fate takes itself for fenced",
        breaks="I8",
        patches=(Patch(outage_watch, "record_outages", signing_the_position),),
        within=18,
        trap="silence",
    ),
    Mutant(
        "fact of an outage",
        "a node that takes a shard over does not record that nobody served it",
        breaks="I1",
        # Who recovers would see that nobody has served it since, and write the fact then.
        patches=(
            Patch(acquisition, "with_outage", knowing_nothing_new),
            Patch(OutageWatch, "served", lambda _: lambda watch: None),
        ),
        within=2,
        directed=(1,),  # Hours of instants are made one by one: elsewhere it takes a minute.
        trap="black_out",
    ),
    Mutant(
        "fact of a silence",
        "an owner that the store did not answer goes on as if nothing had happened",
        breaks="I1",
        patches=(Patch(OutageWatch, "settle", operation_returning(None)),),
        within=2,
        trap="silence",
    ),
    Mutant(
        "catch-up cursor",
        "the next transaction forgets what one transaction has gathered of an outage",
        breaks="I1",
        patches=(Patch(fire, "_moved", forgetting_what_was_gathered),),
        within=2,
        trap="black_out",
    ),
    Mutant(
        "end of an outage",
        "instants after an outage count as missed too",
        breaks="I1",
        patches=(Patch(catch_up, "outage_at", in_the_first_one),),
        within=2,
        trap="black_out",
    ),
)
