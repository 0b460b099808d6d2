"""CDAP's user stories US-01 to US-06 as their rows state them: time, fail-over, data, programs, rare feeds, priorities.

US-05's evenness over 5,000 schedules is in `run_plane/test_flexible.py`; US-01's ten thousand schedules on four nodes are measured by
`tests/cluster`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.unit.tidegate_core.decisions.story_bench import Story, schedule_of

from tidegate_core.effects import Effect, NotSubmitted, Submit
from tidegate_core.model.instants import format_instant
from tidegate_testkit.bench import Behaviour
from tidegate_testkit.builders import HOUR, MINUTE, SECOND, Doc, a_request, at_most, on_data, on_run_of

EACH_MINUTE: Doc = {"type": "cron", "expression": "* * * * *"}


def test_us_01_given_many_cron_schedules_then_each_fires_each_minute_once_and_in_time() -> None:
    """US-01: 100s to 1000s of cron schedules on time: ten times in ten minutes each, none twice, less than 2 s late."""
    story = Story(shards=16)
    names = [f"feed-{number}" for number in range(200)]
    for name in names:
        story.apply(name, EACH_MINUTE)
    begin = story.now // MINUTE * MINUTE + MINUTE
    story.run(begin - 1 - story.now)
    former = len(story.started)
    story.run(10 * MINUTE)
    made = [(schedule_of(order), str(order.context["nominal"])) for order in story.started[former:]]
    due = [format_instant(begin + number * MINUTE) for number in range(10)]
    assert Counter(made) == Counter((name, nominal) for name in names for nominal in due)
    late = [mark.at % MINUTE for mark in story.marks if mark.begins and mark.at >= begin]
    assert max(late) < 2 * SECOND


@pytest.mark.parametrize("mode", ["all", "last", "none"])
def test_us_02_given_the_owner_killed_across_fires_and_then_nobody_for_five_minutes_then_every_fire_is_accounted_for(
    mode: str,
) -> None:
    """US-02: fail-over skips nothing: each instant has run, or the ledger says by which policy it did not."""
    story = Story()
    story.apply("load", EACH_MINUTE, catchup={"mode": mode})
    begin = story.now // MINUTE * MINUTE + MINUTE
    for _ in range(5):
        story.run(begin + MINUTE - 1 - story.now)
        story.crash_after = story.effects_outside + 2
        story.run(2 * SECOND)
        begin += MINUTE
    story.run(MINUTE)
    story.away(5 * MINUTE)
    story.run(10 * MINUTE)
    begun = [str(order.context["nominal"]) for order in story.started]
    assert len(begun) == len(set(begun))
    covered = Counter[str]()
    for row in story.rows("L#"):
        first, last = int(row.get("covered_from") or row["nominal"]), int(row.get("covered_to") or row["nominal"])  # type: ignore[arg-type]
        covered.update(format_instant(each) for each in range(first, last + 1, MINUTE))
    instants = range(story.now // MINUTE * MINUTE - 15 * MINUTE, story.now // MINUTE * MINUTE, MINUTE)
    assert all(covered[format_instant(each)] >= 1 for each in instants)


def test_us_03_given_data_once_a_day_at_an_unknown_time_then_it_starts_at_once_and_a_late_start_is_told() -> None:
    """US-03: an SLA of 3 h from the data: start within 5 s; an alert when something is in the way for longer."""
    told = {"pending_timeout": "3h", "pending_timeout_action": "alert"}
    one = at_most(1, "group", group="cluster")
    story = Story(Behaviour(runs_for=4 * HOUR))
    story.apply("daily", on_data("daily"), one, **told)
    story.run(5 * HOUR)
    story.data("2025-11-13", dataset="daily")
    story.run(5 * SECOND)
    assert len(story.began("daily")) == 1
    assert story.notices("job_waits_too_long") == []
    story.apply("other", on_data("other"), one, **told)
    story.data("x", dataset="other")
    story.run(2 * HOUR)
    assert story.notices("job_waits_too_long") == []
    story.run(2 * HOUR + MINUTE)
    assert len(story.notices("job_waits_too_long")) == 1
    assert len(story.began("other")) == 1


def test_us_04_given_a_program_after_another_then_it_runs_after_its_success_only_and_knows_which_run_it_was() -> None:
    """US-04: B after A succeeded, never after A failed; A that failed, is tried again and succeeds, once."""
    story = Story()
    outcome = iter(("succeeded", "failed", "failed", "succeeded"))
    story.behaves = lambda order: (
        Behaviour(outcome=next(outcome), error_class="transient") if schedule_of(order) == "a" else Behaviour()
    )
    story.apply("a", {"type": "every", "period": "10h"})
    story.apply("b", on_run_of("a"), args=["${upstream.run_id}"])
    runs: list[int] = []
    for number in range(2):
        story.request(a_request("trigger", "a", f"t{number}"))
        story.run(MINUTE)
        runs.append(len(story.began("b")))
    assert runs == [1, 1], "not after the failure"
    story.apply("a", {"type": "every", "period": "10h"}, retry={"tries": 1, "backoff": "1s"})
    story.request(a_request("trigger", "a", "t2"))
    story.run(MINUTE)
    assert len(story.began("b")) == 2
    last = [order for order in story.started if schedule_of(order) == "b"][-1]
    upstream = [order for order in story.started if schedule_of(order) == "a"][-1]
    assert upstream.attempt == 2
    assert last.args == (upstream.run_id,)


def test_us_05_given_rare_feeds_at_any_time_of_the_night_then_each_runs_once_and_they_are_spread() -> None:
    """US-05: thousands of rare feeds, once a day, at any time of the night; here 300, between midnight and six."""
    story = Story(shards=16)
    trigger = {"type": "cron", "expression": "0 0 * * *", "flexible": "6h"}
    for number in range(300):
        story.apply(f"feed-{number}", trigger)
    story.until("00:00", day=1)
    assert story.started == []
    story.until("06:00", day=1)
    assert len({schedule_of(order) for order in story.started}) == len(story.started) == 300
    hours = Counter(int(story.since_noon(at)) for at in story.began())
    assert set(hours) == {12, 13, 14, 15, 16, 17}
    assert all(abs(found - 50) <= 15 for found in hours.values())


def test_us_06_given_priorities_under_load_then_high_ones_go_first_low_ones_all_run_and_waiting_raises_a_class() -> (
    None
):
    """US-06: at most 10 at a time, 100 low and 10 high ones ready: high first, all in the end, half an hour is worth a class."""
    ten = at_most(10, "group", group="cluster")
    story = Story(Behaviour(starts_after=10, runs_for=20 * SECOND), shards=16)
    for number in range(10):
        story.apply(f"before-{number}", {"type": "every", "period": "10h"}, ten)
        story.request(a_request("trigger", f"before-{number}"))
    for number in range(110):
        priority = "high" if number % 11 == 0 else "low"
        story.apply(f"{priority}-{number}", {"type": "every", "period": "10h"}, ten, priority=priority)
    for number in range(110):
        priority = "high" if number % 11 == 0 else "low"
        story.request(a_request("trigger", f"{priority}-{number}"))
    assert len(story.started) == 10
    story.run(10 * MINUTE)
    began = [schedule_of(order).split("-")[0] for order in story.started]
    assert began[:10] == ["before"] * 10
    assert began[10:20] == ["high"] * 10
    assert began[20:] == ["low"] * 100


def test_us_06_given_a_low_job_that_waits_long_enough_then_a_medium_one_does_not_overtake_it() -> None:
    """US-06: ageing turns low to medium after 30 minutes."""
    one = at_most(1, "group", group="cluster")
    story = Story(Behaviour(starts_after=10, runs_for=2 * HOUR))
    never = {"type": "every", "period": "100h"}
    for name, priority in (("first", "high"), ("old", "low"), ("young", "medium")):
        story.apply(name, never, one, priority=priority)
    for name, wait in (("first", SECOND), ("old", 31 * MINUTE), ("young", 5 * HOUR)):
        story.request(a_request("trigger", name))
        story.run(wait)
    assert [schedule_of(order) for order in story.started] == ["first", "old", "young"]


def test_us_03_given_a_launcher_that_is_away_then_the_run_starts_when_it_is_back() -> None:
    """US-03 with CD-042: nothing is lost meanwhile."""
    story = Story()
    story.apply("daily", on_data())

    def a_submit(effect: Effect) -> bool:
        return isinstance(effect, Submit)

    story.answer_with(a_submit, NotSubmitted("nobody answers"), times=10_000)
    story.data("2025-11-13")
    story.run(30 * MINUTE)
    assert story.started == []
    story.as_usual()
    story.run(MINUTE)
    assert len(story.started) == 1
