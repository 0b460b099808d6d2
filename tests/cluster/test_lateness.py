"""How late messages are on an idle stack, as a consumer of their topic sees it; and that none is early (I8)."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.checkers.faults import report
from tests.support.checkers.lateness import histogram, percentile
from tests.support.checkers.messages import judge_messages
from tests.support.cluster.cluster import Cluster
from tests.support.cluster.machine_stalls import Standstills
from tests.support.cluster.measurements import show
from tests.support.cluster.message_load import MessageBook, deliveries_of
from tests.support.cluster.topic_reader import TopicWatcher
from tests.support.cluster.until import now_ms, until
from tests.support.cluster.user_client import Client
from tests.support.machine_speed import slowness
from tests.support.tier import at_night

MESSAGES = at_night(1_000, else_=200)
EVERY_S = 0.06
AHEAD_MS = 2_000
P50_MS = 25
P99_MS = 150
ASSERTED_TIMES = 5
"""The goals are reported as they are, and asserted at this, times how slow the machine is: machines that run tests have other work."""
ROUNDS_MAX = 3
"""A round in which the machine itself stood still says nothing of the stack. No other one is made again."""


@pytest.fixture(scope="module")
def nodes() -> int:
    return 1


@pytest.mark.timeout(600)
def test_given_an_idle_stack_then_messages_come_in_time_and_never_early(
    cluster: Cluster, client: Client, standstills: Standstills
) -> None:
    late: list[int] = []
    for number in range(1, ROUNDS_MAX + 1):
        before = len(standstills.found)
        late = _round(cluster, client, cluster.make_topic(f"idle-{number}.out"), standstills)
        if len(standstills.found) == before:
            break
    middle, high = percentile(late, 0.5), percentile(late, 0.99)
    show(f"{MESSAGES} messages over {MESSAGES * EVERY_S:g} s: p50 {middle} ms, p99 {high} ms, most {max(late)} ms")
    show(f"lateness at the consumer: {histogram(late)}")
    machine = slowness()
    assert middle <= ASSERTED_TIMES * P50_MS * machine
    assert high <= ASSERTED_TIMES * P99_MS * machine


def _round(cluster: Cluster, client: Client, sink: str, standstills: Standstills) -> list[int]:
    """Sends messages, sees to it that each came once and none early, and returns how late they were, in ms."""
    book = MessageBook(client, sink)
    with TopicWatcher(cluster.bootstrap_servers, sink) as consumer:
        _send_evenly(book)
        client.flush()
        until(lambda: len(consumer.records) >= MESSAGES, "all messages arrive")
    deliveries = deliveries_of(consumer.records)
    faults = judge_messages(book.sent([]), deliveries, [], unrests=standstills.unrests())
    assert not faults, report(faults)
    late = [
        record.received_at - delivery.nominal for record, delivery in zip(consumer.records, deliveries, strict=True)
    ]
    assert min(late) >= 0
    return late


def _send_evenly(book: MessageBook) -> None:
    begun = time.monotonic()
    pace = threading.Event()
    for number in range(MESSAGES):
        book.send(now_ms() + AHEAD_MS)
        pace.wait(max(0.0, begun + (number + 1) * EVERY_S - time.monotonic()))
