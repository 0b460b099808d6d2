"""Topics of sources that are gone, grow or are made anew: what is new counts whole, and nothing twice (decision 19)."""

from __future__ import annotations

import pytest

from tests.support.builders import SECOND, an_apply
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.source_bench import (
    TOPIC,
    WAITS,
    a_source_apply,
    a_source_delete,
    ask,
    counted,
    lay,
    positions,
    produce,
)
from tidegate_core.engine.actor_inputs import OffsetOutOfRange
from tidegate_core.ingest.topic_follower import ASK_AGAIN_MS
from tidegate_core.ownership.cluster_object_watch import CHECK_MS
from tidegate_core.rows.effects import EndOffsets, ReadEndOffsets, WakeUp


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(behaviour=Behaviour(starts_after=None))
    made.create_topic(TOPIC)
    made.run(SECOND)
    return made


def test_given_a_topic_that_is_gone_then_it_is_looked_for_each_minute_and_found_when_it_is_back(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    bench.topics.clear()
    bench.crash()
    bench.run(SECOND)
    first = len(bench.asked)
    bench.run(10 * ASK_AGAIN_MS)
    looks = [each for each in bench.asked[first:] if each == ReadEndOffsets(TOPIC, may_be_missing=True)]
    assert 9 <= len(looks) <= 10
    bench.create_topic(TOPIC, 1, "d" * 32)
    produce(bench, "d1")
    bench.run(ASK_AGAIN_MS + 2 * CHECK_MS)
    assert counted(bench) == 1


def test_given_a_topic_that_grows_or_is_made_anew_then_what_is_new_counts_whole(bench: ActorHarness) -> None:
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    produce(bench, "d1")
    bench.create_topic(TOPIC, 2)
    produce(bench, "d2", topic_partition=1)
    bench.run(ASK_AGAIN_MS + 2 * CHECK_MS)
    assert counted(bench) == 2
    bench.logs.pop((TOPIC, 0))
    bench.logs.pop((TOPIC, 1))
    bench.create_topic(TOPIC, 1, "d" * 32)
    produce(bench, "d3")
    bench.run(ASK_AGAIN_MS + 2 * CHECK_MS)
    assert counted(bench) == 3
    assert positions(bench, "d" * 32) == [1]


@pytest.mark.parametrize("stale_answers", [0, 2], ids=["known", "some brokers tell of the old one"])
def test_given_a_topic_made_anew_and_longer_than_before_then_none_of_it_moves_the_old_position_and_it_counts_once(
    bench: ActorHarness, stale_answers: int
) -> None:
    """The client reads on in it from the old offset: found with a real broker, when it was filled within 100 ms.

    Records without an id of their own counted twice then: their place, with the topic's id, is their identity.
    """
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    produce(bench, "d1", "d2")
    bench.logs.pop((TOPIC, 0))
    bench.create_topic(TOPIC, 1, "d" * 32)
    old = EndOffsets({f"{'c' * 32}/0": 2})
    bench.answer_with(lambda effect: effect == ReadEndOffsets(TOPIC, may_be_missing=True), old, stale_answers)
    lay(bench, "e1", "e2", "e3")
    bench.hand_over(TOPIC, 0, 2)  # Where the client stood in the old one.
    bench.run((stale_answers + 1) * CHECK_MS)
    assert positions(bench) == [2]
    assert positions(bench, "d" * 32) == [3]
    assert [row["counts"] for row in bench.rows("E#")] == [[5]]
    assert [each.fields["offset"] for each in bench.notices("topic_made_anew")] == [2]


@pytest.mark.parametrize("made_anew", [True, False], ids=["the topic too", "the source alone"])
def test_given_a_source_made_anew_and_a_reader_of_the_topic_of_before_it_then_what_it_still_finds_is_no_event(
    bench: ActorHarness, made_anew: bool
) -> None:
    """Simulation, seed 777009: its holder stood still from the delete until after the apply, and knew of neither."""
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    produce(bench, "d1")
    bench.answer_with(lambda effect: isinstance(effect, WakeUp) and effect.controls, None, times=99)
    ask(bench, a_source_delete())
    lay(bench, "d2", "d3")
    left = bench.arrived(TOPIC, 0, 1)
    if made_anew:
        bench.logs.pop((TOPIC, 0))
        bench.create_topic(TOPIC, 1, "d" * 32)
    assert ask(bench, a_source_apply(request_id="src-2"))["status"] == "accepted"
    assert bench.notices("topic_left") == []
    bench.give(left)
    bench.run(SECOND)
    assert counted(bench) == 1
    if made_anew:
        lay(bench, "e1")
    else:
        lay(bench, "d4")
        bench.hand_over(TOPIC, 0, 3)
    bench.run(ASK_AGAIN_MS + 2 * CHECK_MS)
    assert counted(bench) == 2


def test_given_a_position_that_is_gone_then_the_topic_is_asked_about_at_once(bench: ActorHarness) -> None:
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    produce(bench, "d1", "d2")
    bench.logs.pop((TOPIC, 0))
    bench.create_topic(TOPIC, 1, "d" * 32)
    lay(bench, "e1")
    bench.give(OffsetOutOfRange(TOPIC, 0, 2))
    bench.run(SECOND)
    assert counted(bench) == 3


def test_given_a_topic_that_is_gone_then_activations_are_not_held_up(bench: ActorHarness) -> None:
    ask(bench, a_source_apply())
    bench.topics.clear()
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    assert bench.state_of() is not None
