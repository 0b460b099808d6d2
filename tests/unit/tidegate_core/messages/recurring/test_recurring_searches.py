"""Recurring messages whose next fire is searched piece by piece: what is sent is what an uncut search would have found."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, NOW, SECOND, a_recurring, a_request, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.tier import examples
from tidegate_core.language.triggers import search
from tidegate_core.language.triggers.on_time.cron import CronTrigger
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.messages.recurring.fire_series import Fire, FireSeries
from tidegate_core.messages.wire.due_queue import NOWHERE, Place
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.recurring_message import Interval

LEFT_OUT = [
    {"type": "cron", "expression": "*/20 * * * *"},
    {"type": "cron", "expression": "* 4,7 * * *"},
    {"type": "cron", "expression": "30-59 5 * * *", "zone": "Europe/Rome"},
]
TENS = CronTrigger.model_validate({"type": "cron", "expression": "*/10 * * * *", "exclude": LEFT_OUT})


def a_series(outages: list[Outage], **more: int | str | None) -> FireSeries:
    fields: dict[str, Any] = {
        "generation": 1,
        "version": 1,
        "incarnation": "i",
        "origin": "o",
        "begin": NOW,
        "since": NOW,
        "size": 4,
    }
    return FireSeries("flights", "ping", Interval(**{**fields, "trigger": TENS.canonical_json(), **more}), outages)


def fires(series: FireSeries, steps: int) -> list[Fire]:
    """Asks for one after the other, as whoever sends them does, and goes on from each bound."""
    found = list[Fire]()
    place: Place = NOWHERE
    with patch.object(search, "STEPS_PER_DECISION", steps):
        while (fire := series.after(place)) is not None and fire.slot < NOW + 9 * HOUR:
            assert fire.place > place
            # What comes behind a bound may have its very slot.
            place = (fire.slot, "", "") if fire.is_bound and fire.slot > place[0] else fire.place
            if not fire.is_bound:
                found.append(fire)
    return found


@settings(max_examples=examples(60), deadline=None)
@given(
    steps=st.integers(1, 30),
    catch_up=st.sampled_from(["all", "last", "none"]),
    gap=st.tuples(st.integers(0, 400), st.integers(1, 300)),
    end=st.one_of(st.none(), st.integers(0, 500)),
)
def test_given_searches_that_are_cut_anywhere_then_the_fires_are_those_of_uncut_ones(
    steps: int, catch_up: str, gap: tuple[int, int], end: int | None
) -> None:
    begin = NOW + gap[0] * MINUTE
    ended = None if end is None else NOW + end * MINUTE
    series = a_series(
        [Outage(begin, begin + gap[1] * MINUTE)],
        catch_up=catch_up,
        end=ended,
        until=None if ended is None else ended + HOUR,
    )
    assert fires(series, steps) == fires(series, 1_000_000)
    with patch.object(search, "STEPS_PER_DECISION", steps):
        cancelled = list(series.cancelled(NOWHERE))
    assert cancelled == list(series.cancelled(NOWHERE))


def delivered(steps: int, near_ms: int) -> tuple[list[int], set[str]]:
    with patch.object(search, "STEPS_PER_DECISION", steps):
        bench = ActorHarness(shards=1, recurring_near_ms=near_ms)
        bench.run(SECOND)
        bench.request(an_apply(a_recurring(trigger=every("7m", exclude=LEFT_OUT))))
        bench.run(2 * HOUR)
        bench.crash()
        bench.run(HOUR)
        bench.away(20 * MINUTE)
        bench.run(HOUR)
        bench.request(a_request("suspend", "ping"))
        bench.run(30 * MINUTE)
        bench.request(a_request("resume", "ping"))
        bench.run(2 * HOUR)
    sent = bench.on("out")
    assert all(parse_instant(each.headers["tidegate-nominal"]) <= each.at for each in sent)
    on_time = [parse_instant(each.headers["tidegate-nominal"]) for each in sent]
    return on_time, {each.headers["tidegate-id"] for each in sent}


@pytest.mark.parametrize("near_ms", [HOUR, 5 * MINUTE])
@pytest.mark.parametrize("steps", [1, 9][: tier.at_night(2, else_=1)])
def test_given_searches_that_are_cut_then_the_same_is_delivered_near_and_far(steps: int, near_ms: int) -> None:
    """Through a crash, an outage and a suspend; what is far lies where its search ended, with a row that summons it."""
    sent, ids = delivered(steps, near_ms)
    expected, expected_ids = delivered(1_000_000, near_ms)
    assert (sorted(set(sent)), ids) == (sorted(set(expected)), expected_ids)
    assert len(set(sent)) > 20
