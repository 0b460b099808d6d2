"""CDAP's user stories US-07 to US-11 as their rows state them: windows, joins, chunks, frequent feeds, so much or so long."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, SECOND, Doc, all_of, on_data
from tests.support.harness.story_bench import QuietStory, Story, brought

NIGHT: Doc = {"type": "time_window", "opens": "22:00", "closes": "06:00"}
ONCE_A_DAY: Doc = {"type": "rate", "max": 1, "per": "1d"}
GIGABYTE = 1_000_000_000


def test_us_07_given_once_a_day_within_the_night_then_it_runs_as_the_window_opens_and_not_again() -> None:
    """US-07: once a day within 22-06."""
    story = QuietStory()
    story.apply("daily", {"type": "cron", "expression": "0 12 * * *"}, NIGHT, ONCE_A_DAY)
    story.until("12:00", day=1)
    assert [story.since_noon(at) for at in story.began()] == [pytest.approx(10, abs=0.001)]


@pytest.mark.parametrize(
    ("comes", "day", "begins"),
    [
        pytest.param("21:00", 0, 10.0, id="at 21:00 waits to 22:00"),
        pytest.param("05:59", 1, 17.983, id="at 05:59 starts at once"),
        pytest.param("06:00", 1, 34.0, id="at 06:00 is the next night's"),
        pytest.param(None, 0, None, id="no data, no run"),
    ],
)
def test_us_07_given_only_if_there_is_new_data_then_it_waits_for_the_window(
    comes: str | None, day: int, begins: float | None
) -> None:
    """US-07: sometimes only if there is new data."""
    story = QuietStory()
    story.until("12:00")
    story.apply("nightly", on_data(), NIGHT, ONCE_A_DAY)
    if comes is not None:
        story.until(comes, day)
        story.data("d1")
    story.until("12:00", day=2)
    assert [story.since_noon(at) for at in story.began()] == (
        [] if begins is None else [pytest.approx(begins, abs=0.001)]
    )


def test_us_07_given_two_batches_in_one_night_then_there_is_one_run_in_it() -> None:
    """US-07: a rate of one a day; the second batch is the next night's."""
    story = QuietStory()
    story.until("12:00")
    story.apply("nightly", on_data(), NIGHT, ONCE_A_DAY, pending_timeout="2d")
    story.until("23:00")
    story.data("d1")
    story.until("03:00", day=1)
    story.data("d2")
    story.until("12:00", day=1)
    assert [brought(story)] == [["d1"]]
    assert len(story.started) == 1
    story.until("12:00", day=2)
    assert brought(story, 1) == ["d2"]
    assert [story.since_noon(at) for at in story.began()] == [
        pytest.approx(11, abs=0.001),
        pytest.approx(35, abs=0.001),
    ]


def test_us_08_given_two_of_three_inputs_then_it_runs_after_the_wait_and_is_told_which_is_missing() -> None:
    """US-08: join when all inputs are new, else after waiting an hour."""
    story = QuietStory()
    story.apply("join", all_of(*map(on_data, "abc"), timeout="1h", on_timeout="partial"))
    begin = story.now
    story.data("d1", dataset="a", apart=10 * MINUTE)
    story.data("d1", dataset="b", apart=49 * MINUTE)
    assert story.started == []
    story.run(2 * MINUTE)
    (at,) = story.began()
    assert at - begin == pytest.approx(HOUR, abs=2 * SECOND)
    assert story.started[0].context["missing"] == ["1 of 1 data partitions of c"]
    manifest: Any = story.started[0].context["manifest"]
    assert [row["dataset"] for row in manifest] == ["a", "b"]


def test_us_08_given_all_inputs_then_it_runs_at_once() -> None:
    """US-08: and does not wait."""
    story = QuietStory()
    story.apply("join", all_of(*map(on_data, "abc"), timeout="1h", on_timeout="partial"))
    for dataset in "abc":
        story.data("d1", dataset=dataset, apart=MINUTE)
    assert len(story.started) == 1
    assert story.started[0].context.get("missing", []) == []


def test_us_09_given_chunks_and_a_quiet_period_then_there_is_one_run_after_the_last_of_them() -> None:
    """US-09: 5 chunks in 50 s, quiet for 30 s: a single run 30 s after the last."""
    story = QuietStory()
    story.apply("uploads", {**on_data(), "settle": "30s", "max_settle": "10m"})
    story.data(*(f"chunk-{number}" for number in range(5)), apart=10 * SECOND)
    last = story.now - 10 * SECOND
    story.run(HOUR)
    (at,) = story.began()
    assert at - last == pytest.approx(30 * SECOND, abs=SECOND)
    assert len(brought(story)) == 5


def test_us_09_given_an_endless_trickle_then_it_runs_at_the_longest_wait() -> None:
    """US-09: and an endless trickle runs at the maximum."""
    story = QuietStory()
    story.apply("uploads", {**on_data(), "settle": "30s", "max_settle": "10m"})
    begin = story.now
    story.data(*(f"chunk-{number}" for number in range(70)), apart=10 * SECOND)
    assert story.began()[0] - begin == pytest.approx(10 * MINUTE, abs=11 * SECOND)


def test_us_09_given_a_known_number_of_chunks_then_it_runs_with_the_last_of_them() -> None:
    """US-09: N chunks that are known."""
    story = QuietStory()
    story.apply("uploads", on_data(count=5))
    story.data(*(f"chunk-{number}" for number in range(4)), apart=MINUTE)
    assert story.started == []
    story.data("chunk-4", apart=SECOND)
    assert len(brought(story)) == 5


def test_us_10_given_a_very_frequent_feed_then_it_runs_when_there_is_enough_of_it() -> None:
    """US-10: one event a second for an hour, 600 are enough: 6 runs; a burst of enough bytes starts one at once.

    `make test` has 3 runs of 30 events.
    """
    enough, runs = tier.at_night(600, else_=30), tier.at_night(6, else_=3)
    story = Story()
    sized = {"type": "data_size", "dataset": "raw", "bytes": "1GB"}
    story.apply("clicks", {"type": "any_of", "triggers": [on_data(count=enough), sized]})
    begin = story.now
    story.data(*(f"s-{number}" for number in range(runs * enough)), apart=SECOND, bytes=1_000)
    assert story.now - begin == runs * enough * SECOND
    assert [len(brought(story, number)) for number in range(len(story.started))] == [enough] * runs
    burst = story.now
    story.data("burst", bytes=GIGABYTE)
    story.run(2 * SECOND)
    assert len(story.started) == runs + 1
    assert story.began()[-1] - burst < SECOND


def test_us_11_given_so_much_or_so_long_then_firing_the_one_resets_the_other() -> None:
    """US-11: at least every 4 h, sooner at 100 GB: 4 h after that run, not 4 h after the previous timer."""
    story = QuietStory()
    sized = {"type": "data_size", "dataset": "clicks", "bytes": "100GB", "at_least_every": "4h", "allow_empty": True}
    story.apply("clicks", sized)
    begin = story.now
    story.run(HOUR)
    story.data("h1", dataset="clicks", bytes=100 * GIGABYTE)
    story.run(SECOND)
    burst = story.began()[0]
    assert burst - begin == pytest.approx(HOUR, abs=SECOND)
    story.run(8 * HOUR + MINUTE)
    assert [at - burst for at in story.began()[1:]] == [
        pytest.approx(4 * HOUR, abs=5 * SECOND),
        pytest.approx(8 * HOUR, abs=5 * SECOND),
    ]


@pytest.mark.parametrize("away", [False, True])
def test_us_11_given_a_reminder_amid_a_job_that_waits_then_the_one_behind_it_has_its_turn_after_an_outage(
    *, away: bool
) -> None:
    """The first one, of which nothing was made, stood in the next one's way: the outage over it and the time-out behind it gave up the data
    of which it was to make a job.
    """
    story = Story()
    pairs = all_of(on_data("raw"), on_data("weather"), timeout="6m", at_least_every="4m")
    story.apply("pairs", pairs, {"type": "time_window", "opens": "02:26", "closes": "04:00"})
    story.until("02:15")
    story.data("d1")
    story.data("d1", dataset="weather")
    story.until("02:26")
    state = story.state_of("pairs")
    assert state is not None
    assert state.reminder is None
    story.data("d2")
    story.run(10 * SECOND)
    if away:
        story.away(10 * MINUTE)
    story.until("02:40")
    assert [list(brought(story, number)) for number in range(2)] == [["d1"], ["d2"]]
    assert {word for word in story.words("pairs") if word.startswith("expired")} == set()
