"""Whether a topic was made anew is asked of the brokers, and believed at the second look."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_kafka.consumer import topic_recreation
from tidegate_kafka.consumer.topic_recreation import RecreationDetector
from tidegate_ports.bus import BeginOffsets, Topic, Topics

FORMER, NEXT = Topic("lake.commits", "old", 4), Topic("lake.commits", "new", 4)
OTHER = Topic("tidegate.events", "events", 8)


class Brokers(Topics):
    def __init__(self) -> None:
        self.answer: Sequence[Topic] | Unavailable | Exception = [FORMER, OTHER]
        self.asked: list[list[str]] = []
        self.refused = ""

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        self.asked.append([*names])
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, Unavailable):
            return self.answer
        if self.refused in names:
            return Unavailable(f"{self.refused}: not authorized")
        return {topic.name: topic for topic in self.answer if topic.name in names}

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        raise NotImplementedError

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        raise NotImplementedError

    async def begin_offsets(self, topic: str) -> BeginOffsets | Unavailable:
        raise NotImplementedError


class World:
    def __init__(self) -> None:
        self.brokers = Brokers()
        self.told: list[str] = []
        self.notices: list[str] = []
        self.found, self.failed = asyncio.Event(), asyncio.Event()
        self.watch = RecreationDetector(
            self.brokers,
            self.tell,
            loop=asyncio.get_running_loop(),
            notices=self.notice,
        )

    def notice(self, event: str, **_: object) -> None:
        self.notices.append(event)
        self.failed.set()

    def tell(self, topic: str) -> None:
        self.told.append(topic)
        self.found.set()

    async def look(self, *answers: Sequence[Topic] | Unavailable) -> None:
        for self.brokers.answer in answers:
            await self.watch.look()


@pytest.fixture
async def world() -> World:
    world = World()
    world.watch.know(FORMER)
    world.watch.know(OTHER)
    return world


async def test_given_nothing_is_read_then_nobody_is_asked() -> None:
    world = World()
    await world.look([])
    assert world.brokers.asked == []


async def test_given_the_topics_that_it_knew_then_nothing_is_told(world: World) -> None:
    await world.look([FORMER, OTHER], [FORMER, OTHER], [FORMER, OTHER])
    assert world.brokers.asked == [[FORMER.name, OTHER.name]] * 3
    assert world.told == []


async def test_given_another_one_under_the_name_then_it_is_told_once_and_at_the_second_look(world: World) -> None:
    await world.look([NEXT, OTHER])
    assert world.told == []
    await world.look([NEXT, OTHER], [NEXT, OTHER], [NEXT, OTHER])
    assert world.told == [NEXT.name]


async def test_given_it_is_made_anew_once_more_between_two_looks_then_the_last_one_is_looked_at_twice(
    world: World,
) -> None:
    await world.look([NEXT], [Topic(NEXT.name, "newer", 4)])
    assert world.told == []
    await world.look([Topic(NEXT.name, "newer", 4)])
    assert world.told == [NEXT.name]


async def test_given_it_is_gone_for_a_while_then_it_is_told_once_it_is_there_again(world: World) -> None:
    await world.look([OTHER], [OTHER], [NEXT], [NEXT])
    assert world.told == [NEXT.name]


async def test_given_brokers_that_tell_the_former_one_once_more_then_nothing_is_told(world: World) -> None:
    await world.look([NEXT], [FORMER], [NEXT], [FORMER])
    assert world.told == []


async def test_given_it_is_read_from_elsewhere_in_the_new_one_then_what_the_client_knew_still_counts(
    world: World,
) -> None:
    world.watch.know(NEXT)
    await world.look([NEXT], [NEXT])
    assert world.told == [NEXT.name]


async def test_given_no_answer_then_nothing_is_told(world: World) -> None:
    await world.look(Unavailable("away"), Unavailable("away"))
    assert world.told == []


async def test_given_a_topic_that_may_not_be_read_any_more_then_another_one_is_told_all_the_same(world: World) -> None:
    world.brokers.refused = OTHER.name
    await world.look([NEXT, OTHER], [NEXT, OTHER])
    assert world.told == [NEXT.name]


async def test_given_a_round_that_fails_then_the_next_one_looks_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_recreation, "LOOK_EVERY_S", 0.001)
    world.brokers.answer = ValueError("a bug")
    world.watch.start()
    world.watch.start()
    async with asyncio.timeout(60):
        await world.failed.wait()
        world.brokers.answer = [NEXT]
        await world.found.wait()
    world.watch.stop()
    world.watch.stop()
    assert (set(world.notices), world.told) == ({"kafka_topic_unknown"}, [NEXT.name])
