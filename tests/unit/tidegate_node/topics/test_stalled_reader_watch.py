"""A reading that the client has forgotten is begun again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_node.topics.offset_gaps import LogGaps
from tidegate_node.topics.stalled_reader_watch import ReadingWatch
from tidegate_ports.bus import Topic

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


def watch(around: Surroundings) -> ReadingWatch:
    return ReadingWatch(
        around.facts, around.bus, around.bus, around.bus, LogGaps(around.bus, around.clock), around.notes
    )


async def test_given_ends_then_what_stands_before_those_of_the_topic_that_is_read_is_begun_again(
    around: Surroundings,
) -> None:
    requests = around.facts.requests
    around.bus.ends_by_topic[requests.name] = EndOffsets({f"{requests.id}/0": 7, f"{requests.id}/3": 0})
    around.bus.stands = {0: 5}

    await watch(around).look()

    assert around.bus.ends_shown == [{0: 7, 3: 0}]
    assert around.bus.calls == [("restart", 0, 5)]


async def test_given_only_marks_of_transactions_before_the_end_then_it_does_not_stand(around: Surroundings) -> None:
    requests = around.facts.requests
    around.bus.ends_by_topic[requests.name] = EndOffsets({f"{requests.id}/0": 7, f"{requests.id}/3": 4})
    around.bus.stands = {0: 5, 3: 2}
    around.bus.records_at = {0: 7, 3: 3}

    await watch(around).look()

    assert around.bus.calls == [("restart", 3, 2)]


async def test_given_the_topic_was_made_anew_then_its_ends_say_nothing_of_the_one_that_is_read(
    around: Surroundings,
) -> None:
    around.bus.ends_by_topic[around.facts.requests.name] = EndOffsets({f"{'ef' * 16}/0": 7})

    await watch(around).look()

    assert around.bus.ends_shown == [{}]


async def test_given_the_brokers_do_not_answer_then_nothing_is_restarted(around: Surroundings) -> None:
    requests = around.facts.requests
    around.bus.log_ends = Unavailable("broker")
    around.bus.stands = {0: 5}

    await watch(around).look()
    around.bus.ends_by_topic[requests.name] = EndOffsets({f"{requests.id}/0": 7})
    around.bus.records_at = Unavailable("broker")
    await watch(around).look()

    assert around.bus.calls == []


async def test_given_other_topics_that_are_read_then_what_stands_of_them_is_begun_again_as_well(
    around: Surroundings,
) -> None:
    """A reader of events that asked a former leader for ever was told of by the watchdog alone, until somebody restarted its node."""
    events, orders = Topic("tidegate.events", "cd" * 16, 4), Topic("orders", "ef" * 16, 2)
    around.bus.read = [events, orders]
    around.bus.ends_by_topic[around.facts.requests.name] = EndOffsets({})
    around.bus.ends_by_topic[events.name] = EndOffsets({f"{events.id}/1": 9, f"{'00' * 16}/2": 9})
    around.bus.ends_by_topic[orders.name] = EndOffsets({f"{orders.id}/0": 4, f"{orders.id}/1": 4})
    around.bus.stands_of_topics = {events.name: {1: 5}, orders.name: {0: 2, 1: 3}}
    around.bus.records_at = {1: 4}

    await watch(around).look()

    assert around.bus.ends_shown == [{}, {1: 9}, {0: 4, 1: 4}]
    assert around.bus.calls == [("restart", "tidegate.events", 1, 5), ("restart", "orders", 0, 2)], "the rest is a mark"


async def test_given_an_open_transaction_then_what_stands_before_it_is_not_begun_again(around: Surroundings) -> None:
    """A restart, and then another client for all of the topic, came every minute, and neither reads behind an open transaction."""
    requests = around.facts.requests
    around.bus.ends_by_topic[requests.name] = EndOffsets({f"{requests.id}/0": 9, f"{requests.id}/1": 9})
    around.bus.stable_by_topic[requests.name] = EndOffsets({f"{requests.id}/0": 5, f"{requests.id}/1": 9})
    await watch(around).look()
    assert around.bus.ends_shown == [{0: 5, 1: 9}]


async def test_given_only_marks_before_an_open_transaction_then_the_reading_does_not_stand(
    around: Surroundings,
) -> None:
    requests = around.facts.requests
    around.bus.ends_by_topic[requests.name] = EndOffsets({f"{requests.id}/0": 9})
    around.bus.stable_by_topic[requests.name] = EndOffsets({f"{requests.id}/0": 7})
    around.bus.stands, around.bus.records_at = {0: 5}, {0: 7}
    await watch(around).look()
    assert around.bus.calls == []
