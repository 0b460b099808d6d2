"""What an update has let finish waits for its own constraints; whether what comes behind it waits as well is overlap's to say (SEMANTICS 4, 7.2)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, at_most, on_data
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.story_bench import Story, brought

NIGHT: Doc = {"type": "time_window", "opens": "22:00", "closes": "23:00"}
GROUP = at_most(1, "group", group="warehouse")


def a_story(*constraints: Doc, overlap: str = "allow") -> Story:
    """A job waits for the night as an update takes the window away, and has it finish as it was made."""
    story = Story(Behaviour(starts_after=10, runs_for=5 * MINUTE))
    story.apply("nightly", on_data(), NIGHT, *constraints, overlap=overlap)
    story.run(SECOND)
    story.data("old", apart=SECOND)
    story.apply("nightly", on_data(), *constraints, overlap=overlap, on_update="finish_old")
    story.run(SECOND)
    story.passes_over_routine = True
    return story


def told(story: Story) -> list[str]:
    """Returns of which data the programs were told, in the order in which they began."""
    return ["+".join(brought(story, number)) for number in range(len(story.started))]


@pytest.mark.parametrize("crashes", [False, True])
def test_given_overlap_allow_then_what_comes_does_not_wait_for_the_window_of_before(*, crashes: bool) -> None:
    """It waited for 20 hours, behind a window that its own version does not know."""
    story = a_story()
    if crashes:
        story.crash()
    story.data("new", apart=15 * SECOND)
    assert told(story) == ["new"]
    story.until("22:01")
    assert told(story) == ["new", "old"]


def test_given_overlap_queue_then_what_comes_goes_behind_it() -> None:
    story = a_story(overlap="queue")
    story.data("new", apart=15 * SECOND)
    assert told(story) == []
    story.until("22:11")
    assert told(story) == ["old", "new"]


def test_given_a_limit_that_they_share_then_those_that_come_have_their_turns_in_it() -> None:
    story = a_story(GROUP)
    story.data("n1", "n2", "n3", apart=SECOND)
    assert told(story) == ["n1"]
    story.run(16 * MINUTE)
    assert told(story) == ["n1", "n2+n3"]
    story.until("22:01")
    assert told(story)[2:] == ["old"]
