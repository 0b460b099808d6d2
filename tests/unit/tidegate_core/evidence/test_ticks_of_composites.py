"""Time leaves of composites by the whole actor: outages, suspends, updates and deletes (SEMANTICS 6.5, 10 to 12)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, all_of, an_apply, an_event, every, on_data
from tests.support.harness.story_bench import DAY, Story, brought
from tidegate_core.language.values.instants import parse_instant

TENS: Doc = {"type": "cron", "expression": "*/10 * * * *"}
"""Its first tick is at 02:20, 400 s after a bench begins."""
BOTH = all_of(TENS, on_data())
EITHER: Doc = {"type": "any_of", "triggers": [TENS, on_data(count=3)]}


def a_story(trigger: Doc = BOTH, **more: Any) -> Story:
    story = Story()
    story.apply("nightly", trigger, **more)
    return story


def nominals(story: Story) -> list[str]:
    return [str(order.context["nominal"])[11:16] for order in story.started]


def asked(story: Story, kind: str, **more: Any) -> None:
    story.request(a_request(kind, request_id=f"{kind}-{story.now}", **more))
    story.run(SECOND)


def test_given_a_tick_and_data_then_the_program_is_told_both() -> None:
    """CD-066, CD-055: any order; the planned instant is what a program sees."""
    story = a_story()
    story.until("02:25")
    story.data("d1")
    story.run(SECOND)
    assert nominals(story) == ["02:20"]
    assert story.started[0].context["ticks"] == [{"instant": "2025-11-13T02:20:00Z", "leaf": 0}]
    assert brought(story) == ["d1"]
    story.data("d2")
    story.until("02:29")
    assert len(story.started) == 1
    story.until("02:31")
    assert (nominals(story), brought(story, 1)) == (["02:20", "02:30"], ["d2"])


def test_given_two_expressions_then_both_have_to_come() -> None:
    """CD-067: AND(cron A, cron B) needs both."""
    story = a_story(all_of({"type": "cron", "expression": "20 * * * *"}, {"type": "cron", "expression": "26 * * * *"}))
    story.until("02:25")
    assert story.started == []
    story.until("02:27")
    assert nominals(story) == ["02:26"]


def test_given_instants_that_nobody_served_then_what_came_meets_the_tick_that_it_would_have_met() -> None:
    """What came first is not held against the last tick: it would have expired alone long before that."""
    story = a_story(all_of({**TENS, "ttl": "5m"}, {**on_data(), "ttl": "5m"}))
    story.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "I#", times=10_000)
    for tens in "234":
        story.until(f"02:{tens}2")
        story.data(f"d{tens}")
    story.run(SECOND)  # What came this very moment is counted by itself.
    story.as_usual()
    story.away(2 * MINUTE)
    story.run(2 * MINUTE)
    assert nominals(story) == ["02:20"]
    assert story.started[0].context["ticks"] == [{"instant": "2025-11-13T02:20:00Z", "leaf": 0}]
    assert brought(story) == ["d2", "d3", "d4"]  # It had not started, so it took what came after.
    assert story.words("nightly") == ["launched"]


def test_given_an_outage_over_ticks_then_they_latch_once_somebody_serves_and_none_twice() -> None:
    story = a_story(EITHER)
    story.until("02:19")
    story.away(25 * MINUTE)
    story.run(MINUTE)
    assert nominals(story) == ["02:20"]
    story.until("02:51")
    assert nominals(story) == ["02:20", "02:50"]


def data_while_nobody_serves(story: Story, *times: tuple[int, str]) -> None:
    """Data that comes so many days after the first one, at that time, and is counted half an hour after the last of it."""
    for number, (day, time_of_day) in enumerate(times, 1):
        story.now = parse_instant(f"{DAY}T{time_of_day}:00Z") + day * 24 * 60 * MINUTE
        story.event(an_event(f"d{number}", "raw"))
    story.away(30 * MINUTE)
    story.run(2 * MINUTE)


def test_given_more_ticks_than_one_decision_takes_then_data_meets_those_that_it_would_have_met() -> None:
    """The rest of the ticks was latched behind it, as stale: no job came of what had made one in a run that was served."""
    ten, forty = {**every("10s"), "ttl": "5m"}, {"type": "cron", "expression": "40 * * * *", "ttl": "5m"}
    story = a_story(all_of(ten, forty, {**on_data(), "ttl": "5m"}), overlap="allow")
    data_while_nobody_serves(story, (0, "03:44"), (0, "03:50"))
    ticks: Any = story.started[0].context["ticks"]
    assert [each["instant"][11:] for each in ticks] == ["03:40:00Z", "03:43:30Z"]
    assert brought(story)[0] == "d1"
    assert len(story.started) == 1
    assert story.notices("decision_failed") == []


def test_given_ticks_of_more_windows_than_one_decision_takes_then_data_meets_that_of_its_own() -> None:
    eight = {"type": "cron", "expression": "0 8 * * *", "ttl": "2h"}
    window = {"every": "day", "zone": "UTC"}
    story = a_story(all_of(eight, {**on_data(), "ttl": "2h"}, window=window), overlap="allow")
    data_while_nobody_serves(story, (10, "09:00"), (10, "12:00"))
    assert [order.context["nominal"] for order in story.started] == ["2025-11-23T08:00:00Z"]
    assert brought(story)[0] == "d1"
    assert story.words("nightly") == [*["expired/evidence_expired"] * 10, "launched"]


def test_given_data_of_many_windows_that_nobody_counted_then_each_meets_the_tick_of_its_own() -> None:
    """All of it may lie in one row of the inbox: what comes behind the ticks that fit stays there."""
    eight = {"type": "cron", "expression": "0 8 * * *", "ttl": "2h"}
    window = {"every": "day", "zone": "UTC"}
    story = a_story(all_of(eight, {**on_data(), "ttl": "2h"}, window=window), overlap="allow")
    data_while_nobody_serves(story, (2, "09:00"), (5, "12:00"), (12, "09:00"), (20, "08:30"))
    assert [str(order.context["nominal"])[:10] for order in story.started] == ["2025-11-15", "2025-11-25", "2025-12-03"]
    assert [brought(story, number) for number in range(3)] == [["d1"], ["d3"], ["d4"]]


@pytest.mark.parametrize(
    ("mode", "started"),
    [
        pytest.param("drop", ["02:20"], id="a span that is dropped has no ticks"),
        pytest.param("freeze", ["02:20"], id="nor one that is frozen"),
        pytest.param("drain", ["02:20"], id="nor one that is drained"),
        pytest.param("hold", ["02:20", "02:30"], id="one that is held goes on"),
    ],
)
def test_given_a_suspend_over_a_tick_then_the_mode_says_whether_it_counts(mode: str, started: list[str]) -> None:
    story = a_story(EITHER, overlap="allow")
    story.until("02:21")
    asked(story, "suspend", mode=mode)
    story.until("02:35")
    assert nominals(story) == ["02:20"]
    asked(story, "resume")
    story.run(MINUTE)
    assert nominals(story) == started
    story.until("02:41")
    assert nominals(story) == [*started, "02:40"]


def test_given_a_frozen_latch_then_it_holds_as_long_as_the_clock_stands() -> None:
    story = a_story(all_of({**TENS, "ttl": "5m", "max_fires": 1}, on_data()))
    story.until("02:22")
    asked(story, "suspend", mode="freeze")
    story.until("02:35")
    asked(story, "resume")
    story.until("02:37")
    story.data("d1")
    story.run(SECOND)
    assert nominals(story) == ["02:20"]


def test_given_a_suspended_namespace_then_its_ticks_are_no_misses() -> None:
    story = a_story(EITHER)
    for kind, until in (("control.suspend", "02:22"), ("control.resume", "02:23")):
        story.request({"id": kind, "type": kind, "scope": "namespace", "namespace": "flights"})
        story.until(until)
    assert story.started == []
    story.until("02:31")
    assert nominals(story) == ["02:30"]


@pytest.mark.parametrize(
    ("how", "fires"),
    [
        pytest.param("restart", False, id="what latched is discarded"),
        pytest.param("finish_old", False, id="evidence that made no job is discarded"),
        pytest.param("carry", True, id="what latched is carried on"),
    ],
)
def test_given_an_update_between_tick_and_data_then_the_mode_says_whether_the_latch_stays(
    how: str, fires: bool
) -> None:
    story = a_story()
    story.until("02:21")
    story.request(an_apply(a_spec(trigger=BOTH, args=["new"]), "second", on_update=how))
    story.run(SECOND)
    story.data("d1")
    story.run(SECOND)
    assert bool(story.started) == fires
    story.until("02:31")
    assert nominals(story) == (["02:20"] if fires else ["02:30"])


def test_given_an_update_to_another_time_then_the_former_one_ticks_no_more() -> None:
    story = a_story(EITHER)
    story.apply("nightly", {**EITHER, "triggers": [{"type": "cron", "expression": "25 * * * *"}, on_data(count=3)]})
    story.until("02:24")
    assert story.started == []
    story.until("02:26")
    assert nominals(story) == ["02:25"]


def test_given_a_delete_then_nothing_ticks_and_no_row_is_left() -> None:
    story = a_story(EITHER)
    asked(story, "delete")
    story.until("02:21")
    assert story.started == []
    assert [row for row in story.rows("T#") if row["kind"] == "E"] == []


def test_given_data_that_a_latch_still_held_at_the_tick_then_it_fires_and_else_it_does_not() -> None:
    story = a_story(all_of({**TENS, "ttl": "4m"}, {**on_data(), "ttl": "5m"}))
    story.until("02:16")
    story.data("d1")
    story.until("02:21")
    assert nominals(story) == ["02:20"]
    story.until("02:24")
    story.data("d2")
    story.until("02:31")
    assert nominals(story) == ["02:20"]
    assert story.words("nightly") == ["launched", "expired/evidence_expired"]


def test_given_max_fires_then_they_count_on_over_a_resume_and_anew_after_an_update() -> None:
    limited: Doc = {"type": "any_of", "triggers": [{**every("1m"), "max_fires": 2}, on_data(count=3)]}
    story = a_story(limited)
    story.run(MINUTE)
    asked(story, "suspend")
    asked(story, "resume")
    story.run(4 * MINUTE)
    assert len(story.started) == 2
    story.apply("nightly", limited, args=["new"])
    story.run(5 * MINUTE)
    assert len(story.started) == 4
