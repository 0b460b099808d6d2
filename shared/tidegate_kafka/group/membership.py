"""This process's membership in the group: the asyncio side of `Member`, and the thread that runs it.

Implements the port `Membership`. Call the methods on the loop, except `guard_holds`, `owned` and the figures for
health.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tidegate_core.engine.membership_lease import MembershipLease
from tidegate_kafka.clients.client_config import membership_config
from tidegate_kafka.clients.client_log import LOG
from tidegate_kafka.clients.client_thread import ClientThread
from tidegate_kafka.clients.connectivity import OthersFind, close_aside, others_find
from tidegate_kafka.clients.loop_bridge import post_to
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.consumer_commands import ConsumerCommands
from tidegate_kafka.consumer.partition_flows import Client
from tidegate_kafka.consumer.topic_ids import TopicIds
from tidegate_kafka.consumer.topic_recreation import RecreationDetector
from tidegate_kafka.group.commit_probes import Probes
from tidegate_kafka.group.group_member import Callbacks, Member
from tidegate_kafka.group.member_events import MemberEvents
from tidegate_kafka.group.previous_incarnation import PreviousIncarnation
from tidegate_ports.bus import MembershipListener, Notices, Topic, Topics
from tidegate_ports.clock import Clock

CLOSE_MS_MAX = 10_000
"""Time-out for closing a client that leaves its group while brokers may be away."""

FORMER_LIFE_LOOK_S = 0.5
"""Interval of the check whether the previous incarnation has left the group."""

OnCommit: TypeAlias = Callable[[KafkaError | None, Sequence[TopicPartition]], object]
OnRebalance: TypeAlias = Callable[[Any, list[TopicPartition]], Any]


class GroupClient(Client, Protocol):
    """A client that can join a group."""

    def subscribe(
        self,
        topics: list[str],
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
    ) -> None: ...


MakeClient: TypeAlias = Callable[[KafkaSettings, OnCommit], GroupClient]


def make_consumer(settings: KafkaSettings, on_commit: OnCommit) -> GroupClient:
    return Consumer({**membership_config(settings), "on_commit": on_commit, "logger": LOG})


class KafkaMembership:
    """One member of the group. It may be started and stopped repeatedly.

    Args:
        settings: Settings with the group's session (`GroupSession.settings`).
        topic: Ownership topic, as known now.
        listener: Receives assignments, revocations and records.
        loop: Loop that the listener is called on.
        clock: Monotonic clock.
        notices: Receives log events.
        make: Creates a client.
        topics: With it, records carry the id of the topic they lie in, queried after the read. A client that knew a
            former topic of the same name hands over and is replaced (`RecreationDetector`). Without it, the topic must
            never be recreated.
        others: Query whether a probe client finds a broker.
        former: With it, the first client of a process that restarted at once joins late enough that no member waits
            long for the previous incarnation.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        topic: Topic,
        listener: MembershipListener,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        notices: Notices,
        make: MakeClient = make_consumer,
        topics: Topics | None = None,
        others: OthersFind = others_find,
        former: PreviousIncarnation | None = None,
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._former = former
        self._clock = clock
        self._notices = notices
        self._loop = loop
        self._make = make
        self._others = others
        self._orders = ConsumerCommands()
        self._guard = MembershipLease(settings.half_session_ms, settings.settle_ms)
        self._teller = MemberEvents(listener, self._orders, topic, post_to(loop))
        self._made_anew: RecreationDetector | None = None
        self._renewals = 0
        if topics is not None:
            self._teller.ids = TopicIds(topics, self._teller.hand_on, loop=loop, notices=notices)
            self._made_anew = RecreationDetector(topics, self._renew, loop=loop, notices=notices)
            self._made_anew.know(topic)
        self._probes = Probes(topic.name, self._guard, settings.probe_every_ms, post_to(loop), notices)
        self._thread = ClientThread("tidegate-membership", self._serve, notices, settings.restart_wait_ms)
        self.rebalances = 0
        self.joined = False
        self.polled_at_ms = clock.monotonic_ms()

    def start(self) -> None:
        """Joins the group; assignments come through the listener. Idempotent."""
        self.polled_at_ms = self._clock.monotonic_ms()
        if self._made_anew is not None:
            self._made_anew.start()
        self._thread.start()

    async def stop(self) -> bool:
        """Drains, leaves the group and closes the client; returns False if that took too long. Idempotent."""
        if self._made_anew is not None:
            self._made_anew.stop()
        stopped = await self._thread.stop(self._settings.stop_drain_ms_max + CLOSE_MS_MAX)
        if self._teller.ids is not None:
            self._teller.ids.stop()
        return stopped

    def seek_and_resume(self, topic_partition: int, offset: int) -> None:
        self._teller.progress.begun(topic_partition, offset)
        self._orders.seek((self._topic.name, topic_partition), offset)
        self._orders.hint((self._topic.name, topic_partition), offset)

    def stop_reading(self, topic_partition: int) -> None:
        self._teller.progress.ended(topic_partition)
        self._orders.stop((self._topic.name, topic_partition))

    def taken(self, topic_partition: int, count: int) -> None:
        self._teller.progress.taken(topic_partition, count)
        self._orders.taken((self._topic.name, topic_partition), count)

    def commit_hint(self, topic_partition: int, offset: int) -> None:
        self._orders.hint((self._topic.name, topic_partition), offset)

    def standing(self, ends: Mapping[int, int]) -> Mapping[int, int]:
        return dict(self._teller.progress.standing(ends))

    def restart(self, topic_partition: int, offset: int) -> None:
        """Restarts the reading, or replaces the client after a hand-over."""
        remedy = self._teller.progress.remedy(topic_partition, offset)
        if remedy == "another client":
            self._renew(self._topic.name)
        elif remedy is not None:
            self._notices(
                "kafka_reading_restarted", topic=self._topic.name, topic_partition=topic_partition, offset=offset
            )
            self._orders.seek((self._topic.name, topic_partition), offset)

    async def prove(self, topic_partition: int) -> bool | None:
        if topic_partition not in self.owned():
            return False
        if self.guard_holds():
            return True
        answer: asyncio.Future[bool | None] = self._loop.create_future()
        if not self._probes.ask(topic_partition, answer):
            return None
        try:
            async with asyncio.timeout(self._settings.half_session_ms / 1000):
                return await answer
        except TimeoutError:
            return None

    def guard_holds(self) -> bool:
        return self._guard.holds(self._clock.monotonic_ms())

    def owned(self) -> frozenset[int]:
        return self._teller.heard_of(self._probes.owned)

    def _renew(self, topic: str) -> None:
        self._notices("kafka_client_renewed", topic=topic)
        self._renewals += 1

    def _serve(self) -> None:
        """Serves one client until it ends, on the membership's thread."""
        if not self._former_life_let_go():
            return
        renewals = self._renewals
        callbacks = Callbacks()
        client = self._make(self._settings, callbacks.on_commit)
        member = callbacks.member = self._member(client)
        self._guard.begun()
        self._teller.begin_again()
        try:
            client.subscribe(
                [self._topic.name],
                on_assign=callbacks.on_assign,
                on_revoke=callbacks.on_revoke,
                on_lost=callbacks.on_lost,
            )
            while not self._thread.stopping and self._renewals == renewals:
                member.turn()
                self._turned(member)
                self._teller.life.check()
            if not member.hand_over(lambda: self._turned(member)):
                self._notices("kafka_drain_cut", patience_ms=self._settings.stop_drain_ms_max)
            # `close` gives all topic partitions to other members. After it, a drain that was cut must send nothing
            # more.
            self._guard.membership_lost()
        finally:
            self._end(client, member, callbacks)

    def _former_life_let_go(self) -> bool:
        """Waits for the previous incarnation to leave the group; returns False if stopped during the wait.

        Waits once per process and for a bounded time. A member that remains longer is another process of the same name.
        """
        former, self._former = self._former, None
        if former is None:
            return True
        begun = now = self._clock.monotonic_ms()
        while not self._thread.stopping and former.is_in_the_way(now):
            self._thread.pause(FORMER_LIFE_LOOK_S)
            now = self.polled_at_ms = self._clock.monotonic_ms()
        if now > begun:
            self._notices("former_life_awaited", waited_ms=now - begun)
        return not self._thread.stopping

    def _end(self, client: GroupClient, member: Member, callbacks: Callbacks) -> None:
        try:
            if (why := member.why_no_goodbye) is None:
                client.close()
            else:
                self._notices("kafka_left_without_goodbye", reason=why)
                # Reset first: `close` reports remaining topic partitions on the other thread. There it would wait for a
                # drain while the next client already serves.
                callbacks.member = None
                close_aside(client)
        finally:
            callbacks.member = None
            member.abandon()
            self._turned(member)

    def _member(self, client: GroupClient) -> Member:
        return Member(
            client,
            self._settings,
            self._topic,
            orders=self._orders,
            guard=self._guard,
            probes=self._probes,
            teller=self._teller,
            clock=self._clock,
            notices=self._notices,
            others=self._others,
        )

    def _turned(self, member: Member) -> None:
        self.polled_at_ms = self._clock.monotonic_ms()
        self.joined = member.joined
        self.rebalances += member.rebalances
        member.rebalances = 0
