"""What a consumer is told, and which of its messages are passed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Message

from tidegate_kafka.consumer.consumer_commands import ConsumerCommands
from tidegate_kafka.consumer.flow_control import IN_FLIGHT_BYTES_MAX
from tidegate_kafka.consumer.partition_flows import PartitionFlows, PositionGone, Read
from tidegate_ports.bus import Record, Topic

if TYPE_CHECKING:
    from tests.unit.tidegate_kafka.conftest import FakeClient, MakeRecord, Notes

GONE = KafkaError(KafkaError._AUTO_OFFSET_RESET)


@pytest.fixture
def lanes(client: FakeClient, notes: Notes, topic: Topic) -> PartitionFlows:
    lanes = PartitionFlows(client, 4, notes)
    lanes.add(topic, [0, 1])
    return lanes


def seek(lanes: PartitionFlows, orders: ConsumerCommands, topic: Topic, number: int, offset: int) -> int:
    orders.seek((topic.name, number), offset)
    lanes.carry_out(orders.collect())
    return orders.era((topic.name, number))


def test_given_no_position_then_the_client_reads_nothing(lanes: PartitionFlows, client: FakeClient) -> None:
    assert client.assigned == {}
    assert len(lanes.held) == 2


def test_given_seek_then_it_is_assigned_there_and_records_are_converted(
    lanes: PartitionFlows, client: FakeClient, topic: Topic, a_record: MakeRecord
) -> None:
    era = seek(lanes, ConsumerCommands(), topic, 0, 5)
    assert client.assigned == {(topic.name, 0): 5}
    assert lanes.sort([a_record(0, 5), a_record(0, 7)]) == [
        Read(
            (topic.name, 0),
            era,
            [
                Record(topic.name, topic.id, 0, offset, 1_000 + offset, b"k", str(offset).encode(), (("h", b"1"),))
                for offset in (5, 7)
            ],
        )
    ]


def test_given_messages_before_the_position_or_of_others_then_they_are_left_out(
    lanes: PartitionFlows, topic: Topic, a_record: MakeRecord
) -> None:
    seek(lanes, ConsumerCommands(), topic, 0, 5)
    assert lanes.sort([a_record(0, 4), a_record(1, 9), a_record(7, 1), a_record(0, 1, topic="other")]) == []


def test_given_bound_reached_then_it_is_let_go_and_taken_up_again_at_the_next_offset(
    lanes: PartitionFlows, client: FakeClient, topic: Topic, a_record: MakeRecord
) -> None:
    orders = ConsumerCommands()
    seek(lanes, orders, topic, 0, 0)
    lanes.sort([a_record(0, offset) for offset in range(6)])
    assert client.assigned == {}
    assert lanes.sort([a_record(0, 6)]) == [], "what the client had prefetched comes again"
    orders.taken((topic.name, 0), 3)
    lanes.carry_out(orders.collect())
    assert client.assigned == {}
    orders.taken((topic.name, 0), 1)
    lanes.carry_out(orders.collect())
    assert client.assigned == {(topic.name, 0): 6}


def test_given_stopped_then_it_flows_again_from_the_next_position(
    lanes: PartitionFlows, client: FakeClient, topic: Topic
) -> None:
    orders = ConsumerCommands()
    seek(lanes, orders, topic, 0, 3)
    orders.stop((topic.name, 0))
    orders.taken((topic.name, 0), 1)
    lanes.carry_out(orders.collect())
    assert client.assigned == {}
    seek(lanes, orders, topic, 0, 7)
    assert client.assigned == {}, "a revocation may wait to be told, and was answered by letting go"
    lanes.sort([])
    assert client.assigned == {(topic.name, 0): 7}


def test_given_a_backlog_of_large_records_then_it_is_let_go_by_their_bytes(
    client: FakeClient, notes: Notes, topic: Topic
) -> None:
    lanes = PartitionFlows(client, 2_000, notes)
    lanes.add(topic, [0])
    seek(lanes, ConsumerCommands(), topic, 0, 0)
    value = b"x" * (IN_FLIGHT_BYTES_MAX // 8)
    messages = [
        Message(topic=topic.name, partition=0, offset=offset, key=None, value=value, headers=None, timestamp=(1, 0))
        for offset in range(8)
    ]
    lanes.sort(messages[:7])
    assert client.assigned == {(topic.name, 0): 0}
    lanes.sort(messages[7:])
    assert client.assigned == {}


def test_given_foreign_topic_partitions_then_only_held_ones_are_given_back(
    lanes: PartitionFlows, client: FakeClient, topic: Topic
) -> None:
    seek(lanes, ConsumerCommands(), topic, 0, 3)
    lanes.remove([(topic.name, 0), (topic.name, 1), (topic.name, 6)])
    assert client.calls[-1] == "unassign [0]"
    assert lanes.held == frozenset()


def test_given_nothing_to_give_back_then_the_client_is_told_so(lanes: PartitionFlows, client: FakeClient) -> None:
    lanes.remove([])
    assert client.calls == ["unassign []"]


def test_given_orders_for_what_left_then_they_are_void(lanes: PartitionFlows, client: FakeClient, topic: Topic) -> None:
    lanes.remove([(topic.name, 0)])
    seek(lanes, ConsumerCommands(), topic, 0, 3)
    assert client.assigned == {}


def test_given_reader_order_with_topic_then_it_is_taken_up_and_leaves_on_order(
    client: FakeClient, notes: Notes, topic: Topic
) -> None:
    lanes, orders = PartitionFlows(client, 4, notes), ConsumerCommands()
    orders.seek((topic.name, 5), 2, topic)
    lanes.carry_out(orders.collect())
    assert client.assigned == {(topic.name, 5): 2}
    orders.leave((topic.name, 5))
    lanes.carry_out(orders.collect())
    assert client.assigned == {}
    assert lanes.held == frozenset()


def test_given_position_not_in_the_log_then_it_is_reported_after_the_records_before_it(
    lanes: PartitionFlows, client: FakeClient, topic: Topic, a_record: MakeRecord
) -> None:
    orders = ConsumerCommands()
    era = seek(lanes, orders, topic, 0, 5)
    found = lanes.sort([a_record(0, 6, error=GONE), a_record(0, 5)])
    assert [type(each) for each in found] == [Read, PositionGone]
    assert found[1] == PositionGone((topic.name, 0), era, 6)
    assert client.assigned == {}
    assert lanes.sort([a_record(0, 6, error=GONE)]) == [], "once is enough"
    seek(lanes, orders, topic, 0, 9)
    assert client.assigned == {(topic.name, 0): 9}


def test_given_error_about_an_older_position_then_the_present_one_is_tried_again(
    lanes: PartitionFlows, client: FakeClient, topic: Topic, a_record: MakeRecord
) -> None:
    seek(lanes, ConsumerCommands(), topic, 0, 5)
    assert lanes.sort([a_record(0, 1_000_000, error=GONE)]) == []
    lanes.sort([])
    assert client.calls[-2:] == ["unassign [0]", "assign [(0, 5)]"]


def test_given_other_errors_then_they_are_noticed_and_the_flow_goes_on(
    lanes: PartitionFlows, client: FakeClient, topic: Topic, a_record: MakeRecord, notes: Notes
) -> None:
    seek(lanes, ConsumerCommands(), topic, 0, 5)
    assert lanes.sort([a_record(0, 5, error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))]) == []
    assert notes.names() == ["kafka_consumer_error"]
    assert client.assigned == {(topic.name, 0): 5}
