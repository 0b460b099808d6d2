"""Searches for the next instant that end before they have found one, because a decision has steps for a single instant (I1)."""

from __future__ import annotations

import pytest

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
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.language.triggers import search

LEFT_OUT: list[Doc] = [{"type": "cron", "expression": "30-59 3 * * *"}, {"type": "cron", "expression": "* 4 * * *"}]
"""Ninety minutes. The instant behind them, at 05:05:30, is found from a bound: the minute in which it lies."""
TRIGGER: Doc = every("15m", phase="330s", exclude=LEFT_OUT)
NOMINALS = [f"{minute}:30" for minute in ("02:20", "02:35", "02:50", "03:05", "03:20", "05:05", "05:20")]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ActorHarness:
    monkeypatch.setattr(search, "STEPS_PER_DECISION", 1)
    made = ActorHarness()
    made.run(SECOND)
    return made


def test_given_instants_left_out_that_no_decision_passes_at_once_then_a_program_runs_at_each_other_one(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_spec(trigger=TRIGGER)))
    bench.run(3 * HOUR + 10 * MINUTE)
    started = {str(order.context["nominal"])[11:19] for order in bench.started}
    assert sorted(started) == NOMINALS, "I1: an instant that is left out fired, or one that was due did not"


def test_given_ticks_left_out_that_no_decision_passes_at_once_then_data_meets_the_tick_behind_them(
    bench: ActorHarness,
) -> None:
    tick = {**TRIGGER, "ttl": "10m"}
    bench.request(an_apply(a_spec(trigger=all_of(tick, {**on_data("a"), "ttl": "1h"}))))
    bench.run(2 * HOUR + 20 * MINUTE)
    bench.event(an_event("d1", "a"))
    bench.run(HOUR)
    assert bench.started, "I1: the tick of 05:05:30 latched nothing"


def test_given_instants_left_out_that_no_search_passes_at_once_then_a_message_is_sent_at_each_other_one(
    bench: ActorHarness,
) -> None:
    """Nothing is written of how far was searched: it waits among the rows, or summons from the store."""
    bench.request(an_apply(a_recurring(trigger=TRIGGER)))
    bench.run(3 * HOUR + 10 * MINUTE)
    sent = {str(each.headers["tidegate-nominal"])[11:19] for each in bench.on("out")}
    assert sorted(sent) == NOMINALS, "I1: an instant that is left out was sent, or one that was due was not"
