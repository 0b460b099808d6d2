"""Protections of searches that end before they have found something (docs/protocol.md), each taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_recurring,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.delivery_plane.recurring import Series
from tidegate_core.decisions.delivery_plane.recurring_source import RecurringSource
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.run_plane import fire, gathering, timer_sweep
from tidegate_core.decisions.run_plane.timers import move_rows
from tidegate_core.records.run_plane import ScheduleState, TimerRow
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers import search
from tidegate_core.triggers.search import Next

LEFT_OUT: list[Doc] = [{"type": "cron", "expression": "30-59 3 * * *"}, {"type": "cron", "expression": "* 4 * * *"}]

WITHOUT_SWEEP = Patch(timer_sweep, "LOOK_MS", lambda _: 365 * 24 * HOUR)
"""It would find that the row is not there, and write it."""

# -- bugs -----------------------------------------------------------------------------------------------------------------


def taking_it_for_an_instant(_: Any) -> Any:
    return lambda following, next_after: following._replace(is_bound=False)


def arming_no_row(row_of: Callable[[ScheduleState | None], TimerRow | None]) -> Any:
    return lambda state: None if state.next_nominal_is_bound else row_of(state)


def passing_over_what_follows(_: Any) -> Any:
    """Goes on an hour behind where the search was cut."""

    def gone_on(following: Next, next_after: Callable[[int], Next]) -> Next:
        return next_after(following.at + HOUR) if following.is_bound and following.at is not None else following

    return gone_on


def moving_no_row_of_a_bound(_: Any) -> Any:
    def moved(unit: UnitOfWork, before: ScheduleState | None, after: ScheduleState) -> None:
        if not after.next_tick_is_bound:
            move_rows(unit, before, after)

    return moved


def sending_it(next_of: Callable[[Series, int], Next]) -> Any:
    return lambda series, nominal: next_of(series, nominal)._replace(is_bound=False)


def searching_no_further(_: Any) -> Any:
    def end(source: RecurringSource, ref: str) -> Operation[None]:
        yield from ()

    return end


# -- stories --------------------------------------------------------------------------------------------------------------


def ninety_minutes_left_out_that_no_decision_passes_at_once() -> Iterable[str]:
    """Each look has steps for one instant: the one at 05:05:30 is found from a bound on, the minute in which it lies."""
    with mock.patch.object(search, "STEPS_PER_DECISION", 1):
        bench = Bench()
        bench.run(SECOND)
        bench.request(an_apply(a_spec(trigger=every("15m", phase="330s", exclude=LEFT_OUT))))
        bench.run(3 * HOUR + 10 * MINUTE)
    nominals = [str(order.context["nominal"])[11:19] for order in bench.started]
    expected = [f"{minute}:30" for minute in ("02:20", "02:35", "02:50", "03:05", "03:20", "05:05", "05:20")]
    if early := sorted(set(nominals) - set(expected)):
        yield f"I1: {early} fired, and the trigger leaves that out"
    if lost := sorted(set(expected) - set(nominals)):
        yield f"I1: {lost} was due, and nothing fired"


def ticks_left_out_that_no_decision_passes_at_once() -> Iterable[str]:
    """Data that comes before five meets the tick of 05:05:30."""
    with mock.patch.object(search, "STEPS_PER_DECISION", 1):
        bench = Bench()
        bench.run(SECOND)
        leaf = {**every("15m", phase="330s", exclude=LEFT_OUT), "ttl": "10m"}
        bench.request(an_apply(a_spec(trigger=all_of(leaf, {**on_data("a"), "ttl": "1h"}))))
        bench.run(2 * HOUR + 20 * MINUTE)
        bench.event(an_event("d1", "a"))
        bench.run(HOUR)
    if not bench.started:
        yield "I1: the tick of 05:05:30 latched nothing"


def messages_left_out_that_no_search_passes_at_once() -> Iterable[str]:
    """As of programs: nothing is written, so how far was searched waits among the rows, or summons from the store."""
    with mock.patch.object(search, "STEPS_PER_DECISION", 1):
        bench = Bench()
        bench.run(SECOND)
        bench.request(an_apply(a_recurring(trigger=every("15m", phase="330s", exclude=LEFT_OUT))))
        bench.run(3 * HOUR + 10 * MINUTE)
    nominals = {str(each.headers["tidegate-nominal"])[11:19] for each in bench.on("out")}
    expected = {f"{minute}:30" for minute in ("02:20", "02:35", "02:50", "03:05", "03:20", "05:05", "05:20")}
    if early := sorted(nominals - expected):
        yield f"I1: {early} was sent, and the trigger leaves that out"
    if lost := sorted(expected - nominals):
        yield f"I1: {lost} was due, and nothing was sent"


SEARCHES = (
    Mutant(
        "cut search fires",
        "how far was searched is taken for an instant: an occurrence is made of what the trigger leaves out",
        breaks="I1",
        patches=(Patch(fire, "gone_on", taking_it_for_an_instant),),
        scenario=ninety_minutes_left_out_that_no_decision_passes_at_once,
    ),
    Mutant(
        "cut search forgotten",
        "a search ends without an instant, and has no timer row: nobody goes on with it",
        breaks="I1",
        patches=(Patch(fire, "nominal_row", arming_no_row),),
        scenario=ninety_minutes_left_out_that_no_decision_passes_at_once,
        beside=(WITHOUT_SWEEP,),
    ),
    Mutant(
        "cut search goes on too far",
        "a search goes on behind where it was cut, and passes over what lies between",
        breaks="I1",
        patches=(Patch(fire, "gone_on", passing_over_what_follows),),
        scenario=ninety_minutes_left_out_that_no_decision_passes_at_once,
    ),
    Mutant(
        "cut search of ticks forgotten",
        "the ticks of a composite are searched up to a bound that has no timer row: it ticks no more",
        breaks="I1",
        patches=(Patch(gathering, "move_rows", moving_no_row_of_a_bound),),
        scenario=ticks_left_out_that_no_decision_passes_at_once,
        beside=(WITHOUT_SWEEP,),
    ),
    Mutant(
        "cut search sends",
        "how far a recurring message was searched is taken for a fire of it",
        breaks="I1",
        patches=(Patch(Series, "_next", sending_it),),
        scenario=messages_left_out_that_no_search_passes_at_once,
    ),
    Mutant(
        "cut search of messages forgotten",
        "nobody goes on with the search for a recurring message that ended near",
        breaks="I1",
        patches=(Patch(RecurringSource, "_search_on", searching_no_further),),
        scenario=messages_left_out_that_no_search_passes_at_once,
    ),
)
