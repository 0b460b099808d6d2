"""`driver: time` by the whole actor: outages, take-overs, suspends and updates (SEMANTICS 6.5, 6.6, 10, 12)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, all_of, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.crash_points import crash_points
from tests.support.harness.story_bench import Story, brought
from tidegate_core.evidence.tick_cursor import GROUPS_OF_TICKS_MAX
from tidegate_core.rows.effects import Effect, ReadEndOffsets

TENS: Doc = {"type": "cron", "expression": "*/10 * * * *", "driver": "time"}
"""Its first tick is at 02:20, 400 s after a bench begins."""
EACH = all_of(TENS, on_data())


def a_story(trigger: Doc = EACH, **more: Any) -> Story:
    story = Story()
    story.apply("nightly", trigger, overlap="allow", **more)
    return story


def met(story: Story) -> list[tuple[str, list[str]]]:
    """Returns each run's nominal, and the data that it was told of."""
    found = enumerate(story.started)
    return sorted((str(order.context["nominal"])[11:16], list(brought(story, place))) for place, order in found)


def asked(story: Story, kind: str, **more: Any) -> None:
    story.request(a_request(kind, request_id=f"{kind}-{story.now}", **more))
    story.run(SECOND)


def test_given_data_that_come_late_then_each_instant_meets_its_own() -> None:
    """An Oozie user's: the 02:20 waits for its data while the 02:30 is there already."""
    story = a_story()
    story.until("02:35")
    story.data("d1", apart=SECOND)
    assert met(story) == [("02:20", ["d1"])]
    story.data("d2", apart=SECOND)
    assert met(story) == [("02:20", ["d1"]), ("02:30", ["d2"])]
    story.data("d3", "d4", apart=SECOND)
    story.until("02:41")
    assert met(story)[2:] == [("02:40", ["d3", "d4"])]
    assert story.started[2].context["ticks"] == [{"instant": "2025-11-13T02:40:00Z", "leaf": 0}]


@pytest.mark.parametrize("away", [False, True])
def test_given_an_outage_over_many_instants_then_the_same_meets_as_without_it(*, away: bool) -> None:
    """What came for 15 instants is counted at once, and more of them come before it than one decision takes."""
    story = a_story(all_of(TENS, on_data(), timeout="25m"))
    if away:
        story.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") in {"I#", "T#"}, times=10_000)
    story.until("03:59")
    for day in range(1, 5):
        story.data(f"d{day}")
        story.until(f"04:{day}9")
    story.as_usual()
    story.away(2 * MINUTE)
    story.run(8 * MINUTE)
    assert met(story) == [
        ("03:40", ["d1"]),
        ("04:00", ["d2"]),
        ("04:10", ["d3"]),
        ("04:20", ["d4"]),
    ]  # At 04:15 the 03:50 ended.
    assert story.words("nightly")[:8] == ["expired/trigger_timeout"] * 8


def test_given_more_ticks_of_an_outage_than_a_decision_takes_then_one_look_behind_them_serves_all() -> None:
    """Seed 8000120: two hours of them took a decision each, and each looked anew for what nobody had read yet."""
    looks: list[Effect] = []

    def is_a_look(effect: Effect) -> bool:
        looks.extend([effect] if isinstance(effect, ReadEndOffsets) else [])
        return False

    ten = {**every("10s"), "driver": "time"}
    story = a_story(all_of(ten, on_data("a"), timeout="25s"))
    story.run(SECOND)
    story.now += 20 * MINUTE
    story.hold_back(is_a_look, times=1)
    story.run(5 * SECOND)

    assert story.words("nightly").count("expired/trigger_timeout") >= 120 // GROUPS_OF_TICKS_MAX
    assert len(looks) <= 4


@pytest.mark.parametrize(
    ("mode", "later"),
    [
        pytest.param("drop", [], id="instances are discarded"),
        pytest.param("freeze", ["02:20"], id="instances wait, their clock stands still"),
    ],
)
def test_given_a_suspend_over_a_time_out_then_the_mode_says_what_becomes_of_the_instance(
    mode: str, later: list[str]
) -> None:
    story = a_story(all_of(TENS, on_data(), timeout="15m"))
    story.until("02:21")
    asked(story, "suspend", mode=mode)
    story.until("02:55")
    asked(story, "resume")
    story.until("02:58")
    story.data("d1")
    story.run(SECOND)
    assert [nominal for nominal, _ in met(story)] == later


@pytest.mark.parametrize(("how", "nominal"), [("restart", "02:30"), ("carry", "02:20")])
def test_given_an_update_between_tick_and_data_then_carry_keeps_the_instance(how: str, nominal: str) -> None:
    story = a_story()
    story.until("02:21")
    story.request(an_apply(a_spec(trigger=EACH, args=["new"]), "second", on_update=how))
    story.run(SECOND)
    story.data("d1")
    story.until("02:31")
    assert met(story) == [(nominal, ["d1"])]


def test_given_a_delete_then_no_instance_and_no_row_of_one_is_left() -> None:
    story = a_story()
    story.until("02:31")
    asked(story, "delete")
    assert [row for row in story.rows("T#") if row["kind"] == "E"] == []
    assert list(story.rows("E#")) == []


def back_after_an_outage(crash_after: int | None = None) -> ActorHarness:
    """An event that more ticks came before than one decision takes; they go first, in decisions of their own."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.crash_after = crash_after
    ten = {**every("10s"), "driver": "time"}
    bench.request(an_apply(a_spec(trigger=all_of(ten, on_data("a"), timeout="25s"), args=["${nominal}"])))
    bench.run(5 * SECOND)
    bench.now += 121 * SECOND
    bench.event(an_event("d1", "a"))
    bench.run(5 * SECOND)
    return bench


def test_given_a_crash_after_any_effect_of_the_return_then_the_same_instances_meet_the_same() -> None:
    undisturbed = back_after_an_outage()
    words = [entry[0] for entry in undisturbed.ledger()]
    assert (words.count("launched"), words.count("expired/trigger_timeout")) == (1, 10)
    first = ActorHarness()
    first.run(SECOND)
    for effects in crash_points(undisturbed, after=first.effects_outside):
        bench = back_after_an_outage(effects)
        assert sorted(bench.ledger()) == sorted(undisturbed.ledger()), effects
        assert [order.context["nominal"] for order in bench.started] == [
            order.context["nominal"] for order in undisturbed.started
        ]
        assert brought(bench) == ["d1"]
