"""Where logs begin: asked once for many, asked again while nobody answers, void when it is not wanted any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.rows.effects import Unavailable
from tidegate_node.topics.earliest_offsets import EarliestOffsets
from tidegate_ports.bus import BeginOffsets

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


class World:
    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.topic = around.facts.events
        self.started: list[tuple[str, int, int]] = []
        self.facts: list[TopicFacts] = []
        self.beginnings = EarliestOffsets(around.bus, self._start, around.notes, ask_again_s=0.0)

    def _start(self, topic: TopicFacts, topic_partition: int, offset: int) -> None:
        self.started.append((topic.name, topic_partition, offset))
        self.facts.append(topic)

    def answer(self, *answers: dict[int, int] | Unavailable) -> None:
        self.around.bus.log_begins = [
            each
            if isinstance(each, Unavailable)
            else BeginOffsets({f"{self.topic.id}/{number}": offset for number, offset in each.items()})
            for each in answers
        ]


@pytest.fixture
def world(around: Surroundings) -> World:
    return World(around)


async def test_given_many_topic_partitions_then_one_question_serves_them_all(world: World, until: Any) -> None:
    world.answer({number: 10 * number for number in range(8)})

    for number in range(8):
        world.beginnings.find(world.topic, number)

    await until(lambda: len(world.started) == 8, "all of them")
    assert world.started == [(world.topic.name, number, 10 * number) for number in range(8)]
    assert world.around.bus.begins_asked == [world.topic.name]


async def test_given_one_that_comes_later_then_it_is_asked_for_anew(world: World, until: Any) -> None:
    world.answer({1: 5}, {1: 5, 2: 6})
    world.beginnings.find(world.topic, 1)
    await until(lambda: world.started, "the first")

    world.beginnings.find(world.topic, 2)

    await until(lambda: len(world.started) == 2, "the second")
    assert world.started[1] == (world.topic.name, 2, 6)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(Unavailable("broker: no answer"), id="no answer"),
        pytest.param({}, id="a topic of another id, or not grown yet"),
    ],
)
async def test_given_no_usable_answer_then_it_says_so_and_asks_again(
    world: World, until: Any, first: dict[int, int] | Unavailable
) -> None:
    world.answer(first, {1: 5})

    world.beginnings.find(world.topic, 1)

    await until(lambda: world.started, "the answer")
    assert world.started == [(world.topic.name, 1, 5)]
    assert world.around.notes.names() == ["waiting_for"]


async def test_given_a_bug_in_the_question_then_it_is_said_and_asked_again(
    world: World, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.answer({1: 5})
    answers = world.around.bus.begin_offsets
    failures = [RuntimeError("a bug")]

    async def fails_once(topic: str) -> BeginOffsets | Unavailable:
        if failures:
            raise failures.pop()
        return await answers(topic)

    monkeypatch.setattr(world.around.bus, "begin_offsets", fails_once)
    world.beginnings.find(world.topic, 1)

    await until(lambda: world.started, "the answer")
    assert world.around.notes.names() == ["task_failed", "waiting_for"]


async def test_given_all_are_forgotten_then_nothing_starts_and_a_later_wish_is_asked_anew(
    world: World, until: Any
) -> None:
    world.answer({1: 5, 2: 6})
    world.beginnings.find(world.topic, 1)
    await asyncio.sleep(0)

    world.beginnings.forget(world.topic.name, 1)
    world.beginnings.find(world.topic, 2)

    await until(lambda: world.started, "the second")
    assert world.started == [(world.topic.name, 2, 6)]


async def test_given_two_holders_of_which_one_waits_for_the_topic_of_before_then_the_other_gets_the_new_one(
    world: World, until: Any
) -> None:
    """And the number of its topic partitions with it: it may have grown."""
    old = TopicFacts(world.topic.name, "ef" * 16, 1)
    world.answer({1: 5})
    world.beginnings.find(old, 0)

    world.beginnings.find(world.topic, 1)

    await until(lambda: world.started, "the new one")
    assert world.started == [(world.topic.name, 1, 5)]
    assert world.facts == [world.topic]
    world.beginnings.forget(old.name, 0)
