"""The events topic while it is read: what it grows by, and the one that is made anew instead of it, are found without a restart (I3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import EVENTS, EVENTS_ID, MINUTE, SECOND, Doc, a_spec, all_of, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.engine.actor_inputs import Drain, LogRecord, OffsetOutOfRange
from tidegate_core.evidence.watermark import PATIENCE_MS
from tidegate_core.ingest.topic_follower import ASK_AGAIN_MS
from tidegate_core.ingest.topic_watch import CHECK_MS
from tidegate_core.rows.dead_letter import LetterId, read_letter
from tidegate_core.rows.effects import (
    Commit,
    Effect,
    EndOffsets,
    ReadEndOffsets,
    ReadRange,
    StartReading,
    StopReading,
    Unavailable,
)
from tidegate_core.rows.store_operations import Item

ANOTHER_ID = "d" * 32
WAITS = a_spec(trigger=on_data(count=1_000))
NOTICED_MS = ASK_AGAIN_MS + 2 * CHECK_MS
SOURCE = {"kind": "source", "namespace": "flights", "name": "landed", "topic": "lake"}


def a_bench(**holding: Any) -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(starts_after=None), **holding)
    bench.run(SECOND)
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    return bench


@pytest.fixture
def bench() -> ActorHarness:
    return a_bench()


def counted(bench: ActorHarness) -> int:
    return sum(number for row in bench.rows("E#") for number in json.loads(str(row["counts"]).replace("'", '"')))


def positions(bench: ActorHarness, topic_id: str = EVENTS_ID) -> dict[int, object]:
    rows: list[Item] = [row for row in bench.rows("TP") if topic_id in str(row["pk"])]
    return {int(str(row["pk"]).rsplit("#", 1)[1]): row["next"] for row in rows}


def made_anew(bench: ActorHarness, *days: str) -> None:
    """Nobody is told; `days` lie in the new one."""
    for number in range(bench.event_topic_partitions):
        bench.logs.pop((EVENTS, number), None)
    bench.create_topic(EVENTS, bench.event_topic_partitions, ANOTHER_ID)
    bench.log(EVENTS, 0).extend(
        LogRecord(offset, bench.now, None, json.dumps(an_event(day)).encode()) for offset, day in enumerate(days)
    )


def asks_for_events(effect: Effect) -> bool:
    return effect == ReadEndOffsets(EVENTS, may_be_missing=True)


def started(bench: ActorHarness) -> list[tuple[str, int]]:
    asked = bench.all_asked(StartReading)
    return [(each.topic_id, each.topic_partition) for each in asked if each.topic == EVENTS]


# -- growth ---------------------------------------------------------------------------------------------------------------


def test_given_a_topic_that_grows_then_what_is_new_is_found_within_a_minute_and_counts_whole(
    bench: ActorHarness,
) -> None:
    bench.event(an_event("d1"))
    bench.event(an_event("d2"), 1)
    bench.run(ASK_AGAIN_MS + CHECK_MS + CHECK_MS // 10)
    assert counted(bench) == 2
    assert positions(bench) == {0: 1, 1: 1}
    assert started(bench) == [(EVENTS_ID, 0), (EVENTS_ID, 1)]
    assert bench.lives == 1


def test_given_a_topic_that_grows_while_it_is_taken_over_then_what_is_new_is_found_a_minute_after_it_was_told_of() -> (
    None
):
    """Seed 39016627: it was told of at 2 s, its position was taken over until 26 s, and it was asked about again a minute after that."""
    bench = ActorHarness()
    bench.hold_back(lambda effect: isinstance(effect, Commit) and EVENTS_ID in effect.transaction.actions[0].key.pk)
    bench.run(ASK_AGAIN_MS // 2)
    bench.event(an_event("d1"), 1)
    bench.release()
    assert started(bench) == [(EVENTS_ID, 0)]
    bench.run(ASK_AGAIN_MS // 2 + CHECK_MS + CHECK_MS // 10)
    assert started(bench) == [(EVENTS_ID, 0), (EVENTS_ID, 1)]


def test_given_a_topic_that_stays_then_it_is_asked_about_once_a_minute(bench: ActorHarness) -> None:
    first = len(bench.asked)
    bench.run(10 * ASK_AGAIN_MS)
    assert 9 <= len([each for each in bench.asked[first:] if asks_for_events(each)]) <= 10


@pytest.mark.parametrize(("number", "new"), [(0, [2, 4]), (1, [3])])
def test_given_one_of_two_holders_then_it_reads_those_that_the_maps_number_gives_it(
    number: int, new: list[int]
) -> None:
    bench = ActorHarness(topic_partitions=2, topic_partition=number, event_topic_partitions=2)
    bench.run(SECOND)
    assert started(bench) == [(EVENTS_ID, number)]
    for each in (2, 3, 4):
        bench.event(an_event(f"d{each}"), each)
    bench.run(NOTICED_MS)
    assert started(bench) == [(EVENTS_ID, each) for each in (number, *new)]
    assert positions(bench) == {number: 0} | dict.fromkeys(new, 1)


def test_given_brokers_that_tell_the_old_number_again_then_what_is_read_stays(bench: ActorHarness) -> None:
    bench.event(an_event("d1"), 1)
    bench.run(NOTICED_MS)
    bench.answer_with(asks_for_events, EndOffsets({f"{EVENTS_ID}/0": 0}), 1)
    bench.run(NOTICED_MS)
    bench.event(an_event("d2"), 1)
    assert counted(bench) == 2
    assert bench.all_asked(StopReading) == []


def test_given_a_former_holder_that_learns_of_growth_late_then_it_raises_nothing() -> None:
    """It would fence the present holder, which has done nothing wrong."""
    former = a_bench()
    present = ActorHarness(beside=former, owner="node-2", behaviour=Behaviour(starts_after=None))
    present.run(SECOND)
    former.log(EVENTS, 1).append(LogRecord(0, former.now, None, json.dumps(an_event("d1")).encode()))
    former.is_member = False
    former.run(NOTICED_MS)
    assert positions(former) == {0: 0}
    assert [each.fields["pk"] for each in former.notices("fenced")] != []
    present.run(NOTICED_MS)
    assert positions(present) == {0: 0, 1: 1}
    assert present.notices("fenced") == []


# -- made anew ------------------------------------------------------------------------------------------------------------


def test_given_a_topic_made_anew_that_nobody_is_told_of_then_it_is_found_within_a_minute_and_counts_whole(
    bench: ActorHarness,
) -> None:
    bench.event(an_event("d1"))
    made_anew(bench, "d2", "d3")
    bench.run(NOTICED_MS)
    assert counted(bench) == 3
    assert positions(bench) == {0: 1}
    assert positions(bench, ANOTHER_ID) == {0: 2}
    assert started(bench) == [(EVENTS_ID, 0), (ANOTHER_ID, 0)]


def test_given_the_same_useless_record_at_the_same_offset_of_the_next_topic_then_its_letter_is_another_one(
    bench: ActorHarness,
) -> None:
    """Found in review: what somebody had done about the former one hid it for 400 days, and a replay of it was `unchanged`."""
    bench.event({})
    made_anew(bench)
    bench.log(EVENTS, 0).append(LogRecord(0, bench.now, None, b"{}"))
    bench.run(NOTICED_MS)
    letters = [
        read_letter(
            LetterId("events", 0, offset),
            sent.at,
            sent.key,
            sent.value,
            tuple((name, text.encode()) for name, text in sent.headers.items()),
        )
        for offset, sent in enumerate(bench.on("tidegate.events.dlq"))
    ]
    assert [(each.offset, each.value) for each in letters] == [(0, b"{}"), (0, b"{}")]
    assert letters[0].origin != letters[1].origin


def test_given_a_position_that_is_gone_then_the_topic_is_asked_about_at_once(bench: ActorHarness) -> None:
    bench.event(an_event("d1"))
    made_anew(bench, "d2")
    bench.give(OffsetOutOfRange(EVENTS, 0, 1))
    bench.run(SECOND)
    assert counted(bench) == 2


@pytest.mark.parametrize("stale_answers", [0, 2], ids=["known", "some brokers tell of the old one"])
def test_given_a_topic_made_anew_and_longer_than_before_then_none_of_it_moves_the_old_position_and_it_counts_once(
    bench: ActorHarness, stale_answers: int
) -> None:
    """The client reads on in it from the old offset."""
    bench.event(an_event("d1"))
    made_anew(bench, "e1", "e2", "e3")
    bench.answer_with(asks_for_events, EndOffsets({f"{EVENTS_ID}/0": 1}), stale_answers)
    bench.hand_over(EVENTS, 0, 1)  # Where the client stood in the old one.
    bench.run((stale_answers + 1) * CHECK_MS + stale_answers * SECOND)
    assert positions(bench) == {0: 1}
    assert positions(bench, ANOTHER_ID) == {0: 3}
    assert counted(bench) == 4
    assert [each.fields["offset"] for each in bench.notices("topic_made_anew")] == [1]


def test_given_a_topic_that_is_there_after_all_then_it_is_read_on_after_a_minute(bench: ActorHarness) -> None:
    """A broker told late of which id the topic was: nothing came of another one, and all brokers tell of this one."""
    bench.event(an_event("d1"))
    bench.give(_of_another_id(bench, an_event("d2")))
    bench.run(ASK_AGAIN_MS - CHECK_MS)
    assert counted(bench) == 1
    bench.run(3 * CHECK_MS)
    assert counted(bench) == 2
    assert positions(bench) == {0: 2}
    assert started(bench) == [(EVENTS_ID, 0), (EVENTS_ID, 0)]


def _of_another_id(bench: ActorHarness, event: Doc) -> Any:
    from tidegate_core.engine.actor_inputs import RecordsArrived

    bench.log(EVENTS, 0).append(LogRecord(1, bench.now, None, json.dumps(event).encode()))
    return RecordsArrived(EVENTS, 0, tuple(bench.log(EVENTS, 0)[1:]), ANOTHER_ID)


def test_given_a_topic_that_is_gone_for_a_while_then_it_is_looked_for_often_and_read_once_it_is_back(
    bench: ActorHarness,
) -> None:
    made_anew(bench, "d1")
    bench.answer_with(asks_for_events, EndOffsets({}), 3)
    bench.give(OffsetOutOfRange(EVENTS, 0, 1))
    bench.run(CHECK_MS)
    assert counted(bench) == 0
    bench.run(3 * CHECK_MS)
    assert counted(bench) == 1


def test_given_a_batch_under_way_then_it_comes_to_its_end_before_the_new_topic_is_read(bench: ActorHarness) -> None:
    """What it hands out lies in inboxes, and counts."""
    bench.hold_back(_is_cursor_move)
    bench.event(an_event("d1"))
    made_anew(bench, "d2")
    bench.give(OffsetOutOfRange(EVENTS, 0, 1))
    bench.run(SECOND)
    assert started(bench) == [(EVENTS_ID, 0)]
    bench.release()
    bench.run(SECOND)
    assert started(bench) == [(EVENTS_ID, 0), (ANOTHER_ID, 0)]
    assert counted(bench) == 2


def _is_cursor_move(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "cursor"


# -- take-over and hand-over ------------------------------------------------------------------------------------------------


def test_given_a_successor_then_it_reads_the_topic_as_it_is_now(bench: ActorHarness) -> None:
    made_anew(bench, "d1")
    bench.event(an_event("d2"), 1)
    bench.crash()
    bench.run(SECOND)
    assert counted(bench) == 2
    assert positions(bench) == {0: 0}


def test_given_brokers_that_do_not_answer_at_a_take_over_then_shards_are_served_and_events_are_read_once_they_do(
    bench: ActorHarness,
) -> None:
    bench.lose(asks_for_events, times=20)
    bench.crash()
    bench.run(SECOND)
    assert bench.actor.is_serving
    bench.event(an_event("d1"))
    assert counted(bench) == 0
    bench.run(20 * SECOND)
    assert counted(bench) == 1


def test_given_a_users_topic_that_does_not_answer_then_events_do_not_wait_for_it(bench: ActorHarness) -> None:
    bench.create_topic("lake")
    spec = {**SOURCE, "event": {"dataset": "raw", "partition": {"pointer": "/day"}}}
    bench.request({"id": "s-1", "type": "source.apply", "namespace": "flights", "name": "landed", "spec": spec})
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, ReadEndOffsets) and effect.topic == "lake", times=1_000)
    bench.crash()
    bench.run(SECOND)
    bench.event(an_event("d1"))
    assert counted(bench) == 1


def test_given_a_drain_amid_a_take_over_then_no_position_of_events_is_raised_after_it() -> None:
    """It would fence the successor, to which nothing of this holder is left to do."""
    bench = ActorHarness()
    bench.hold_back(lambda effect: isinstance(effect, ReadRange))
    bench.run(SECOND)
    assert not bench.actor.is_serving
    bench.give(Drain())
    bench.release()
    bench.run(NOTICED_MS)
    assert bench.actor.has_ended
    assert positions(bench) == {}


# -- who waits for what nobody reads any more ------------------------------------------------------------------------------


def read_late(trigger: Doc) -> ActorHarness:
    """One topic partition has a record that nobody reads; from the other one come two events 25 minutes apart, at once."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=None), shards=1, event_topic_partitions=2)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger)))
    bench.run(SECOND)
    begun = bench.now
    bench.log(EVENTS, 0).append(a_record(0, bench.now, "y"))
    bench.run(30 * MINUTE)
    bench.log(EVENTS, 1).extend([a_record(0, begun, "x"), a_record(1, begun + 25 * MINUTE, "z")])
    bench.hand_over(EVENTS, 1, 0)
    bench.run(2 * SECOND)
    assert not bench.ledger()
    assert not bench.rows("E#")
    return bench


def a_record(offset: int, at: int, partition: str, dataset: str = "a") -> LogRecord:
    return LogRecord(offset, at, None, json.dumps(an_event(partition, dataset)).encode())


PAIR = all_of(on_data("a"), on_data("b"), timeout="20m")


def test_given_a_topic_made_anew_then_what_waits_for_the_former_one_waits_until_the_next_is_read() -> None:
    """Seed 29003975: it waited five minutes for what was gone."""
    bench = read_late(PAIR)
    made_anew(bench)
    bench.run(NOTICED_MS)
    assert [what for what, *_ in bench.ledger()] == ["expired/trigger_timeout"]
    assert "events topic" not in str(bench.rows("L#")[0].get("detail"))


def test_given_a_broker_that_tells_the_former_topic_late_then_what_lies_in_the_new_one_is_waited_for() -> None:
    bench = read_late(PAIR)
    made_anew(bench)
    bench.log(EVENTS, 1).append(a_record(0, bench.now - 20 * MINUTE, "x", "b"))
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), EndOffsets({f"{EVENTS_ID}/0": 1}), times=4)
    bench.run(NOTICED_MS)
    assert len(bench.rows("R#")) == 1


def test_given_a_broker_that_tells_nothing_then_what_waits_for_the_unread_does_so_for_five_minutes() -> None:
    bench = read_late(PAIR)
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), Unavailable("broker"), times=10_000)
    bench.run(PATIENCE_MS - 10 * SECOND)
    assert not bench.ledger()
    bench.run(20 * SECOND)
    assert "topic partitions 0 of the events topic" in str(bench.rows("L#")[0].get("detail"))
