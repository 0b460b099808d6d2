"""A real broker, topics of a prefix of their own for each test, and members that record what they are told."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal, TypeAlias

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.support.servers.servers import KafkaForTests
from tidegate_bricks import KafkaBrick
from tidegate_core.rows.effects import Unavailable
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_kafka.admin.topic_provisioning import TopicAdmin
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.group.group_session import GroupSession, GroupSessionUnavailable, group_session
from tidegate_kafka.group.membership import KafkaMembership, MakeClient, make_consumer
from tidegate_kafka.group.previous_incarnation import PreviousIncarnation
from tidegate_ports.bus import Drain, MembershipListener, Record, Topic
from tidegate_ports.clock import SystemClock

PATIENCE_S = 60.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""
SETTLED_SESSION_MS = 15_000
"""Tests do not wait for its end: a machine that stands still for seconds neither expels a member nor lets its guard lapse."""
SHORT_SESSION_MS = 3_000
"""Tests wait for its end; our local broker allows it."""
SESSION_MS_MIN = 6_000
"""The least that any other broker allows by default."""
HEARTBEAT_MS = 300
Protocol: TypeAlias = Literal["classic", "consumer"]


class Recorder(MembershipListener):
    """A listener that serves at once: seeks where it is told to, takes every record, drains immediately."""

    def __init__(self) -> None:
        self.member: KafkaMembership | None = None
        self.owned: set[int] = set()
        self.events: list[tuple[str, Any]] = []
        self.got: list[Record] = []
        self.start_at: Callable[[int], int] | None = lambda _: 0
        self.takes = True
        self.drains = True
        self.drain: Drain | None = None
        self._changed = asyncio.Event()

    def assigned(self, topic_partitions: Sequence[int]) -> None:
        self.owned |= set(topic_partitions)
        self._note("assigned", tuple(topic_partitions))
        for number in topic_partitions:
            if self.start_at is not None and self.member is not None:
                self.member.seek_and_resume(number, self.start_at(number))

    def revoked(self, topic_partitions: Sequence[int], drain: Drain) -> None:
        self.owned -= set(topic_partitions)
        self.drain = drain
        self._note("revoked", tuple(topic_partitions))
        if self.drains:
            drain.done()

    def lost(self, topic_partitions: Sequence[int]) -> None:
        self.owned -= set(topic_partitions)
        self._note("lost", tuple(topic_partitions))

    def records(self, topic_partition: int, records: Sequence[Record]) -> None:
        self.got.extend(records)
        if self.takes and self.member is not None:
            self.member.taken(topic_partition, len(records))
        self._changed.set()

    def position_gone(self, topic_partition: int, offset: int) -> None:
        self._note("position_gone", (topic_partition, offset))

    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Waits, event by event."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pytest.fail(
                f"{what}: not within {PATIENCE_S:g} s; owned {sorted(self.owned)}, events {self.events}, got {len(self.got)} {[each.value for each in self.got[-5:]]}"
            )

    def _note(self, name: str, detail: object) -> None:
        self.events.append((name, detail))
        self._changed.set()


class World:
    """What one test works with; whatever joined is stopped at its end."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.notices: list[tuple[str, dict[str, object]]] = []
        self.facts = TopicFacts(settings)
        self._joined: list[KafkaMembership] = []

    def notice(self, event: str, **fields: object) -> None:
        self.notices.append((event, fields))

    async def lengthen_session(self, session_ms: int) -> None:
        """For members that join from now on, by KIP-848; their poll gap stays."""
        longer = self.settings.model_copy(update={"session_ms": session_ms})
        self.settings = await asyncio.to_thread(told_to_the_brokers, longer)

    async def topic(self, name: str) -> Topic:
        full = self.settings.topic(name)
        described = await self.facts.describe([full])
        assert not isinstance(described, Unavailable), described
        return described[full]

    async def member(
        self,
        recorder: Recorder | None = None,
        make: MakeClient = make_consumer,
        *,
        follows: bool = False,
        former: PreviousIncarnation | None = None,
    ) -> tuple[KafkaMembership, Recorder]:
        """Joins the group and returns at once; its recorder tells what it is given. As nodes do it asks, if it `follows`, which topic there is."""
        recorder = recorder or Recorder()
        member = KafkaMembership(
            self.settings,
            await self.topic("requests"),
            recorder,
            loop=asyncio.get_running_loop(),
            clock=self.clock,
            notices=self.notice,
            make=make,
            topics=self.facts if follows else None,
            former=former,
        )
        recorder.member = member
        self._joined.append(member)
        member.start()
        return member, recorder

    async def close(self) -> None:
        for member in self._joined:
            assert await member.stop()


def settings_for(bootstrap_servers: str, session_ms: int, protocol: Protocol = "classic") -> KafkaSettings:
    """Settings of a group of its own. With KIP-848 its session is told to the brokers, and read back as a node does."""
    name = f"t{uuid.uuid4().hex[:12]}"
    settings = KafkaSettings(
        bootstrap_servers=bootstrap_servers,
        allow_plaintext=True,
        topic_prefix=name,
        group=name,
        client_id=name,
        group_protocol=protocol,
        session_ms=session_ms,
        heartbeat_ms=HEARTBEAT_MS,
        poll_gap_ms_max=2 * session_ms,
        drain_ms_max=1_000,
        stop_drain_ms_max=60_000,
        answer_ms_max=20_000,
        delivery_ms_max=30_000,
    )
    return settings if protocol == "classic" else told_to_the_brokers(settings)


def told_to_the_brokers(settings: KafkaSettings) -> KafkaSettings:
    """Sets the session of a group of KIP-848, and reads it back as a node does when it starts."""
    told = {"consumer.session.timeout.ms": settings.session_ms, "consumer.heartbeat.interval.ms": HEARTBEAT_MS}
    entries = [
        ConfigEntry(each, str(value), incremental_operation=AlterConfigOpType.SET) for each, value in told.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, settings.group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)
    wanted = GroupSession("consumer", settings.session_ms, HEARTBEAT_MS, "group")
    deadline = time.monotonic() + PATIENCE_S
    # What the controller has taken reaches the coordinator a moment later, and nothing tells when.
    while _session_of(settings) != wanted:
        assert time.monotonic() < deadline, "the coordinator does not know the session"
        time.sleep(0.02)
    return wanted.settings(settings)


def _session_of(settings: KafkaSettings) -> GroupSession | None:
    """None while a broker that has just begun, on a busy machine, gives no answer."""
    try:
        return group_session(settings)
    except GroupSessionUnavailable:
        return None


@pytest.fixture
def protocol() -> Protocol:
    """The group's; tests that must hold with both are parametrised."""
    return "classic"


@pytest.fixture
def session_ms() -> int:
    """The group's; tests that wait for its end are parametrised with a short one."""
    return SETTLED_SESSION_MS


@pytest.fixture
async def world(kafka: KafkaForTests, protocol: Protocol, session_ms: int) -> AsyncIterator[World]:
    if kafka.brick is None and protocol == "consumer":
        pytest.skip("this broker does not allow a KIP-848 session as short as a test needs")
    if kafka.brick is None:
        session_ms = max(session_ms, SESSION_MS_MIN)
    settings = await asyncio.to_thread(settings_for, kafka.bootstrap_servers, session_ms, protocol)
    assert await asyncio.to_thread(lambda: TopicAdmin(settings).apply()) == []
    world = World(settings)
    yield world
    await world.close()


@pytest.fixture
async def fragile_world(stoppable_kafka: KafkaBrick, protocol: Protocol, session_ms: int) -> AsyncIterator[World]:
    settings = await asyncio.to_thread(settings_for, stoppable_kafka.bootstrap_servers, session_ms, protocol)
    assert await asyncio.to_thread(lambda: TopicAdmin(settings).apply()) == []
    world = World(settings)
    yield world
    if not stoppable_kafka.running:
        await asyncio.to_thread(stoppable_kafka.start)
    await world.close()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
