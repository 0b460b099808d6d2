"""Messages of one message key in the order of (time, arrival), where decision 37 promises it (SEMANTICS 14)."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.language.values.instants import format_instant

MESSAGES = 200


def asks(bench: ActorHarness, times: list[int]) -> None:
    """Plain records of a Kafka client: neither an id nor a key, all with one ordering key."""
    for number, at in enumerate(times):
        send = {"type": "message.send", "namespace": "orders", "topic": "out", "message_key": "17"}
        bench.request({**send, "deliver_at": format_instant(at), "payload": number})


@pytest.mark.parametrize("apart_ms", [1, 0], ids=["1 ms apart", "at one instant"])
def test_given_messages_of_one_ordering_key_then_they_come_by_their_times_and_else_as_they_were_asked_for(
    apart_ms: int,
) -> None:
    bench = ActorHarness(shards=8)
    bench.run(SECOND)
    times = [bench.now + MINUTE + apart_ms * number for number in range(MESSAGES)]
    Random(14).shuffle(times)
    asks(bench, times)
    bench.run(2 * MINUTE)
    delivered = [json.loads(record.value) for record in bench.on("out")]
    assert delivered == sorted(range(MESSAGES), key=lambda number: (times[number], number))


def test_given_times_that_have_passed_then_they_come_in_the_order_of_their_times_all_the_same() -> None:
    bench = ActorHarness(shards=8)
    bench.run(SECOND)
    times = [bench.now - HOUR + number for number in range(MESSAGES)]
    asks(bench, times)
    bench.run(MINUTE)
    assert [json.loads(record.value) for record in bench.on("out")] == list(range(MESSAGES))
