"""What lay unread in a requests topic that was made anew is expected of nobody, and comes from nobody."""

from __future__ import annotations

import pytest

from tidegate_core.store.values import Item
from tidegate_testkit.simulation.checks.case import Case
from tidegate_testkit.simulation.checks.messages import check_messages
from tidegate_testkit.simulation.cluster import REQUESTS_DLQ
from tidegate_testkit.simulation.running import run
from tidegate_testkit.simulation.world import World, build

SEED = 2
"""Of a world whose first broken request has its dead letter at the head of a topic partition."""
ANOTHER = "e" * 32


@pytest.fixture(scope="module")
def world() -> World:
    """A calm world at rest."""
    return run(build(SEED, faults=False))


@pytest.fixture
def case(world: World) -> Case:
    return Case(world)


def passed(offset: int, *opened: int) -> Item:
    """A position behind this offset, with dead letters that are open."""
    return {
        "pk": "",
        "sk": "",
        "epoch": 1,
        "map": 1,
        "next": offset + 1,
        "page": "-",
        "last_append_time": 0,
        "open": [*opened],
    }


def told(case: Case, words: str) -> bool:
    return any(words in each for each in check_messages(case))


def test_given_a_message_whose_record_lay_unread_in_a_topic_that_is_gone_then_it_may_be_missing_and_may_not_come(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = case.world.senders.letters
    letter = next(
        letters[each.message]
        for each in case.record.deliveries
        if each.message in letters and len(letters[each.message].positions) == 1
    )
    gone = letter.positions[0]._replace(topic_id=ANOTHER)
    monkeypatch.setattr(letter, "positions", [gone])
    assert told(case, f"I8: {letter.name} was delivered under 1 ids, 0 would be right")
    left = [each for each in case.record.deliveries if each.message != letter.name]
    monkeypatch.setattr(case.record, "deliveries", left)
    assert not told(case, f"I8: {letter.name}")
    monkeypatch.setattr(case.world.cluster.store.memory, "look", lambda key: passed(gone.offset))
    assert told(case, f"I8: {letter.name}, due at")


def test_given_a_broken_request_that_was_passed_in_a_topic_that_is_gone_then_only_its_open_dead_letter_may_be_missing(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    senders, topic = case.world.senders, case.world.cluster.broker.topics[REQUESTS_DLQ]
    number, places = next(iter(senders.broken_at.items()))
    gone = places[0]._replace(topic_id=ANOTHER)
    monkeypatch.setattr(senders, "broken_at", {**senders.broken_at, number: [gone]})
    monkeypatch.setattr(topic, "logs", [topic.logs[0][1:], *topic.logs[1:]])
    monkeypatch.setattr(case.world.cluster.store.memory, "look", lambda key: passed(gone.offset))
    assert told(case, "dead letters:")
    monkeypatch.setattr(case.world.cluster.store.memory, "look", lambda key: passed(gone.offset, gone.offset))
    assert not told(case, "dead letters:")
