"""The durable position of a topic partition: taken over at its true place, moved once, fenced by a later holder (I3)."""

from __future__ import annotations

import pytest

from tests.support.builders import EVENTS, EVENTS_ID, REQUESTS, SECOND, a_send, a_spec, an_apply, an_event
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.actor_inputs import LogRecord, RecordsArrived
from tidegate_core.ingest.request_ingest import REQUESTS_TOGETHER_MAX
from tidegate_core.ingest.topic_cursor import BATCH_RECORDS_MAX
from tidegate_core.rows.effects import Commit, Effect, ReturnCredits


def a_raise(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "raise"


def position(bench: ActorHarness, topic_id: str = "a" * 32) -> object:
    (row,) = [row for row in bench.rows("TP") if topic_id in str(row["pk"])]
    return row["next"]


def test_given_a_move_between_look_and_raise_then_the_position_is_the_moved_one() -> None:
    """The former holder still moves it while the new one has looked and not yet raised."""
    bench = ActorHarness()
    bench.run(SECOND)
    other = ActorHarness()
    other.store, other._logs, other.now = bench.store, bench._logs, bench.now
    other.new_actor("node-x")
    other.hold_back(a_raise)
    other.settle()
    bench.request(a_send("m-1", after="1s"))
    other.release()
    other.run(SECOND)
    other.request(a_send("m-2", after="1s"))
    other.run(10 * SECOND)
    assert other.notices("fenced") == []
    assert position(other) == 2


@pytest.mark.parametrize(("topic", "together"), [(EVENTS, BATCH_RECORDS_MAX), (REQUESTS, REQUESTS_TOGETHER_MAX)])
def test_given_a_long_log_then_it_is_dealt_with_in_batches_in_order(topic: str, together: int) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    made = an_event if topic == EVENTS else a_send
    records = [made(f"d{number}") for number in range(together * 2 + 1)]
    bench.append(topic, 0, *records)
    taken = [effect for effect in bench.all_asked(ReturnCredits) if effect.topic == topic]
    assert [effect.count for effect in taken] == [together, together, 1]
    assert taken[-1].next_offset == len(records)


@pytest.mark.parametrize(("topic", "topic_id"), [(EVENTS, EVENTS_ID), (REQUESTS, "a" * 32)])
def test_given_records_behind_a_drain_then_the_position_does_not_pass_those_before_them(
    topic: str, topic_id: str
) -> None:
    """They waited in the driver's queue when the drain forgot what was read before them and not begun: a campaign of `make chaos`
    lost events by it.
    """
    bench = ActorHarness()
    bench.run(SECOND)
    documents = [an_event(f"d{number}") if topic == EVENTS else an_apply(a_spec(f"s-{number}")) for number in range(3)]
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "cursor")
    bench.append(topic, 0, documents[0])
    assert bench.holds_something
    bench.append(topic, 0, documents[1])
    bench.drain()
    bench.append(topic, 0, documents[2])
    bench.give(bench.arrived(topic, 0, 2))
    bench.release()
    bench.run(SECOND)
    assert bench.actor.has_ended
    assert position(bench, topic_id) == 1
    bench.crash()
    bench.run(SECOND)
    assert position(bench, topic_id) == 3


def test_given_records_below_the_position_then_they_are_passed_over() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.event(an_event("d1"))
    moves = len(bench.commits("cursor"))
    bench.give(bench.arrived(EVENTS, 0, 0))
    assert len(bench.commits("cursor")) == moves


def test_given_gaps_in_the_log_then_the_position_follows_the_records() -> None:
    """Compaction and aborted transactions leave gaps."""
    bench = ActorHarness()
    bench.run(SECOND)
    value = b'{"id": "e", "type": "data.partition", "namespace": "n", "dataset": "d", "partition": "p"}'
    records = tuple(LogRecord(offset, bench.now, None, value) for offset in (4, 9))
    bench.give(RecordsArrived(EVENTS, 0, records, EVENTS_ID))
    assert position(bench, "b" * 32) == 10


def test_given_a_lost_answer_to_a_move_then_its_own_success_is_recognised() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.lose_answer_of(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "cursor")
    bench.append(REQUESTS, 0, a_send("m-1", after="1s"))
    bench.run(5 * SECOND)
    assert bench.notices("fenced") == []
    assert position(bench) == 1
    assert len(bench.on("out")) == 1
