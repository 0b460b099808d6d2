"""Jobs of one schedule that wait for different keys: who waits for one keeps nobody from another (SEMANTICS 7.2)."""

from __future__ import annotations

from tests.support.builders import MINUTE, SECOND, Doc, a_request, all_of, at_most, on_data
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.story_bench import Story
from tidegate_core.admission.admit import ASKED_APART, ASKED_TOGETHER
from tidegate_core.rows.effects import LaunchOrder

PAIRS = all_of(on_data("raw"), on_data("weather"), correlate="data_partition")
ONE_OF_A_DAY = at_most(1, "key", key="day ${correlation}")
LONG, SHORT = Behaviour(starts_after=10, runs_for=20 * MINUTE), Behaviour(starts_after=10, runs_for=5 * MINUTE)


def day_of(order: LaunchOrder) -> str:
    return str(order.context["correlation"])


def a_story(*constraints: Doc, short: str = "") -> Story:
    """Each day's runs take twenty minutes; those of one are short."""
    story = Story()
    story.behaves = lambda order: SHORT if day_of(order) == short else LONG
    story.apply("nightly", PAIRS, *constraints, overlap="allow")
    return story


def comes(story: Story, *days: str, time: int = 0) -> None:
    """Data of both kinds come for each day, for the so-many-th time."""
    for day in days:
        story.data(day, event_id=f"raw-{day}-{time}")
        story.data(day, dataset="weather", event_id=f"weather-{day}-{time}")
    story.run(2 * SECOND)


def begun(story: Story) -> list[str]:
    return [day_of(order) for order in story.started]


def all_wait_behind_a_run(story: Story, number: int) -> list[str]:
    """Each of so many days has a run that goes on and a job behind it."""
    days = [f"d{each:02}" for each in range(number)]
    comes(story, *days)
    comes(story, *days, time=1)
    assert begun(story) == days
    return days


def test_given_as_many_jobs_as_stand_in_a_queue_before_other_keys_then_one_whose_key_is_free_goes() -> None:
    """It waited for as long as theirs were taken, and would have expired after its time-out."""
    story = a_story(ONE_OF_A_DAY)
    days = all_wait_behind_a_run(story, ASKED_TOGETHER)
    comes(story, "free")
    assert begun(story) == [*days, "free"]


def test_given_more_keys_than_a_queue_has_places_then_each_gets_its_slot_as_it_comes_back() -> None:
    story = a_story(ONE_OF_A_DAY, short=f"d{ASKED_TOGETHER + 3:02}")
    days = all_wait_behind_a_run(story, ASKED_TOGETHER + 4)
    story.run(5 * MINUTE + 2 * SECOND)
    assert begun(story) == [*days, days[-1]]


def test_given_a_crash_then_the_successor_has_each_wait_for_its_own_key_as_well() -> None:
    story = a_story(ONE_OF_A_DAY, short=f"d{ASKED_TOGETHER + 3:02}")
    days = all_wait_behind_a_run(story, ASKED_TOGETHER + 4)
    story.crash()
    comes(story, "free")
    story.run(5 * MINUTE + 15 * SECOND)
    assert begun(story) == [*days, "free", days[-1]]


def test_given_a_crowd_before_a_limit_that_all_need_then_no_more_stand_in_its_queue_than_before() -> None:
    """Those behind come after them in any case: their rows would cost reads and writes at each look."""
    story = a_story(at_most(1, "group", group="all"), ONE_OF_A_DAY)
    for each in range(3 * ASKED_TOGETHER):
        comes(story, f"d{each:02}")
    assert len(story.started) == 1
    assert len(story.rows("IW#")) == ASKED_TOGETHER


def test_given_more_keys_than_a_look_takes_then_all_have_their_turn_and_nothing_is_left_of_their_queues() -> None:
    story = a_story(ONE_OF_A_DAY)
    days = all_wait_behind_a_run(story, ASKED_APART + 4)
    story.passes_over_routine = True
    story.run(25 * MINUTE)
    assert sorted(begun(story)) == sorted([*days, *days])
    story.request(a_request("delete", request_id="q"))
    story.run(SECOND)
    assert story.rows("IW#") == []
