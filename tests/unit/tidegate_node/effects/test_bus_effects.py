"""Bus effects: requests go by the membership, everything else by the reader; pokes stay in the house where they can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.engine.actor_inputs import TopicFacts, Woken
from tidegate_core.rows.effects import (
    EndOffsets,
    ManyProduced,
    Membership,
    NotProduced,
    Produce,
    Produced,
    ProduceMany,
    ProveMembership,
    ReadEndOffsets,
    ReturnCredits,
    StartReading,
    StopReading,
    WakeUp,
)
from tidegate_node.effects.bus_effects import POKES_UNDER_WAY_MAX
from tidegate_node.topics.wakeup_records import read_record
from tidegate_ports.bus import BeginOffsets

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


def starting(topic: TopicFacts, topic_partition: int, offset: int | None) -> StartReading:
    return StartReading(topic.name, topic_partition, offset, topic.id, topic.topic_partitions)


async def test_given_requests_then_they_flow_by_the_membership(around: Surroundings) -> None:
    effects, topic = around.bus_effects(), around.facts.requests.name

    effects.start_reading(starting(around.facts.requests, 2, 17))
    effects.taken(ReturnCredits(topic, 2, 5, 22))
    effects.stop_reading(StopReading(topic, 2))

    assert around.bus.calls == [("seek", 2, 17), ("taken", 2, 5), ("hint", 2, 22), ("stop", 2)]


@pytest.mark.parametrize(
    ("topic", "error_class"), [("requests", "undeliverable"), ("requests", "forbidden"), ("events", "invalid")]
)
def test_given_no_dead_letters_yet_then_the_series_are_there_for_alerts_on_the_first_one(
    topic: str, error_class: str, around: Surroundings
) -> None:
    around.bus_effects()
    page = around.metrics.exposition()[0].decode()
    assert f'tidegate_dead_letters_total{{error_class="{error_class}",topic="tidegate.{topic}"}} 0.0' in page


async def test_given_a_topic_of_a_source_then_its_series_is_there_for_alerts_on_the_first_dead_letter(
    around: Surroundings,
) -> None:
    around.bus_effects().start_reading(starting(TopicFacts("orders", "0f" * 16, 3), 1, 4))
    page = around.metrics.exposition()[0].decode()
    assert 'tidegate_dead_letters_total{error_class="unparsable",topic="orders"} 0.0' in page


async def test_given_events_then_they_flow_by_the_reader(around: Surroundings) -> None:
    effects, topic = around.bus_effects(), around.facts.events.name

    effects.start_reading(starting(around.facts.events, 6, 4))
    effects.taken(ReturnCredits(topic, 6, 1, 5))
    effects.stop_reading(StopReading(topic, 6))

    assert around.bus.calls == [("assign", topic, 6, 4), ("taken", topic, 6, 1), ("unassign", topic, 6)]


async def test_given_no_position_then_reading_starts_where_the_log_begins(around: Surroundings, until: Any) -> None:
    effects, requests, events = around.bus_effects(), around.facts.requests, around.facts.events
    around.bus.log_begins = [BeginOffsets({f"{requests.id}/3": 40, f"{events.id}/7": 5})]

    effects.start_reading(starting(requests, 3, None))
    effects.start_reading(starting(events, 7, None))

    assert around.bus.calls == [], "not before the brokers have answered"
    await until(lambda: len(around.bus.calls) == 2, "both flow")
    assert sorted(around.bus.calls) == [("assign", events.name, 7, 5), ("seek", 3, 40)]


@pytest.mark.parametrize("then", ["stop", "start at a position"])
async def test_given_another_order_before_the_beginning_is_known_then_it_holds(
    around: Surroundings, until: Any, then: str
) -> None:
    effects, topic = around.bus_effects(), around.facts.requests
    around.bus.log_begins = [BeginOffsets({f"{topic.id}/{number}": 40 for number in range(4)})]
    effects.start_reading(starting(topic, 3, None))
    effects.start_reading(starting(topic, 2, None))

    if then == "stop":
        effects.stop_reading(StopReading(topic.name, 3))
    else:
        effects.start_reading(starting(topic, 3, 77))

    await until(lambda: ("seek", 2, 40) in around.bus.calls, "the other one flows")
    assert around.bus.calls[0] == (("stop", 3) if then == "stop" else ("seek", 3, 77))
    assert ("seek", 3, 40) not in around.bus.calls


@pytest.mark.parametrize("then", ["stop", "start at a position"])
async def test_given_a_stand_still_then_starting_or_stopping_ends_it(around: Surroundings, then: str) -> None:
    effects, topic = around.bus_effects(), around.facts.requests.name
    around.standing_still.gone(topic, 2, 17)

    if then == "stop":
        effects.stop_reading(StopReading(topic, 2))
    else:
        effects.start_reading(starting(around.facts.requests, 2, 17))

    assert around.standing_still.positions == {}


async def test_given_a_delivery_then_it_is_counted_with_its_lateness(around: Surroundings) -> None:
    message = Produce("sink", None, b"{}", guarded=True, due=around.clock.now_ms() - 40)

    assert await around.bus_effects().produce(message, around.bus.guard_holds) == Produced()

    assert around.metrics.value("tidegate_messages_delivered_total") == 1
    assert around.metrics.value("tidegate_fire_lateness_seconds_sum", plane="delivery") == pytest.approx(0.04)


async def test_given_a_record_of_our_own_then_it_is_no_delivery(around: Surroundings) -> None:
    await around.bus_effects().produce(Produce("tidegate.receipts", None, b"{}"), around.bus.guard_holds)

    assert around.metrics.value("tidegate_messages_delivered_total") == 0


async def test_given_a_record_that_is_not_taken_then_its_kind_is_counted(around: Surroundings) -> None:
    around.bus.outcome = NotProduced("guard", "lapsed")

    await around.bus_effects().produce(Produce("sink", None, b"{}", guarded=True), around.bus.guard_holds)

    assert around.metrics.value("tidegate_records_not_produced_total", kind="guard") == 1
    assert around.metrics.value("tidegate_messages_delivered_total") == 0


async def test_given_messages_that_go_together_then_what_came_of_each_is_counted(around: Surroundings) -> None:
    def outcome_of(record: Produce) -> None:
        around.bus.outcome = NotProduced("refused", "unknown topic") if record.topic == "unknown" else Produced()

    around.bus.on_produce = outcome_of
    late = [around.clock.now_ms() - each for each in (40, 40, 10, 1_000)]
    topics = ("sink", "sink", "sink", "unknown")
    wanted = ProduceMany(
        tuple(Produce(topic, None, b"{}", guarded=True, due=due) for topic, due in zip(topics, late, strict=True))
    )

    answers: list[ManyProduced] = []
    around.bus_effects().produce_many(wanted, around.bus.guard_holds, answers.append)

    (answer,) = answers
    assert [isinstance(outcome, Produced) for outcome in answer.outcomes] == [True, True, True, False]
    assert around.metrics.value("tidegate_messages_delivered_total") == 3
    assert around.metrics.value("tidegate_records_not_produced_total", kind="refused") == 1
    assert around.metrics.value("tidegate_fire_lateness_seconds_count", plane="delivery") == 3
    assert around.metrics.value("tidegate_fire_lateness_seconds_sum", plane="delivery") == pytest.approx(0.09)


@pytest.mark.parametrize("proof", [True, False, None])
async def test_given_a_proof_then_it_is_passed_on(around: Surroundings, proof: bool | None) -> None:
    around.bus.proof = proof

    assert await around.bus_effects().prove_membership(ProveMembership(1)) == Membership(proof)


async def test_given_a_question_for_end_offsets_then_the_brokers_answer(around: Surroundings) -> None:
    around.bus.log_ends = EndOffsets({"x/0": 3})

    assert await around.bus_effects().read_end_offsets(ReadEndOffsets("t")) == EndOffsets({"x/0": 3})


async def test_given_a_shard_of_this_process_then_it_is_poked_on_the_loop(around: Surroundings, until: Any) -> None:
    around.bus_effects().poke(WakeUp(5, "0005-x"))

    assert around.poked == [Woken(5, "0005-x")]
    assert around.bus.produced == []


async def test_given_a_shard_of_another_then_a_record_tells_it(around: Surroundings, until: Any) -> None:
    around.pokes_here = False

    around.bus_effects().poke(WakeUp(5))

    await until(lambda: around.bus.produced, "the poke")
    (record,) = around.bus.produced
    assert (record.topic, record.topic_partition) == (around.facts.pokes.name, 1)
    assert read_record(record.value) == Woken(5)


async def test_given_too_many_pokes_under_way_then_further_ones_are_dropped(around: Surroundings, until: Any) -> None:
    around.pokes_here = False
    effects = around.bus_effects()

    for shard in range(POKES_UNDER_WAY_MAX + 3):
        effects.poke(WakeUp(shard % 8))

    assert around.metrics.value("tidegate_pokes_dropped_total") == 3
    await until(lambda: len(around.bus.produced) == POKES_UNDER_WAY_MAX, "the others")
