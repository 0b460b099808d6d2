"""The asyncio side: what a later order makes void is not told, and a failed client is replaced."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import ANY

import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer import topic_recreation
from tidegate_kafka.group.membership import KafkaMembership, MakeClient, OnCommit, OnRebalance
from tidegate_kafka.group.previous_incarnation import PreviousIncarnation, client_id
from tidegate_ports.bus import Drain, MembershipListener, Record, Topic, Topics

if TYPE_CHECKING:
    from tests.unit.tidegate_kafka.conftest import FakeClient, MakeRecord, ManualClock, Notes

PATIENCE_S = 60.0


class Listener(MembershipListener):
    def __init__(self) -> None:
        self.events: asyncio.Queue[tuple[str, object]] = asyncio.Queue()

    def assigned(self, topic_partitions: Sequence[int]) -> None:
        self.events.put_nowait(("assigned", tuple(topic_partitions)))

    def revoked(self, topic_partitions: Sequence[int], drain: Drain) -> None:
        self.events.put_nowait(("revoked", tuple(topic_partitions)))
        drain.done()

    def lost(self, topic_partitions: Sequence[int]) -> None:
        self.events.put_nowait(("lost", tuple(topic_partitions)))

    def records(self, topic_partition: int, records: Sequence[Record]) -> None:
        self.events.put_nowait(("records", [each.offset for each in records]))

    def position_gone(self, topic_partition: int, offset: int) -> None:
        self.events.put_nowait(("position_gone", offset))

    async def next(self) -> tuple[str, object]:
        return await asyncio.wait_for(self.events.get(), PATIENCE_S)


class Clients:
    """Hands out the clients that it was given, one life each."""

    def __init__(self, *clients: FakeClient) -> None:
        self.clients = list(clients)
        self.made: list[FakeClient] = []
        self.on_commit: OnCommit | None = None

    def __call__(self, settings: KafkaSettings, on_commit: OnCommit) -> FakeClient:
        self.on_commit = on_commit
        self.made.append(self.clients.pop(0))
        return self.made[-1]


class MadeAnewBrokers(Topics):
    """Under each name there is another topic than before.

    Attributes:
        topic_id: The one that it has now.
    """

    def __init__(self, topic_id: str = "another") -> None:
        self.topic_id = topic_id

    async def describe(self, names: Sequence[str]) -> dict[str, Topic]:
        return {name: Topic(name, self.topic_id, 1) for name in names}


def a_member(
    clients: MakeClient,
    listener: Listener,
    topic: Topic,
    clock: ManualClock,
    notes: Notes,
    topics: Topics | None = None,
    former: PreviousIncarnation | None = None,
    **settings: Any,
) -> KafkaMembership:
    return KafkaMembership(
        KafkaSettings(allow_plaintext=True, **settings),
        topic,
        listener,
        loop=asyncio.get_running_loop(),
        clock=clock,
        notices=notes,
        make=clients,
        topics=topics,
        former=former,
    )


def until(condition: Callable[[], bool]) -> None:
    """Waits without letting the loop run."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline


async def test_given_client_fails_then_its_topic_partitions_are_lost_and_a_new_one_joins(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic
) -> None:
    def broken() -> None:
        raise OSError("broken")

    listener, clients = Listener(), Clients(client, type(client)())
    member = a_member(clients, listener, topic, clock, notes, restart_wait_ms=10)
    member.start()
    member.start()
    assert await listener.next() == ("assigned", (0,))
    until(lambda: member.joined)
    client.during_poll.append(broken)
    assert await listener.next() == ("lost", (0,))
    assert await listener.next() == ("assigned", (0,))
    assert "kafka_client_failed" in notes.names()

    clock.now += 60_000
    assert await member.stop()
    assert await listener.next() == ("revoked", (0,))
    assert await member.stop()
    assert (member.rebalances, member.joined) == (2, False)


async def test_given_a_client_that_does_not_end_then_the_next_one_joins_all_the_same(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, a_record: MakeRecord
) -> None:
    """Behind a broker's restart on a busy machine: the client that had not come into its group hung as it was collected, and with it the thread."""
    ended = threading.Event()
    client.close = lambda: ended.wait(PATIENCE_S)  # type: ignore[method-assign, assignment]
    listener, clients = Listener(), Clients(client, type(client)())
    member = a_member(clients, listener, topic, clock, notes, restart_wait_ms=10)
    member.start()
    assert await listener.next() == ("assigned", (0,))
    fatal = KafkaError(KafkaError._FATAL, "GroupAuthorizationFailed", True)
    client.batches.append([a_record(0, 0, error=fatal)])
    assert await listener.next() == ("lost", (0,))
    assert await listener.next() == ("assigned", (0,))
    assert ("kafka_left_without_goodbye", "its client is given up") in [
        (name, fields.get("reason")) for name, fields in notes.events
    ]
    ended.set()
    clock.now += 60_000
    await member.stop()


async def test_given_a_client_that_is_given_up_while_it_owns_something_then_nothing_that_its_close_tells_is_heard(
    client: FakeClient,
    clock: ManualClock,
    notes: Notes,
    topic: Topic,
    a_record: MakeRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found in review: it is closed on another thread, and its revocation was told, and drained, there."""
    told: list[OnRebalance] = []
    subscribe = client.subscribe

    def remembering(topics: list[str], on_revoke: OnRebalance, **callbacks: OnRebalance) -> None:
        told.append(on_revoke)
        subscribe(topics, on_revoke=on_revoke, **callbacks)

    def close_at_once(closed: FakeClient) -> None:
        aside = threading.Thread(target=closed.close)
        aside.start()
        aside.join(PATIENCE_S)

    monkeypatch.setattr(client, "subscribe", remembering)
    monkeypatch.setattr(client, "close", lambda: told[0](client, [TopicPartition(topic.name, 0)]))
    monkeypatch.setattr("tidegate_kafka.group.membership.close_aside", close_at_once)
    listener, clients = Listener(), Clients(client, type(client)())
    member = a_member(clients, listener, topic, clock, notes, restart_wait_ms=10)
    member.start()
    assert await listener.next() == ("assigned", (0,))
    fatal = KafkaError(KafkaError._FATAL, "GroupAuthorizationFailed", True)
    client.batches.append([a_record(0, 0, error=fatal)])
    assert await listener.next() == ("lost", (0,))
    assert await listener.next() == ("assigned", (0,))
    clock.now += 60_000
    await member.stop()


async def test_given_kip_848_and_a_return_to_the_group_long_after_then_the_guard_holds_with_the_first_proof(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic
) -> None:
    """Review: that it was away counted as a freeze, behind which nothing proves anything for 15 s."""
    listener, clients = Listener(), Clients(client, type(client)())
    member = a_member(clients, listener, topic, clock, notes, group_protocol="consumer")
    member.start()
    assert await listener.next() == ("assigned", (0,))
    assert await member.stop()
    clock.now += 600_000
    member.start()
    assert await listener.next() == ("revoked", (0,))
    assert await listener.next() == ("assigned", (0,))
    back = clients.made[-1]
    until(lambda: bool(back.commits))
    on_commit = clients.on_commit
    assert on_commit is not None
    back.during_poll.append(lambda: on_commit(None, back.commits[-1]))  # type: ignore[arg-type]
    until(member.guard_holds)
    clock.now += 60_000
    await member.stop()


async def test_given_records_are_not_taken_then_nothing_behind_them_is_delivered_and_the_next_client_reads_them_again(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, a_record: MakeRecord
) -> None:
    class Failing(Listener):
        fails = True

        def records(self, topic_partition: int, records: Sequence[Record]) -> None:
            if self.fails:
                self.fails = False
                raise KeyError("a bug of ours")
            super().records(topic_partition, records)

    listener, clients = Failing(), Clients(client, type(client)())
    member = a_member(clients, listener, topic, clock, notes, restart_wait_ms=10)
    member.start()
    assert await listener.next() == ("assigned", (0,))
    member.seek_and_resume(0, 5)
    until(lambda: client.assigned == {(topic.name, 0): 5})
    # Both wait for the loop by the time at which the first one fails.
    client.batches = [[a_record(0, 5)], [a_record(0, 6)]]
    until(lambda: not client.batches)
    assert await listener.next() == ("lost", (0,))
    assert await listener.next() == ("assigned", (0,))
    until(lambda: len(clients.made) == 2)
    successor = clients.made[1]
    member.seek_and_resume(0, 5)
    until(lambda: successor.assigned == {(topic.name, 0): 5})
    successor.batches = [[a_record(0, 5)], [a_record(0, 6)]]

    assert await listener.next() == ("records", [5])
    assert await listener.next() == ("records", [6])
    assert ("kafka_client_failed", "NotTaken") in [
        (name, str(fields["reason"]).split(":")[0]) for name, fields in notes.events
    ]
    clock.now += 60_000
    assert await member.stop()


async def test_given_the_client_brings_nothing_although_there_is_more_then_it_is_asked_again_where_it_stands(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, a_record: MakeRecord
) -> None:
    """Seen on a real broker: reading that began within a rebalance was never fetched, and no error told of it."""
    listener = Listener()
    member = a_member(Clients(client), listener, topic, clock, notes)
    member.start()
    assert await listener.next() == ("assigned", (0,))
    member.seek_and_resume(0, 5)
    until(lambda: client.assigned == {(topic.name, 0): 5})
    client.batches = [[a_record(0, 5)]]
    assert await listener.next() == ("records", [5])
    assert [member.standing({0: 9}) for _ in range(2)] == [{}, {}]  # The record is out.
    member.restart(0, 6)
    member.taken(0, 1)
    member.restart(0, 5)
    assert "kafka_reading_restarted" not in notes.names()  # It is not read from there any more.

    assert [member.standing({0: 9}) for _ in range(2)] == [{}, {0: 6}]
    member.restart(0, 6)

    until(lambda: client.assigned == {(topic.name, 0): 6})
    assert client.calls[-2:] == ["unassign [0]", "assign [(0, 6)]"]
    assert notes.names().count("kafka_reading_restarted") == 1
    client.batches = [[a_record(0, 6)]]
    assert await listener.next() == ("records", [6])
    member.stop_reading(0)
    assert [member.standing({0: 9}) for _ in range(2)] == [{}, {}]
    member.restart(0, 7)
    assert notes.names().count("kafka_reading_restarted") == 1
    clock.now += 60_000
    assert await member.stop()


async def test_given_a_client_that_still_brings_nothing_then_it_is_replaced_and_the_next_ones_are_more_and_more_seldom(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic
) -> None:
    """Found in review, and seen with the library's own mock brokers: it asked a broker that led the topic partition no more, wherever it began."""
    listener, clients = Listener(), Clients(*(client if not number else type(client)() for number in range(4)))
    member = a_member(clients, listener, topic, clock, notes)
    member.start()
    renewed_at: list[int] = []
    assert await listener.next() == ("assigned", (0,))
    member.seek_and_resume(0, 5)
    for number in range(1, 10):
        member.restart(0, 5)
        if notes.names().count("kafka_client_renewed") > len(renewed_at):
            renewed_at.append(number)
            assert [await listener.next() for _ in range(2)] == [("revoked", (0,)), ("assigned", (0,))]
            member.seek_and_resume(0, 5)
    assert renewed_at == [2, 4, 8]
    assert len(clients.made) == 4
    member.seek_and_resume(0, 6)
    member.restart(0, 6)
    assert notes.names()[-1] == "kafka_reading_restarted"
    assert await member.stop()


async def test_given_a_topic_partition_that_went_and_came_back_unheard_then_it_is_not_owned_before_the_listener_has_heard_of_it(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Review: another node had it meanwhile, and answered a cancel; who held it here before, and had not heard that it went, sent the message by
    what was its successor's membership, as soon as the loop got on.
    """
    told: dict[str, OnRebalance] = {}
    subscribe = client.subscribe

    def remembering(topics: list[str], **callbacks: OnRebalance) -> None:
        told.update(callbacks)
        subscribe(topics, **callbacks)

    monkeypatch.setattr(client, "subscribe", remembering)
    listener, parts = Listener(), [TopicPartition(topic.name, 0)]
    member = a_member(Clients(client), listener, topic, clock, notes)
    member.start()
    assert await listener.next() == ("assigned", (0,))
    assert member.owned() == {0}
    # The loop is kept busy from here on.
    for callback in ("on_lost", "on_assign"):
        client.during_poll.append(partial(told[callback], client, parts))
    until(lambda: member.rebalances == 3)
    assert member.owned() == frozenset()
    assert await listener.next() == ("lost", (0,))
    assert await listener.next() == ("assigned", (0,))
    assert member.owned() == {0}
    clock.now += 60_000
    assert await member.stop()


async def test_given_seek_after_records_were_read_then_they_are_not_delivered(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, a_record: MakeRecord
) -> None:
    listener = Listener()
    member = a_member(Clients(client), listener, topic, clock, notes)
    member.start()
    assert await listener.next() == ("assigned", (0,))
    # The loop is kept busy throughout, so that what the thread reports cannot be delivered before the next order.
    member.seek_and_resume(0, 5)
    until(lambda: client.assigned == {(topic.name, 0): 5})
    client.batches = [[a_record(0, 5)]]
    until(lambda: not client.batches)
    member.seek_and_resume(0, 9)
    until(lambda: client.assigned == {(topic.name, 0): 9})
    client.batches = [[a_record(0, 9)]]
    assert await listener.next() == ("records", [9])
    assert not await member.prove(7)
    clock.now += 60_000
    assert await member.stop()


async def test_given_reading_is_stopped_after_records_were_read_then_they_are_not_delivered(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, a_record: MakeRecord
) -> None:
    """The next actor would take them for its own, and pass what lies before them."""
    listener = Listener()
    member = a_member(Clients(client), listener, topic, clock, notes)
    member.start()
    assert await listener.next() == ("assigned", (0,))
    member.seek_and_resume(0, 100)
    until(lambda: client.assigned == {(topic.name, 0): 100})
    # The loop is kept busy: they are read and on their way when the order comes.
    client.batches = [[a_record(0, 103)]]
    until(lambda: not client.batches)
    member.stop_reading(0)
    until(lambda: client.assigned == {})
    # Time for what is on its way: this order passes through the loop as the records do.
    await asyncio.sleep(0)
    member.seek_and_resume(0, 100)
    until(lambda: client.assigned == {(topic.name, 0): 100})
    client.batches = [[a_record(0, 100)]]
    assert await listener.next() == ("records", [100])
    clock.now += 60_000
    assert await member.stop()


async def test_given_a_topic_that_was_made_anew_then_records_say_in_which_one_they_lie(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, a_record: MakeRecord
) -> None:
    class Telling(Listener):
        def records(self, topic_partition: int, records: Sequence[Record]) -> None:
            self.events.put_nowait(("records", {each.topic_id for each in records}))

    listener = Telling()
    member = a_member(Clients(client), listener, topic, clock, notes, MadeAnewBrokers(), restart_wait_ms=10)  # type: ignore[abstract]  # nothing else is asked
    member.start()
    assert await listener.next() == ("assigned", (0,))
    member.seek_and_resume(0, 5)
    until(lambda: client.assigned == {(topic.name, 0): 5})
    client.batches = [[a_record(0, 5)]]
    assert await listener.next() == ("records", {"another"})
    assert await member.stop()


async def test_given_a_topic_that_was_made_anew_then_the_member_hands_over_and_another_client_joins(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `make chaos`: behind a restart of the broker, one that had known the former topic read nothing of the next one for ever."""
    monkeypatch.setattr(topic_recreation, "LOOK_EVERY_S", 0.001)
    listener, clients = Listener(), Clients(client, type(client)())
    brokers = MadeAnewBrokers(topic.id)  # type: ignore[abstract]  # nothing else is asked
    member = a_member(clients, listener, topic, clock, notes, brokers)
    member.start()
    assert await listener.next() == ("assigned", (0,))
    brokers.topic_id = "another"  # Not before: its client would be born into the new one.
    assert [await listener.next() for _ in range(2)] == [("revoked", (0,)), ("assigned", (0,))]
    until(lambda: client.closed)
    assert (notes.names().count("kafka_client_renewed"), len(clients.made)) == (1, 2)
    assert "kafka_client_failed" not in notes.names()
    assert await member.stop()


async def test_given_a_planned_end_whose_drain_is_cut_then_the_guard_is_over_before_the_group_is_left(
    client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The goodbye gives everything to others; what waits in the guarded producer would leave beside them."""

    class Slow(Listener):
        def revoked(self, topic_partitions: Sequence[int], drain: Drain) -> None:
            self.events.put_nowait(("revoked", tuple(topic_partitions)))  # And is never done.

    told: list[OnCommit] = []

    def make(settings: KafkaSettings, on_commit: OnCommit) -> FakeClient:
        told.append(on_commit)
        return client

    def committed() -> None:
        told[0](None, client.commits[0])

    member = a_member(make, Slow(), topic, clock, notes, stop_drain_ms_max=0)
    held: list[bool] = []
    monkeypatch.setattr(client, "close", lambda: held.append(member.guard_holds()))
    member.start()
    until(lambda: bool(client.commits))
    client.during_poll.append(committed)
    until(member.guard_holds)
    assert await member.stop()
    assert held == [False]


class FallenMember:
    """A group that has a member of before, of node `n-1`, and one of another node.

    Attributes:
        is_out: The session of the one that fell has run out.
        asked: How often who is in the group was asked.
    """

    def __init__(self, begun_ms: int) -> None:
        self.is_out = False
        self.asked = 0
        self._begun_ms = begun_ms

    def describe_consumer_groups(
        self, group_ids: Sequence[str], *, request_timeout: float
    ) -> dict[str, Future[SimpleNamespace]]:
        self.asked += 1
        settings = KafkaSettings(allow_plaintext=True)
        present = [client_id(settings, "n-2", "b" * 8)]
        if not self.is_out:
            present.append(client_id(settings, "n-1", "a" * 8))
        answer = Future[SimpleNamespace]()
        answer.set_result(SimpleNamespace(members=[SimpleNamespace(client_id=f"{each}-owner") for each in present]))
        return {group_ids[0]: answer}

    def former_life(self) -> PreviousIncarnation:
        return PreviousIncarnation(
            KafkaSettings(allow_plaintext=True), "n-1", self._begun_ms, lambda _, ask: ask(cast("AdminClient", self))
        )


@pytest.mark.parametrize("way", ["out of the group", "as old as a guard"])
async def test_given_a_former_life_in_the_group_then_it_joins_when_that_is(
    way: str, client: FakeClient, clock: ManualClock, notes: Notes, topic: Topic
) -> None:
    """It joined at once, and all others' guards lapsed while the rebalance waited for its former session (published run of 2026-11-30)."""

    def broken() -> None:
        raise OSError("broken")

    fallen, listener, clients = FallenMember(clock.now), Listener(), Clients(client, type(client)())
    member = a_member(clients, listener, topic, clock, notes, former=fallen.former_life(), restart_wait_ms=10)
    member.start()
    until(lambda: fallen.asked >= 2)
    assert clients.made == []

    clock.now += 4_000
    if way == "out of the group":
        fallen.is_out = True
    else:
        clock.now += 500
    assert await listener.next() == ("assigned", (0,))
    assert [fields for name, fields in notes.events if name == "former_life_awaited"] == [{"waited_ms": ANY}]

    asked = fallen.asked
    client.during_poll.append(broken)
    assert await listener.next() == ("lost", (0,))
    assert await listener.next() == ("assigned", (0,))
    assert fallen.asked == asked
    assert await member.stop()


async def test_given_an_end_while_it_waits_for_its_former_life_then_it_ends(
    clock: ManualClock, notes: Notes, topic: Topic
) -> None:
    fallen, clients = FallenMember(clock.now), Clients()
    member = a_member(clients, Listener(), topic, clock, notes, former=fallen.former_life())
    member.start()
    until(lambda: fallen.asked >= 1)
    assert await member.stop()
    assert "kafka_client_failed" not in notes.names()
