"""What a transaction leaves behind in a log is no record: a position that stands before it for longer than retention is not gone (I3)."""

from __future__ import annotations

import pytest

from tests.support.builders import EVENTS, EVENTS_ID, REQUESTS, REQUESTS_ID, SECOND, a_spec, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.engine.actor_inputs import OffsetOutOfRange
from tidegate_core.ingest.control_records import CHECK_MS
from tidegate_core.rows.effects import FindGaps, ReadEndOffsets, StartReading, Unavailable

PASSED_MS = 3 * CHECK_MS


@pytest.fixture
def bench() -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(starts_after=None))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=on_data(count=3))))
    bench.event(an_event("d1"))
    bench.run(SECOND)
    return bench


def position(bench: ActorHarness, topic_id: str) -> int:
    (found,) = [row["next"] for row in bench.rows("TP") if f"#{topic_id}#" in str(row["pk"])]
    assert isinstance(found, int)
    return found


def successor_of(bench: ActorHarness) -> ActorHarness:
    other = ActorHarness()
    other.store, other._logs, other.now = bench.store, bench.logs, bench.now
    other.new_actor("node-x")
    return other


@pytest.mark.parametrize(("topic", "topic_id"), [(REQUESTS, REQUESTS_ID), (EVENTS, EVENTS_ID)])
def test_given_retention_that_takes_the_mark_at_the_end_then_the_next_holder_goes_on_behind_it(
    bench: ActorHarness, topic: str, topic_id: str
) -> None:
    """Found in review: whoever wrote in transactions left a mark behind its last record; once that was as old as retention, the next reader of
    the topic partition was told that the position was gone, and nothing of it was read until a person had moved it.
    """
    bench.mark(topic, 0)
    bench.run(PASSED_MS)
    assert position(bench, topic_id) == 2
    bench.remove_before(topic, 0, 2)
    bench.crash()
    bench.run(5 * SECOND)
    assert bench.notices("position_gone") == []
    bench.event(an_event("d2"))
    bench.event(an_event("d3"))
    bench.request(an_apply(a_spec("another")))
    bench.run(SECOND)
    assert len(bench.receipts()) == 2
    assert len(bench.rows("R#")) == 1


def test_given_a_position_that_has_passed_a_mark_then_it_is_read_from_there_by_the_same_holder_too(
    bench: ActorHarness,
) -> None:
    """Its client may be made anew long after that."""
    bench.mark(EVENTS, 0)
    bench.run(PASSED_MS)
    assert [each.offset for each in bench.all_asked(StartReading) if each.topic == EVENTS] == [None, 2]


def test_given_what_may_be_a_record_then_no_position_passes_it(bench: ActorHarness) -> None:
    bench.answer_with(lambda effect: isinstance(effect, FindGaps), Unavailable("broker"), times=10_000)
    bench.mark(EVENTS, 0)
    bench.run(PASSED_MS)
    assert position(bench, EVENTS_ID) == 1
    bench.as_usual()
    # Nobody has read it: its reader has lost the topic partition from sight.
    bench.log(EVENTS, 0).append(bench.log(EVENTS, 0)[0]._replace(offset=2))
    bench.run(PASSED_MS)
    assert position(bench, EVENTS_ID) == 1


def test_given_a_record_that_comes_while_the_brokers_are_asked_then_it_is_not_passed(bench: ActorHarness) -> None:
    bench.mark(EVENTS, 0)
    bench.run(CHECK_MS)
    bench.hold_back(lambda effect: isinstance(effect, FindGaps))
    bench.run(2 * CHECK_MS)
    bench.event(an_event("d2"))
    bench.run(SECOND)
    bench.release()
    bench.run(SECOND)
    assert position(bench, EVENTS_ID) == 3
    bench.event(an_event("d3"))
    bench.run(SECOND)
    assert len(bench.rows("R#")) == 1


def test_given_a_successor_while_the_brokers_are_asked_then_the_former_holder_passes_nothing(
    bench: ActorHarness,
) -> None:
    bench.mark(EVENTS, 0)
    bench.run(CHECK_MS)
    bench.hold_back(lambda effect: isinstance(effect, FindGaps))
    bench.run(2 * CHECK_MS)
    successor_of(bench).run(SECOND)
    bench.release()
    bench.run(SECOND)
    assert len(bench.notices("fenced")) == 1
    assert position(bench, EVENTS_ID) == 1


def test_given_brokers_that_do_not_answer_then_positions_stay_and_are_looked_at_again(bench: ActorHarness) -> None:
    bench.mark(EVENTS, 0)
    bench.run(CHECK_MS)
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), Unavailable("broker"), times=10_000)
    bench.run(CHECK_MS + CHECK_MS // 5)
    assert position(bench, EVENTS_ID) == 1
    bench.as_usual()
    bench.run(CHECK_MS + CHECK_MS // 5)
    assert position(bench, EVENTS_ID) == 2


def test_given_a_position_that_is_gone_then_it_is_still_a_persons_to_move(bench: ActorHarness) -> None:
    bench.run(CHECK_MS)
    bench.give(OffsetOutOfRange(EVENTS, 0, 1))
    bench.append(EVENTS, 0, an_event("d2"))
    bench.run(SECOND)
    assert [each.fields["offset"] for each in bench.notices("position_gone")] == [1]
