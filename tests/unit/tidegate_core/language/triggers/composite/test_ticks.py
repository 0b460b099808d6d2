"""Time triggers as leaves of composites: which instants are ticks, and what of a time trigger they keep (SEMANTICS 6.5)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.support.builders import all_of, every, on_data
from tidegate_core.language.triggers import EventTrigger, Trigger
from tidegate_core.language.triggers.composite.ticks import TICKS_TAKEN_MAX, Tick, ticks_of
from tidegate_core.language.triggers.preview import preview_ticks, reading_of
from tidegate_core.language.triggers.search import NEVER
from tidegate_core.language.values.instants import format_instant, parse_instant

REF = "flights/nightly"
DAILY = {"type": "cron", "expression": "30 2 * * *", "zone": "Europe/Rome"}
DAY = 24 * 3_600_000


def a_trigger(document: dict[str, Any]) -> EventTrigger:
    found: Any = TypeAdapter(Trigger).validate_python(document)
    assert isinstance(found, EventTrigger)
    return found


def walked(document: dict[str, Any], first: str, through: str) -> list[tuple[str, int]]:
    walk = ticks_of(a_trigger(document), REF).walk(parse_instant(first), parse_instant(through))
    return [(format_instant(tick.at), tick.leaf) for tick in walk.ticks]


def test_given_two_leaves_with_the_same_expression_then_each_has_the_tick() -> None:
    """CD-067: AND(cron A, cron B) needs both; two of the same text are two leaves here, CDAP makes them one."""
    trigger = all_of(DAILY, on_data("a"), DAILY)
    assert walked(trigger, "2026-01-10T00:00:00Z", "2026-01-10T12:00:00Z") == [
        ("2026-01-10T01:30:00Z", 0),
        ("2026-01-10T01:30:00Z", 2),
    ]


@pytest.mark.parametrize(
    ("more", "instants"),
    [
        pytest.param({}, ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"], id="shifted"),
        pytest.param({"dst_gap": "skip"}, ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"], id="left out by the clock"),
        pytest.param(
            {"exclude": [{"type": "dates", "first": "2026-03-28"}]},
            ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
            id="excluded",
        ),
        pytest.param({"end": "2026-03-29T01:00:00Z"}, ["2026-03-28T01:30:00Z"], id="ended"),
        pytest.param(
            {"start": "2026-03-29T00:00:00Z"}, ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"], id="not begun"
        ),
        pytest.param({"max_fires": 2}, ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"], id="so many"),
    ],
)
def test_given_a_leaf_of_time_then_it_has_the_instants_that_it_would_have_alone(
    more: dict[str, Any], instants: list[str]
) -> None:
    trigger = all_of({**DAILY, **more}, on_data("a"))
    ticks = walked(trigger, "2026-03-28T00:00:00Z", "2026-03-30T12:00:00Z")
    assert ticks == [(instant, 0) for instant in instants]


def test_given_many_ticks_then_a_walk_ends_between_two_instants_and_goes_on_where_it_ended() -> None:
    trigger = all_of(every("10s"), every("20s"), on_data("a"))
    ticks = ticks_of(a_trigger(trigger), REF)
    whole: list[Tick] = []
    first: int | None = 0
    while first is not None and first <= DAY // 4:
        walk = ticks.walk(first, DAY // 4)
        assert len(walk.ticks) <= TICKS_TAKEN_MAX + 1
        whole += walk.ticks
        first = walk.following.at
    seconds = range(0, DAY // 4 + 1, 10_000)
    assert whole == [Tick(at, leaf) for at in seconds for leaf in (0, 1) if at % (10_000 * (leaf + 1)) == 0]


def test_given_ticks_that_were_counted_before_then_max_fires_counts_on() -> None:
    trigger = a_trigger(all_of({**every("1h"), "max_fires": 3}, every("1h"), on_data("a")))
    walk = ticks_of(trigger, REF, (2, 9)).walk(3_600_000, 3 * 3_600_000)
    assert walk.ticks == [Tick(3_600_000, 0), *(Tick(hour * 3_600_000, 1) for hour in (1, 2, 3))]
    assert walk.counted == (3, 12)


def test_given_only_leaves_that_have_run_their_course_then_no_tick_follows() -> None:
    trigger = a_trigger(all_of({**every("1h"), "max_fires": 3}, on_data("a")))
    assert ticks_of(trigger, REF, (3,)).first_from(0) == NEVER


def test_given_a_composite_then_the_preview_says_what_each_instant_does() -> None:
    """An instant that satisfies the whole trigger fires, one that others have to come to latches."""
    nested = all_of({"type": "any_of", "triggers": [DAILY, on_data("b")]}, on_data("a"))
    either = {"type": "any_of", "triggers": [DAILY, on_data("b")]}
    begin = parse_instant("2026-03-28T12:00:00Z")
    shown = [preview_ticks(a_trigger(each), REF, begin, 2) for each in (nested, either)]
    assert [[(each.result, each.note.partition(";")[0]) for each in lines] for lines in shown] == [
        [("latches", "triggers[0].triggers[0]")] * 2,
        [("fires", "triggers[0]")] * 2,
    ]
    assert shown[0][0].local == "Sun 2026-03-29 03:00:00+02:00"
    assert "a clock change skips the local time" in shown[0][0].note
    assert "triggers[0]: dialect unix5, zone Europe/Rome" in reading_of(a_trigger(either))


def test_given_a_gap_that_a_leaf_skips_then_the_preview_shows_what_is_left_out() -> None:
    trigger = a_trigger(all_of({**DAILY, "dst_gap": "skip"}, on_data("a")))
    shown = preview_ticks(trigger, REF, parse_instant("2026-03-28T12:00:00Z"), 2)
    assert [each.result for each in shown] == ["skipped/dst_gap", "latches"]


def test_given_a_leaf_that_opens_instances_then_the_preview_says_so() -> None:
    trigger = a_trigger(all_of({**every("1h"), "driver": "time"}, on_data("a")))
    assert [each.result for each in preview_ticks(trigger, REF, 0, 2)] == ["opens", "opens"]


def test_given_no_leaf_of_time_then_there_is_nothing_to_preview() -> None:
    trigger = a_trigger(all_of(on_data("a"), on_data("b")))
    assert preview_ticks(trigger, REF, 0, 5) == []
    assert reading_of(trigger) == ""
