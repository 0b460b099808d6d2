"""The flexible window: thousands of occurrences of one instant are spread, and each always has the same place."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import HOUR, MINUTE, NOW, a_definition, a_job, a_schedule, a_spec, every, parsed_spec
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.admission.admit import AdmitNext
from tidegate_core.language.triggers import EveryTrigger
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.shard.job_order import flexible_hold, flexible_until

REF = "flights/nightly"


def flexible(window: str, **more: Any) -> EveryTrigger:
    return EveryTrigger.model_validate({"type": "every", "period": "1d", "flexible": window, **more})


@given(st.text(max_size=20), st.integers(0, 4_000_000_000_000))
def test_given_any_occurrence_then_its_place_is_in_the_window_and_always_the_same(ref: str, nominal: int) -> None:
    until = flexible_until(flexible("15m"), ref, nominal)

    assert nominal <= until < nominal + 15 * MINUTE
    assert until == flexible_until(flexible("15m"), ref, nominal)


def test_given_5000_schedules_then_their_starts_are_spread_evenly_over_six_hours() -> None:
    """US-05: thousands of rare feeds between midnight and six, without a herd; per quarter of an hour within 30 % of the mean."""
    trigger, quarters = flexible("6h"), Counter[int]()
    for number in range(5_000):
        until = flexible_until(trigger, f"flights/feed-{number}", NOW)
        quarters[(until - NOW) // (15 * MINUTE)] += 1

    mean = 5_000 / 24
    assert len(quarters) == 24
    assert all(abs(found - mean) < 0.3 * mean for found in quarters.values())


def test_given_5000_schedules_over_a_month_then_each_minute_of_the_night_has_its_share() -> None:
    """US-05: per minute within 30 % of the mean. Of one night no minute can promise that: it has 14 starts, each schedule's place
    is independent of all others, and 14 is off by 27 % one time in three. Each night has other places, and they add up evenly.
    """
    trigger, minutes = flexible("6h"), Counter[int]()
    nights = [NOW + number * 24 * HOUR for number in range(30)]
    for number in range(5_000):
        for night in nights:
            minutes[(flexible_until(trigger, f"flights/feed-{number}", night) - night) // MINUTE] += 1

    mean = 5_000 * len(nights) / 360
    assert len(minutes) == 360
    assert all(abs(found - mean) < 0.3 * mean for found in minutes.values())


def test_given_a_place_ahead_then_the_job_waits_for_it_and_goes_then() -> None:
    spec = a_spec(trigger=every("1d", flexible="1h"))
    desk = DecisionHarness(a_definition(spec), a_schedule(), a_job(1, nominal=NOW))
    place = flexible_until(flexible("1h"), REF, NOW)
    look = AdmitNext(REF, desk.memory, lambda goes_on: None, most=1)

    desk.decide(look, NOW)
    (job,) = desk.records(Job, "J#")
    assert json.loads(job.unmet or "")["code"] == "flexible_window"
    assert json.loads(job.unmet or "")["until"] == place
    assert desk.records(Run, "R#") == []
    desk.decide(look, place - 1)
    assert desk.records(Run, "R#") == []
    desk.decide(look, place)
    assert len(desk.records(Run, "R#")) == 1


def test_given_run_now_or_a_late_job_then_nothing_holds_it_back() -> None:
    spec = parsed_spec(trigger=every("1d", flexible="1h"))

    assert flexible_hold(spec, a_job(1, nominal=NOW, trigger="manual"), NOW) is None
    assert flexible_hold(spec, a_job(1, nominal=NOW - HOUR), NOW) is None
    assert flexible_hold(parsed_spec(trigger=every("1d")), a_job(1, nominal=NOW), NOW) is None
