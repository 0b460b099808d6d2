"""The reader's asyncio side: what was given back is not read, and what cannot be handed on is not skipped."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_kafka.clients.connectivity import ASK_EVERY_MS
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer import topic_ids, topic_recreation
from tidegate_kafka.consumer.partition_reader import KafkaPartitionReader
from tidegate_ports.bus import END, BeginOffsets, ReaderListener, Record, Topic, Topics

if TYPE_CHECKING:
    from tests.unit.tidegate_kafka.conftest import FakeClient, MakeRecord, ManualClock, Notes

PATIENCE_S = 60.0
EVENTS = Topic("tidegate.events", "ab" * 16, 8)
POKES = Topic("tidegate.pokes", "cd" * 16, 8)
ENDS = EndOffsets({f"{POKES.id}/{number}": 3 for number in range(8)})


class Brokers(Topics):
    """Answers about ends when `may_answer`.

    Attributes:
        ends, described: Of the topics that there are now.
        swallows: A cancellation that comes with the answer, as `asyncio.wait_for` of Python 3.11 does.
        bug: Raised by the next question about ends.
    """

    def __init__(self) -> None:
        self.ends = ENDS
        self.described = [EVENTS, POKES]
        self.swallows = False
        self.bug: Exception | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.asked = asyncio.Event()

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        self.asked.set()
        if self.bug is not None:
            bug, self.bug = self.bug, None
            raise bug
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            if not self.swallows:
                raise
        return self.ends

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        raise NotImplementedError

    async def begin_offsets(self, topic: str) -> BeginOffsets | Unavailable:
        raise NotImplementedError

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        return {topic.name: topic for topic in self.described if topic.name in names}


class Listener(ReaderListener):
    def __init__(self) -> None:
        self.got: asyncio.Queue[tuple[str, int, list[int]]] = asyncio.Queue()
        self.gone: asyncio.Queue[tuple[str, int, int]] = asyncio.Queue()
        self.topic_ids: list[str] = []
        self.failing: set[str] = set()

    def records(self, topic: str, topic_partition: int, records: Sequence[Record]) -> None:
        if topic in self.failing:
            self.failing.remove(topic)
            raise KeyError("a bug of ours")
        self.topic_ids += [each.topic_id for each in records]
        self.got.put_nowait((topic, topic_partition, [each.offset for each in records]))

    def position_gone(self, topic: str, topic_partition: int, offset: int) -> None:
        self.gone.put_nowait((topic, topic_partition, offset))

    async def next(self) -> tuple[str, int, list[int]]:
        async with asyncio.timeout(PATIENCE_S):
            return await self.got.get()


class World:
    def __init__(self, clock: ManualClock, notes: Notes, *clients: FakeClient) -> None:
        self.brokers, self.listener, self.clients = Brokers(), Listener(), list(clients)
        self.reader = KafkaPartitionReader(
            KafkaSettings(allow_plaintext=True, restart_wait_ms=10),
            self.listener,
            self.brokers,
            loop=asyncio.get_running_loop(),
            clock=clock,
            notices=notes,
            make=lambda _: self.clients.pop(0),
            others=lambda _: True,
        )


@pytest.fixture
async def world(client: FakeClient, clock: ManualClock, notes: Notes) -> AsyncIterator[World]:
    world = World(clock, notes, client, type(client)())
    yield world
    assert await world.reader.stop()


def until(condition: Callable[[], bool]) -> None:
    """Waits; on the loop's own thread without letting it run."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline


async def begin(world: World, client: FakeClient) -> None:
    """Starts the reader and waits until its client has what was wanted before: what is assigned now is so once, not anew at its birth."""
    turned = threading.Event()
    client.during_poll.append(turned.set)
    world.reader.start()
    assert await asyncio.to_thread(turned.wait, PATIENCE_S)


async def test_given_it_is_given_back_as_the_answer_about_its_end_comes_then_it_is_not_read(
    world: World, client: FakeClient, a_record: MakeRecord
) -> None:
    """A rebalance right after the start: the reader went on with pokes that were somebody else's, and failed at each."""
    world.brokers.swallows = True
    world.brokers.may_answer.clear()
    await begin(world, client)
    world.reader.assign(POKES, 0, END)
    await world.brokers.asked.wait()
    world.reader.unassign(POKES.name, 0)
    world.brokers.may_answer.set()
    world.reader.assign(POKES, 1, END)
    world.reader.assign(EVENTS, 1, 7)
    await asyncio.to_thread(until, lambda: (EVENTS.name, 1) in client.assigned)
    client.batches = [[a_record(0, 3, topic=POKES.name), a_record(1, 7, topic=EVENTS.name)]]

    assert await world.listener.next() == (EVENTS.name, 1, [7])
    until(lambda: (POKES.name, 1) in client.assigned)
    assert (POKES.name, 0) not in client.assigned


async def test_given_a_client_that_finds_no_broker_although_others_do_then_the_next_one_goes_on_where_it_stood(
    world: World, client: FakeClient, clock: ManualClock, a_record: MakeRecord
) -> None:
    """confluentinc/librdkafka#5301: nothing would be read any more, and nothing said so."""
    after = world.clients[1]
    await begin(world, client)
    world.reader.assign(EVENTS, 0, 7)
    await asyncio.to_thread(until, lambda: (EVENTS.name, 0) in client.assigned)
    client.batches = [[a_record(0, 7, topic=EVENTS.name)]]
    assert await world.listener.next() == (EVENTS.name, 0, [7])
    client.brokers_answer = False

    def goes_on() -> bool:
        clock.now += ASK_EVERY_MS
        time.sleep(0.01)
        return (EVENTS.name, 0) in after.assigned

    await asyncio.to_thread(until, goes_on)
    assert after.assigned == {(EVENTS.name, 0): 8}
    await asyncio.to_thread(until, lambda: client.closed)


async def test_given_a_topic_that_was_made_anew_then_the_next_client_goes_on_where_the_former_one_stood(
    world: World, client: FakeClient, notes: Notes, a_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that had known the former topic may read nothing of the next one for ever, and say nothing (`made_anew`)."""
    monkeypatch.setattr(topic_recreation, "LOOK_EVERY_S", 0.001)
    after = world.clients[1]
    await begin(world, client)
    world.reader.assign(POKES, 1, END)
    world.reader.assign(EVENTS, 0, 7)
    await asyncio.to_thread(until, lambda: len(client.assigned) == 2)
    client.batches = [[a_record(0, 7, topic=EVENTS.name)]]
    assert await world.listener.next() == (EVENTS.name, 0, [7])
    world.brokers.described = [POKES, replace(EVENTS, id="another")]
    await asyncio.to_thread(until, lambda: len(after.assigned) == 2)
    assert after.assigned == {(EVENTS.name, 0): 8, (POKES.name, 1): 3}
    await asyncio.to_thread(until, lambda: client.closed)
    assert notes.names() == ["kafka_client_renewed"]


async def test_given_records_are_not_taken_then_what_was_read_with_them_is_read_again(
    world: World, client: FakeClient, notes: Notes, a_record: MakeRecord
) -> None:
    """An event that was read beside a poke was skipped for ever where the poke could not be handed on."""
    await begin(world, client)
    world.reader.assign(POKES, 0, END)
    world.reader.assign(EVENTS, 0, 7)
    await asyncio.to_thread(until, lambda: client.assigned == {(POKES.name, 0): 3, (EVENTS.name, 0): 7})
    (successor,) = world.clients
    world.listener.failing = {POKES.name}
    client.batches = [
        [a_record(0, 3, topic=POKES.name), a_record(0, 7, topic=EVENTS.name)],
        [a_record(0, 8, topic=EVENTS.name)],
    ]
    until(lambda: not client.batches)
    await asyncio.to_thread(until, lambda: successor.assigned == {(POKES.name, 0): 3, (EVENTS.name, 0): 7})
    successor.batches = [
        [a_record(0, 3, topic=POKES.name), a_record(0, 7, topic=EVENTS.name)],
        [a_record(0, 8, topic=EVENTS.name)],
    ]

    assert await world.listener.next() == (POKES.name, 0, [3])
    assert await world.listener.next() == (EVENTS.name, 0, [7])
    assert await world.listener.next() == (EVENTS.name, 0, [8])
    assert "kafka_client_failed" in notes.names()


async def test_given_a_busy_loop_then_a_client_does_not_end_for_what_the_one_before_it_read(
    world: World, client: FakeClient, notes: Notes, a_record: MakeRecord
) -> None:
    """One after another ended, each after one turn, until the loop came to hear of a new one."""
    await begin(world, client)
    world.reader.assign(POKES, 0, END)
    await asyncio.to_thread(until, lambda: (POKES.name, 0) in client.assigned)
    (successor,) = world.clients
    world.listener.failing = {POKES.name}
    client.batches = [[a_record(0, 3, topic=POKES.name)]]
    await asyncio.to_thread(until, lambda: client.closed)

    until(lambda: successor.polls > 2)
    assert notes.names().count("kafka_client_failed") == 1


async def test_given_a_stop_while_the_end_is_asked_for_then_the_next_start_asks_again(
    world: World, client: FakeClient
) -> None:
    world.brokers.may_answer.clear()
    await begin(world, client)
    world.reader.assign(POKES, 0, END)
    await world.brokers.asked.wait()
    assert await world.reader.stop()
    world.brokers.may_answer.set()
    (successor,) = world.clients
    world.reader.start()

    await asyncio.to_thread(until, lambda: successor.assigned == {(POKES.name, 0): 3})


async def test_given_a_topic_that_was_made_anew_then_its_end_is_found_under_the_new_id_and_reading_goes_on(
    world: World, client: FakeClient, a_record: MakeRecord
) -> None:
    """Found in review: it was searched under the old id until a restart, and meanwhile no poke and no heartbeat was read."""
    await begin(world, client)
    world.reader.assign(POKES, 0, END)
    await asyncio.to_thread(until, lambda: client.assigned == {(POKES.name, 0): 3})
    anew = "ef" * 16
    world.brokers.ends = EndOffsets({f"{anew}/{number}": 1 for number in range(8)})
    out_of_range = KafkaError(KafkaError._AUTO_OFFSET_RESET)
    client.batches = [[a_record(0, 3, topic=POKES.name, error=out_of_range)]]
    async with asyncio.timeout(PATIENCE_S):
        assert await world.listener.gone.get() == (POKES.name, 0, 3)

    world.reader.assign(POKES, 0, END)  # As its listener does, which knows the topic as it was at its start.

    await asyncio.to_thread(until, lambda: client.assigned == {(POKES.name, 0): 1})
    client.batches = [[a_record(0, 1, topic=POKES.name)]]
    assert await world.listener.next() == (POKES.name, 0, [1])
    assert world.listener.topic_ids == [anew]


async def test_given_a_question_about_the_end_that_fails_then_it_is_asked_again(
    world: World, client: FakeClient, notes: Notes
) -> None:
    """Found in review: the topic partition was read by nobody before the next rebalance, and nothing told of it."""
    world.brokers.bug = RuntimeError("a bug of ours")
    await begin(world, client)
    world.reader.assign(POKES, 0, END)
    await world.brokers.asked.wait()
    async with asyncio.timeout(PATIENCE_S):
        while (POKES.name, 0) not in client.assigned:  # noqa: ASYNC110 - it is assigned on the reader's thread
            await asyncio.sleep(0.001)
    assert "kafka_topic_unknown" in notes.names()


async def test_given_a_reading_that_stands_although_there_is_more_then_it_begins_again_and_then_with_another_client(
    world: World, client: FakeClient, notes: Notes, a_record: MakeRecord
) -> None:
    """A client that was told of leaders in the wrong order asks for ever a broker that leads no more: events were read again only when its node was
    restarted by hand.
    """
    reader, listener, others = world.reader, world.listener, world.clients[-1]
    await begin(world, client)
    reader.assign(EVENTS, 1, 5)
    await asyncio.to_thread(until, lambda: client.assigned == {(EVENTS.name, 1): 5})
    client.batches = [[a_record(1, 5, topic=EVENTS.name)]]
    assert await listener.next() == (EVENTS.name, 1, [5])
    assert reader.being_read() == [EVENTS]

    def stands() -> list[Mapping[int, int]]:
        return [reader.standing(EVENTS.name, {1: 9}) for _ in range(2)]

    assert stands() == [{}, {}], "it is out, and somebody is at it"
    reader.taken(EVENTS.name, 1, 1)
    assert stands() == [{}, {1: 6}]
    reader.restart(EVENTS.name, 1, 5)  # It has moved on since that was seen.
    reader.restart(EVENTS.name, 1, 6)
    until(lambda: client.calls.count("assign [(1, 6)]") == 1)
    assert stands() == [{}, {1: 6}]
    reader.restart(EVENTS.name, 1, 6)
    async with asyncio.timeout(PATIENCE_S):
        while others.assigned != {(EVENTS.name, 1): 6}:  # noqa: ASYNC110 - what is looked at comes from a thread
            await asyncio.sleep(0.01)
    assert client.closed
    assert [name for name in notes.names() if name.startswith("kafka_")] == [
        "kafka_reading_restarted",
        "kafka_client_renewed",
    ]
    reader.unassign(EVENTS.name, 1)
    reader.restart(EVENTS.name, 1, 6)
    assert (reader.being_read(), reader.standing(EVENTS.name, {1: 9})) == ([], {})


async def test_given_records_that_are_handed_on_twice_for_a_bug_then_they_count_as_out_once(
    world: World, client: FakeClient, a_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_ids, "ASK_AGAIN_S", 0.001)
    world.listener.failing.add(EVENTS.name)
    await begin(world, client)
    world.reader.assign(EVENTS, 1, 5)
    await asyncio.to_thread(until, lambda: client.assigned == {(EVENTS.name, 1): 5})
    client.batches = [[a_record(1, 5, topic=EVENTS.name)]]
    assert await world.listener.next() == (EVENTS.name, 1, [5])
    world.reader.taken(EVENTS.name, 1, 1)
    assert [world.reader.standing(EVENTS.name, {1: 9}) for _ in range(2)] == [{}, {1: 6}]
