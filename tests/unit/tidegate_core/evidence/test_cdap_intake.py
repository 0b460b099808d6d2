"""Rows of CDAP's event intake, launch and stop as they state them: what fails in the middle, fan-out, misfires, outages."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import EVENTS, MINUTE, SECOND, a_request, a_spec, an_apply, an_event, on_data, on_run_of
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.story_bench import Story
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Commit, Drained, Effect, Read, ReadRange, Submit, Unavailable, Write

STORE = (Read, ReadRange, Commit, Write)
EACH_MINUTE = {"type": "cron", "expression": "* * * * *"}


def moves_a_position(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "cursor"


def all_entries(bench: ActorHarness) -> dict[str, list[str]]:
    """The data partitions that were counted, by schedule, in order, repeats included."""
    names = {str(row["id"]): str(row["name"]) for row in bench.rows("E#")}
    found: dict[str, list[str]] = {name: [] for name in names.values()}
    for chunk in sorted(bench.rows("EC#"), key=lambda row: str(row["sk"])):
        of = names[str(chunk["sk"]).split("#")[1]]
        found[of] += [entry["partition"] for entry in json.loads(str(chunk["entries"]))]
    return found


def entries(bench: ActorHarness, name: str) -> list[str]:
    return all_entries(bench)[name]


# -- events -------------------------------------------------------------------------------------------------------------------


def test_given_an_event_that_cannot_be_taken_for_a_while_then_those_before_it_are_not_done_again_and_those_after_it_wait() -> (
    None
):
    """CD-052: a failure in the middle, of the store and not of the message. What was done stays done."""
    story = Story()
    story.apply("it", on_data(count=1_000))
    story.data("before", apart=SECOND)
    story.lose(moves_a_position, times=20)
    story.data("middle", "after")
    story.run(SECOND)
    assert entries(story, "it") == ["before"]
    story.run(MINUTE)
    assert entries(story, "it") == ["before", "middle", "after"]
    assert story.on("tidegate.events.dlq") == []


@pytest.mark.parametrize(
    "value",
    [
        b'{"type":"data.vanished","namespace":"flights","dataset":"raw","partition":"d"}',
        b'{"type":"STREAM_SIZE","namespace":"flights"}',
        b'{"namespace":"flights","dataset":"raw","partition":"d"}',
    ],
)
def test_given_an_event_of_an_unknown_type_then_it_counts_for_nothing_and_is_counted_and_kept(value: bytes) -> None:
    """CD-007, CD-053: ignored and counted; and nothing is dropped silently, so it lies among the dead letters with its reason."""
    story = Story()
    story.apply("it", on_data(count=1_000))
    story.append(EVENTS, 0, value, an_event("d1"))
    story.run(SECOND)
    assert entries(story, "it") == ["d1"]
    (letter,) = story.on("tidegate.events.dlq")
    assert letter.value == value
    assert "type" in letter.headers["tidegate.error.message"]
    assert len(story.notices("record_dead_lettered")) == 1  # `tidegate_dead_letters_total` counts these.


def test_given_a_notification_of_many_keys_then_they_count_in_its_order_over_all_pages() -> None:
    """Rows of later pages were counted before those of earlier ones."""
    story = Story()
    story.apply("it", on_data(count=5_000))
    keys = [f"d{number:04d}" for number in range(1_000)]
    payload = {"datasetId": "flights.raw", "partitionKeys": keys}
    story.append(EVENTS, 0, {"eventType": "PARTITION", "payload": payload})
    story.run(5 * SECOND)
    assert entries(story, "it") == keys


@pytest.mark.timeout(600)
def test_given_many_schedules_that_hear_one_event_and_a_kill_in_the_middle_then_each_has_it_exactly_once() -> None:
    """CD-054: 5,000 on one event, killed at a third, at a half, and near the end of the fan-out. `make test` has 150."""
    story = Story(behaviour=Behaviour(starts_after=None))
    names = [f"s{number}" for number in range(tier.at_night(5_000, else_=150))]
    for name in names:
        story.request(an_apply(a_spec(name, on_data(count=1_000))))
    story.run(SECOND)
    before = story.effects_outside
    story.data("first", apart=SECOND)
    effects = story.effects_outside - before
    assert effects > tier.at_night(100, else_=10)
    for number, part in enumerate((3, 2, 1.1)):
        story.crash_after = story.effects_outside + int(effects / part)
        story.data(f"killed-{number}", apart=MINUTE)
    assert story.lives == 4
    heard = all_entries(story)
    assert set(heard) == set(names)
    assert set(map(tuple, heard.values())) == {("first", "killed-0", "killed-1", "killed-2")}


# -- time ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "made_up_for"), [("last", [3]), ("all", [1, 2, 3]), ("none", [])])
def test_given_nobody_for_three_fire_times_then_the_policy_says_which_of_them_run(
    mode: str, made_up_for: list[int]
) -> None:
    """CD-061: fire once is one run with the last missed instant, fire all is all of them in order, skip is none."""
    story = Story()
    story.apply("it", EACH_MINUTE, catchup={"mode": mode}, args=["${nominal}"])
    begin = story.now // MINUTE * MINUTE
    story.run(begin + MINUTE - SECOND - story.now)
    story.away(2 * MINUTE + 30 * SECOND)
    story.run(20 * SECOND)
    assert [order.args for order in story.started] == [(format_instant(begin + each * MINUTE),) for each in made_up_for]
    story.run(MINUTE)
    assert story.started[-1].args == (format_instant(begin + 4 * MINUTE),)
    assert len(story.started) == len(made_up_for) + 1


# -- the store ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedules", [0, tier.at_night(100, else_=20)])
def test_given_a_store_that_is_away_for_ten_minutes_then_it_is_asked_at_a_bounded_rate_and_all_goes_on_afterwards(
    schedules: int,
) -> None:
    """CD-101: pauses grow to half a second and stay there, and what is due does not ask beside what asks already: with
    many schedules as often as with none.
    """
    story = Story()
    for number in range(schedules):
        story.apply(f"s{number}", EACH_MINUTE)
    story.run(MINUTE)
    ran = len(story.started)
    story.answer_with(lambda effect: isinstance(effect, STORE), Unavailable("away"), times=1_000_000)
    rates: list[int] = []
    for _ in range(10):
        before = len(story.asked)
        story.run(MINUTE)
        rates.append(sum(isinstance(effect, STORE) for effect in story.asked[before:]))
    # Of 4 shards at most 15 reads of queues and some 6 others are under way, and 10 of the topic partition; each is asked
    # again after 500 ms and half as much on average.
    assert max(rates) < (4 * 21 + 10) * 80
    assert max(rates[5:]) < 1.05 * min(rates[5:])
    assert len(story.started) == ran
    story.as_usual()
    story.run(5 * MINUTE)
    assert len(story.started) >= ran + 5 * schedules


# -- launch and stop ----------------------------------------------------------------------------------------------------------


def test_given_an_upstream_run_that_reported_less_then_the_run_that_wants_it_does_not_start_and_says_why() -> None:
    """CD-105: A's output `date` becomes an argument of B; a source that is missing ends that one job, with the reason."""
    story = Story(Behaviour(outputs={"date": "2025-11-13"}))
    story.apply("a", {"type": "every", "period": "10h"})
    story.apply("b", on_run_of("a"), args=["--in-date", "${upstream.outputs.date}"])
    story.apply("c", on_run_of("a"), args=["--in-date", "${upstream.outputs.day}"])
    story.request(a_request("trigger", "a"))
    story.run(MINUTE)
    assert ("--in-date", "2025-11-13") in [order.args for order in story.started]
    assert story.began("c") == []
    (told,) = [row for row in story.rows("L#") if row["name"] == "c"]
    assert "day" in str(told)
    assert "date" in str(told)


@pytest.mark.parametrize("effect", range(12))
def test_given_a_drain_at_any_moment_of_a_launch_then_the_successor_finds_no_half_launched_job(effect: int) -> None:
    """CD-109: SIGTERM while jobs are being launched. What was begun is finished or taken over: each runs exactly once."""
    story = Story(Behaviour(starts_after=SECOND, runs_for=SECOND))
    names = [f"s{number}" for number in range(5)]
    for name in names:
        story.apply(name, EACH_MINUTE)
    due = story.now // MINUTE * MINUTE + MINUTE
    story.run(due - 1 - story.now)
    number = count()

    def this_one(each: Effect) -> bool:
        return isinstance(each, Commit | Write | Submit) and next(number) == effect

    story.hold_back(this_one, answer_only=effect % 2 == 1)
    story.run(2)
    story.drain()
    story.run(10)
    assert story.holds_something
    story.release()
    story.run(SECOND)
    assert len(story.all_asked(Drained)) == 1
    story.as_usual()
    story.new_actor()
    story.run(30 * SECOND)
    began: list[Any] = [order.context["nominal"] for order in story.started]
    assert began == [format_instant(due)] * len(names)
    assert {entry[1] for entry in story.ledger()} == set(names)
    assert {entry[0] for entry in story.ledger()} == {"launched"}
