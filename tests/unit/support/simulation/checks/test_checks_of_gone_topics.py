"""What lay unread in a requests topic that was made anew is expected of nobody, and comes from nobody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from tests.simulation.checks.case import Case, position_pk
from tests.simulation.checks.events import check_events
from tests.simulation.checks.messages import check_messages
from tests.simulation.users.message_senders import broken_request
from tests.simulation.world.cluster import EVENTS_DLQ, REQUESTS_DLQ
from tests.simulation.world.observations import Author
from tests.simulation.world.timeline import START
from tidegate_core.rows.store_operations import Item

ANOTHER = "e" * 32
GONE_AT: Final = 20_000
CLOSER = Author("mine", 3, 9)


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


def without(logs: list[list[Any]], number: int) -> list[list[Any]]:
    """Returns the logs without the dead letter of this broken request."""
    return [[record for record in log if record.value != broken_request(number)] for log in logs]


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
    monkeypatch.setattr(topic, "logs", without(topic.logs, number))
    monkeypatch.setattr(case.world.cluster.store.memory, "look", lambda key: passed(gone.offset))
    assert told(case, "dead letters:")
    monkeypatch.setattr(case.world.cluster.store.memory, "look", lambda key: passed(gone.offset, gone.offset))
    assert not told(case, "dead letters:")


@pytest.mark.parametrize(
    ("closed_at", "handed", "is_lost"),
    [
        pytest.param(GONE_AT + 5_000, [], False, id="nobody had it any more"),
        pytest.param(GONE_AT + 5_000, [(1_500, "mine", 3)], True, id="the closer had it"),
    ],
)
def test_given_an_open_dead_letter_that_a_successor_closed_then_it_may_be_missing_where_that_one_could_read_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch, closed_at: int, handed: list[tuple[int, str, int]], *, is_lost: bool
) -> None:
    """Seed 28005238: its holder fell while the dead letters' topic was away, the record went with its own, the next one said so."""
    senders, topic = case.world.senders, case.world.cluster.broker.topics[REQUESTS_DLQ]
    number, places = next(iter(senders.broken_at.items()))
    gone = places[0]._replace(topic_id=ANOTHER)
    pk = position_pk(gone)
    monkeypatch.setattr(senders, "broken_at", {**senders.broken_at, number: [gone]})
    monkeypatch.setattr(topic, "logs", without(topic.logs, number))
    monkeypatch.setattr(case.world.cluster.store.memory, "look", lambda key: passed(gone.offset))
    monkeypatch.setattr(
        case, "swarm", replace(case.swarm, topics=replace(case.swarm.topics, requests_recreated=(GONE_AT, 0)))
    )
    raised = [(START + 50, CLOSER._replace(number=1)), (START + 1_000, CLOSER._replace(number=5))]
    monkeypatch.setitem(case.record.taken, pk, raised)
    monkeypatch.setitem(case.record.closed, (pk, gone.offset), (START + closed_at, CLOSER))
    monkeypatch.setitem(case.record.handed, (pk, gone.offset), [(START + at, *who) for at, *who in handed])
    assert told(case, f"dead letters: broken request {number} has none") == is_lost


@pytest.mark.parametrize("is_gone", [True, False])
def test_given_what_is_no_event_then_only_a_topic_that_is_gone_excuses_that_it_has_no_dead_letter(
    case: Case, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    producers, topic = case.world.producers, case.world.cluster.broker.topics[EVENTS_DLQ]
    assert producers.broken_at
    assert not [each for each in check_events(case) if "dead letters" in each]
    value, places = next(iter(producers.broken_at.items()))
    monkeypatch.setattr(topic, "logs", [[each for each in log if each.value != value] for log in topic.logs])
    if is_gone:
        monkeypatch.setattr(producers, "broken_at", {value: [each._replace(topic_id=ANOTHER) for each in places]})
    assert any(each.startswith(f"dead letters: broken event {value!r}") for each in check_events(case)) is not is_gone


def test_given_a_record_that_was_read_then_the_judge_knows_to_whom_it_was_handed(case: Case) -> None:
    for place in (each for places in case.world.senders.broken_at.values() for each in places):
        pk = position_pk(place)
        owners = {(author.owner, author.tenure) for _, author in case.record.taken[pk]}
        assert {(owner, tenure) for _, owner, tenure in case.record.handed[pk, place.offset]} <= owners
        assert case.record.handed[pk, place.offset]


def test_given_an_event_that_some_schedules_had_when_its_topic_went_then_only_that_excuses_that_another_never_counted_it(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 20540896: the record was handed to half of its schedules, and a repeat counts for none of the others."""
    case.entries_of = {}
    announced = case.world.producers.announced
    lost = [each for each in check_events(case) if "never counted" in each and each.split()[-1] in announced]
    place = announced[lost[0].split()[-1]].records[0]
    halfway = {**passed(place.offset), "next": place.offset, "page": "another schedule"}
    monkeypatch.setattr(case.world.cluster.store.memory, "look", lambda key: halfway)
    assert lost[0] not in list(check_events(case))
