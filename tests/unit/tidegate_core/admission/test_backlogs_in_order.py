"""What lay in several inbox rows when somebody came back is counted in the order in which it was appended (SEMANTICS 6.2).

A row holds what one batch of one topic partition brought, so rows of two topic partitions may span the same days.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import EVENTS, MINUTE, SECOND, Doc, all_of, an_event, every, on_data
from tests.support.harness.story_bench import DAY, Story, brought
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.evidence.tick_cursor import GROUPS_OF_TICKS_MAX
from tidegate_core.ingest.event_ingest import ROW_EVENTS_MAX
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import StartReading
from tidegate_core.writes.read_cache import RANGES_MAX

TENS: Doc = {"type": "cron", "expression": "*/10 * * * *"}
"""Its first tick is at 02:20, 400 s after a bench begins."""
LATE = (EVENTS, 1)
TICKS = GROUPS_OF_TICKS_MAX + 4
"""More than one decision takes."""


INGESTED = 4
"""Effects from which on both topic partitions are read: before that the successor finds one in the inbox, and counts it."""


def a_story(trigger: Doc) -> Story:
    story = Story(event_topic_partitions=2)
    story.apply("nightly", trigger, overlap="allow")
    return story


def unread(story: Story, topic_partition: int, *events: tuple[int, str, str]) -> None:
    """Events that come while nobody reads: minutes after 02:00, data partition, dataset."""
    log = story.log(EVENTS, topic_partition)
    for minute, name, dataset in events:
        at = parse_instant(f"{DAY}T02:00:00Z") + minute * MINUTE
        log.append(LogRecord(len(log), at, None, json.dumps(an_event(name, dataset)).encode()))


def back_after(story: Story, minutes: int, crash_after: int | None = None) -> None:
    """Nobody serves until so many minutes after 02:00; then all that was produced lies in the inbox before any of it is counted.

    The owner falls so many effects on the outside after it begins to count.
    """
    story.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "I#", times=10_000)
    story.away(parse_instant(f"{DAY}T02:00:00Z") + minutes * MINUTE - story.now)
    story.run(SECOND)
    if crash_after is not None:
        story.crash_after = story.effects_outside + crash_after
    story.as_usual()
    story.run(MINUTE)


def test_given_two_topic_partitions_that_span_the_same_time_then_what_came_together_meets() -> None:
    """All of the first was counted before any of the second: half by half it expired alone."""
    story = a_story(all_of({**on_data("a"), "ttl": "5m"}, {**on_data("b"), "ttl": "5m"}))
    hours = range(1, ROW_EVENTS_MAX + 1)
    unread(story, 0, *((60 * hour, f"a{hour}", "a") for hour in hours))
    unread(story, 1, *((60 * hour + 1, f"b{hour}", "b") for hour in hours))
    back_after(story, 60 * (ROW_EVENTS_MAX + 1))
    assert "expired/evidence_expired" not in story.words("nightly")
    told = [name for number in range(len(story.started)) for name in brought(story, number)]
    assert sorted(told) == sorted(f"{each}{hour}" for each in "ab" for hour in hours)


def test_given_ticks_between_then_each_meets_what_came_with_it() -> None:
    story = a_story(all_of({**TENS, "ttl": "5m"}, {**on_data(), "ttl": "5m"}))
    unread(story, 0, (14, "early", "raw"), *((300 + number, f"late{number}", "raw") for number in range(11)))
    unread(
        story,
        1,
        *((21 + number, f"d{number}", "raw") for number in range(4)),
        *((400 + n, f"e{n}", "raw") for n in range(8)),
    )
    back_after(story, 600)
    ticks: Any = story.started[0].context["ticks"]
    assert ticks[0]["instant"][11:16] == "02:20"
    assert brought(story)[:4] == ["d0", "d1", "d2", "d3"]
    assert story.words("nightly").count("launched") == 1


def met(story: Story) -> list[tuple[str, list[str]]]:
    found = enumerate(story.started)
    return sorted((str(order.context["nominal"])[11:16], list(brought(story, place))) for place, order in found)


def instances_of_two_topic_partitions(crash_after: int | None = None) -> Story:
    story = a_story(all_of({**TENS, "driver": "time"}, on_data()))
    unread(story, 0, *((10 * number + 12, f"d{number}", "raw") for number in range(1, TICKS, 2)))
    unread(story, 1, *((10 * number + 12, f"d{number}", "raw") for number in range(2, TICKS, 2)))
    back_after(story, 10 * TICKS + 15, crash_after)
    return story


def test_given_instances_then_each_takes_what_came_first_of_all_topic_partitions() -> None:
    story = instances_of_two_topic_partitions()
    assert [names for _, names in met(story)] == [[f"d{number}"] for number in range(1, TICKS)]


@pytest.mark.parametrize("crash_after", range(INGESTED, INGESTED + 12))
def test_given_a_crash_amid_the_backlog_then_the_successor_goes_on_in_the_same_order(crash_after: int) -> None:
    story = instances_of_two_topic_partitions(crash_after)
    assert story.lives == 3, "nobody fell"
    assert met(story) == met(instances_of_two_topic_partitions())


def test_given_several_before_the_first_of_many_ticks_then_all_of_them_are_that_ticks() -> None:
    """They were dealt out, one to each of the instances that had come since."""
    story = a_story(all_of({**TENS, "driver": "time"}, on_data()))
    unread(story, 0, (16, "d1", "raw"), (17, "d2", "raw"), (10 * TICKS + 16, "d3", "raw"))
    back_after(story, 10 * TICKS + 18)
    assert met(story) == [("02:20", ["d1", "d2"]), ("02:30", ["d3"])]


@pytest.mark.nightly
def test_given_late_data_of_a_long_outage_then_a_decision_reads_of_its_instances_what_it_can_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A count that read hundreds of instances was set aside for ten minutes: what it read next pushed out what it had read. So many are
    there as a node of before leaves them, whose events waited for nothing.
    """
    story = a_story(all_of({**every("20s"), "driver": "time"}, on_data(count=2), timeout="12m"))
    unread(story, 0, (199, "last", "raw"))
    unread(story, 1, *((20 + 14 * number, f"late{number}", "raw") for number in range(ROW_EVENTS_MAX)))
    story.hold_back(lambda effect: isinstance(effect, StartReading) and (effect.topic, effect.topic_partition) == LATE)
    with monkeypatch.context() as before:
        before.setattr(MatchEvents, "_waits", lambda *_: False)
        story.away(parse_instant(f"{DAY}T05:20:00Z") - story.now)
        story.run(5 * SECOND)
    assert len(story.rows("E#")) > 2 * RANGES_MAX
    story.as_usual()
    story.run(MINUTE)
    assert story.rows("I#") == []
    assert story.notices("decision_failed") == []


def test_given_many_decisions_on_ticks_of_an_outage_then_they_follow_each_other_at_once() -> None:
    """Seed 5000180: what can still be in time is waited for, half a second each; of what is overdue nothing can."""
    story = a_story(all_of({**every("1m"), "driver": "time"}, on_data(), timeout="5m"))
    minutes = 40 * GROUPS_OF_TICKS_MAX
    story.away(minutes * MINUTE)
    back = story.now
    story.run(2 * SECOND)
    state = story.state_of("nightly")
    assert state is not None
    assert (state.next_tick or 0) > back
