"""In which topic records lie: asked after they were read, so that a name that means another topic by then is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_kafka.consumer import topic_ids
from tidegate_kafka.consumer.topic_ids import ABSENT_ANSWERS_MAX, TopicIds
from tidegate_ports.bus import BeginOffsets, Topic, Topics

NAME = "lake.commits"


class Brokers(Topics):
    """Answers with what `answers` says, in turn; the last one holds."""

    def __init__(self, *answers: str | Unavailable | Exception | None) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        await self.may_answer.wait()
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Unavailable):
            return answer
        return {} if answer is None else {NAME: Topic(NAME, answer, 1)}

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        raise NotImplementedError

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        raise NotImplementedError

    async def begin_offsets(self, topic: str) -> BeginOffsets | Unavailable:
        raise NotImplementedError


class Handed:
    def __init__(self, brokers: Brokers) -> None:
        self.got: list[tuple[str, str | None]] = []
        self.notices: list[str] = []
        self.changed = asyncio.Event()
        self.bugs = 0
        """So often what is handed on is not taken."""
        self.ids: TopicIds[str] = TopicIds(
            brokers, self._take, loop=asyncio.get_running_loop(), notices=lambda event, **_: self.notices.append(event)
        )

    def _take(self, found: str, topic_id: str | None) -> None:
        if self.bugs:
            self.bugs -= 1
            raise ValueError("a bug")
        self.got.append((found, topic_id))
        self.changed.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.got) < count:
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ids, "ASK_GAP_S", 0)
    monkeypatch.setattr(topic_ids, "ASK_AGAIN_S", 0)


async def test_given_records_then_they_are_handed_on_in_order_with_the_id_that_was_told_after_they_were_read() -> None:
    brokers = Brokers("old", "new")
    brokers.may_answer.clear()
    handed = Handed(brokers)
    handed.ids.put(NAME, "r1")
    await asyncio.sleep(0)
    handed.ids.put(NAME, "r2")
    assert handed.got == []
    brokers.may_answer.set()
    await handed.until(2)
    assert handed.got == [("r1", "old"), ("r2", "new")]


async def test_given_many_records_before_the_question_then_one_question_serves_them_all() -> None:
    brokers = Brokers("id")
    handed = Handed(brokers)
    for number in range(50):
        handed.ids.put(NAME, str(number))
    await handed.until(50)
    assert brokers.asked == 1


@pytest.mark.parametrize("silence", [Unavailable("away"), ValueError("a bug")], ids=["no answer", "a bug"])
async def test_given_brokers_that_do_not_answer_then_the_records_wait_for_them(
    silence: Unavailable | Exception,
) -> None:
    handed = Handed(Brokers(*[silence] * 30, "id"))
    handed.ids.put(NAME, "r1")
    await handed.until(1)
    assert handed.got == [("r1", "id")]
    assert set(handed.notices) <= {"kafka_topic_unknown"}


async def test_given_records_that_are_not_taken_then_they_are_handed_on_again_and_nothing_is_skipped() -> None:
    """Found in review: one exception ended the task, and what was read of that topic from then on waited for ever."""
    handed = Handed(Brokers("id"))
    handed.bugs = 3
    handed.ids.put(NAME, "r1")
    handed.ids.put(NAME, "r2")
    await handed.until(2)
    handed.ids.put(NAME, "r3")
    await handed.until(3)
    assert handed.got == [("r1", "id"), ("r2", "id"), ("r3", "id")]
    assert handed.notices == ["kafka_records_not_taken"] * 3


async def test_given_a_task_that_ends_by_a_bug_of_its_own_then_the_next_record_is_served_all_the_same() -> None:
    handed = Handed(Brokers(ValueError("a bug"), "id"))
    told = asyncio.Event()

    def refuse(*_: object, **__: object) -> None:
        told.set()
        raise ValueError("no notices either")

    handed.ids._notices = refuse
    handed.ids.put(NAME, "r1")
    async with asyncio.timeout(60):
        await told.wait()
    await asyncio.sleep(0)
    handed.ids.put(NAME, "r2")
    await handed.until(1)
    assert handed.got == [("r2", "id")]


async def test_given_a_topic_that_is_gone_for_good_then_what_was_read_lay_in_it() -> None:
    brokers = Brokers(None)
    handed = Handed(brokers)
    handed.ids.put(NAME, "r1")
    await handed.until(1)
    assert handed.got == [("r1", None)]
    assert brokers.asked == ABSENT_ANSWERS_MAX


async def test_given_a_stop_then_nothing_more_is_handed_on() -> None:
    brokers = Brokers("id")
    brokers.may_answer.clear()
    handed = Handed(brokers)
    handed.ids.put(NAME, "r1")
    await asyncio.sleep(0)
    handed.ids.stop()
    brokers.may_answer.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert handed.got == []


async def test_given_records_right_behind_a_stop_then_those_that_follow_are_not_handed_on_before_them() -> None:
    """Found in review: as the former task ended it took the next one for itself, and a third asked beside that."""
    brokers = Brokers("id")
    brokers.may_answer.clear()
    handed = Handed(brokers)
    handed.ids.put(NAME, "r1")
    await asyncio.sleep(0)
    handed.ids.stop()
    for number in range(2, 5):
        handed.ids.put(NAME, f"r{number}")
        for _ in range(5):
            await asyncio.sleep(0)
    assert brokers.asked == 2
    brokers.may_answer.set()
    await handed.until(3)
    assert handed.got == [("r2", "id"), ("r3", "id"), ("r4", "id")]
