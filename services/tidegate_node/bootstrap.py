"""Builds a node, or a cluster's tables, topics and map, from the adapters: the one place of this service that knows them.

The command line uses `load`, `run` and `initialise`; nothing else of this service is meant for others.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from pynamodb.exceptions import PynamoDBException

from tidegate_core.decisions.event_index import EventIndex
from tidegate_core.decisions.inputs import Holding
from tidegate_core.effects import Committed, Refused, Unavailable
from tidegate_core.store.values import Item, Key, Transaction
from tidegate_dynamo.client import make_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.settled import carry_out
from tidegate_dynamo.store import DynamoStore
from tidegate_dynamo.tables import check_tables, create_tables
from tidegate_kafka.membership import KafkaMembership
from tidegate_kafka.partition_reader import KafkaPartitionReader
from tidegate_kafka.producer import KafkaPublisher
from tidegate_kafka.settings import KafkaSettings
from tidegate_kafka.topic_facts import TopicFacts as BrokerTopics
from tidegate_kafka.topics import TopicAdmin, TopicsUnavailable
from tidegate_launchers.local import LocalLauncher
from tidegate_launchers.local_settings import LocalSettings
from tidegate_node.bus_effects import BusEffects
from tidegate_node.cluster_init import initialise_cluster
from tidegate_node.facts import NodeFacts
from tidegate_node.health import HealthServer
from tidegate_node.heartbeat_loop import HeartbeatLoop
from tidegate_node.holdings import GroupListener, Holdings, OthersListener
from tidegate_node.launch_effects import LaunchEffects
from tidegate_node.load_settings import SettingsRefused, load_settings
from tidegate_node.node import Node, Parts
from tidegate_node.partition_driver import DriverEvents, PartitionDriver, partition_actor
from tidegate_node.settings import NodeSettings
from tidegate_node.shell import Shell
from tidegate_node.startup import (
    EXIT_CONFIGURATION,
    EXIT_TRY_LATER,
    Difference,
    NotYet,
    StartRefused,
    TopicNames,
    gate_secret,
    node_facts,
    patiently,
)
from tidegate_node.store_effects import StoreEffects
from tidegate_ports.bus import Topic
from tidegate_ports.clock import SystemClock
from tidegate_telemetry.logs import Notifier, set_up_logs
from tidegate_telemetry.metrics import Metrics

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["NotYet", "Settings", "SettingsRefused", "StartRefused", "initialise", "load", "run"]

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
EXIT_SIGNAL_BASE: Final = 128
"""A process that a signal ended is shown as 128 + its number."""


class Settings(NodeSettings):
    """A node's settings with those of the Kafka adapter."""

    kafka: KafkaSettings = KafkaSettings()


def load(environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """Reads the settings; `given` sections and fields win. Raises SettingsRefused."""
    return load_settings(Settings, os.environ if environment is None else environment, **given)


def initialise(settings: Settings, *, check: bool = False) -> list[Difference]:
    """Makes tables, topics and map where they are missing, or only compares.

    Returns:
        What is not as it should be; `str(difference.text)` is a sentence, `unsafe` ones keep nodes from serving.

    Raises:
        NotYet: A brick does not answer.
        StartRefused: `shards` cannot be.
    """
    bricks = _Bricks(settings)
    return initialise_cluster(
        settings.shards, _topic_names(settings.kafka), bricks, partial(BrokerTopics, settings.kafka), check=check
    )


def run(settings: Settings) -> int:
    """Runs a node until a signal ends it; returns the process's exit code."""
    set_up_logs(settings.log.level, settings.log.format)
    metrics = Metrics()
    notices = Notifier(metrics, node=settings.node)
    try:
        return asyncio.run(_run(settings, metrics, notices))
    except StartRefused as refusal:
        notices("node_refused", message=str(refusal))
        return EXIT_CONFIGURATION
    except NotYet as silence:
        notices("node_refused", message=f"gave up waiting: {silence}")
        return EXIT_TRY_LATER


async def _run(settings: Settings, metrics: Metrics, notices: Notifier) -> int:
    stop = asyncio.Event()
    _listen_to_signals(stop)
    clock = SystemClock()
    kafka = settings.kafka
    notices("node_starting", version=version("tidegate"), brokers=kafka.bootstrap_servers, pid=os.getpid())
    secret = gate_secret(settings.gate.secret_file)
    bricks = _Bricks(settings, metrics)
    brokers = BrokerTopics(kafka)
    names = _topic_names(kafka)
    starting = asyncio.ensure_future(
        patiently(
            lambda: node_facts(settings, names, bricks, brokers, notices), settings.startup_wait_s, clock, notices
        )
    )
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        return 0
    with ThreadPoolExecutor(settings.dynamodb.connections_max, thread_name_prefix="tidegate-store") as threads:
        store = StoreEffects(bricks.store, threads, clock, metrics)
        node = _build(settings, starting.result(), secret, store, brokers, clock, metrics, notices)
        stopping.add_done_callback(lambda _: node.stop())
        try:
            return await node.run()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _build(
    settings: Settings,
    facts: NodeFacts,
    secret: bytes,
    store: StoreEffects,
    brokers: BrokerTopics,
    clock: SystemClock,
    metrics: Metrics,
    notices: Notifier,
) -> Node:
    """Wires the parts: bus, holdings and drivers know each other, so the holdings are connected last."""
    loop = asyncio.get_running_loop()
    # Of this process alone: equal client ids can loop in rebalances.
    kafka = settings.kafka.model_copy(update={"client_id": f"{settings.kafka.client_id}-{facts.owner[:8]}"})
    holdings = Holdings(facts, clock, notices, loop)
    topic = Topic(facts.requests.name, facts.requests.id, facts.requests.topic_partitions)
    client: dict[str, Any] = {"loop": loop, "clock": clock, "notices": notices}
    membership = KafkaMembership(kafka, topic, GroupListener(holdings), **client)
    reader = KafkaPartitionReader(kafka, OthersListener(holdings), brokers, **client)
    guarded = KafkaPublisher(kafka, **client, guard_holds=membership.guard_holds)
    plain = KafkaPublisher(kafka, **client)
    launch = LaunchEffects(
        LocalLauncher(_launcher_settings(settings)),
        guard_holds=membership.guard_holds,
        gate_url=settings.gate.url,
        secret=secret,
        clock=clock,
        metrics=metrics,
        notices=notices,
    )
    bus = BusEffects(
        facts,
        membership=membership,
        reader=reader,
        guarded=guarded,
        plain=plain,
        topics=brokers,
        poke_here=holdings.poke,
        clock=clock,
        metrics=metrics,
    )
    node = Node(Parts(facts, holdings, membership, reader, guarded, plain, launch, clock, metrics, notices))
    heartbeats = HeartbeatLoop(
        facts, store=store, plain=plain, clock=clock, metrics=metrics, notices=notices, act=node.act
    )
    shell = Shell(store, bus, launch, clock, notices)
    holdings.connect(_DriverMaker(facts, shell, node, loop), reader, heartbeats)
    try:
        health = HealthServer(settings.health.host, settings.health.port, node.standing, node.refresh, metrics)
    except OSError as taken:
        where = f"{settings.health.host}:{settings.health.port}"
        raise StartRefused(f"health.host and health.port: cannot listen on {where}: {taken.strerror}") from taken
    node.connect(heartbeats, health)
    return node


class _DriverMaker:
    """Makes drivers; each actor that they build has a tenure of its own, so that no token ever repeats."""

    def __init__(self, facts: NodeFacts, shell: Shell, node: Node, loop: asyncio.AbstractEventLoop) -> None:
        self._facts = facts
        self._shell = shell
        self._events = DriverEvents(node.actor_failed, node.actor_ended)
        self._loop = loop
        self._index = EventIndex()
        self._tenures = 0

    def __call__(self, topic_partition: int) -> PartitionDriver:
        make = partition_actor(partial(self._holding, topic_partition), self._index)
        return PartitionDriver(topic_partition, make, self._shell, self._events, self._loop)

    def _holding(self, topic_partition: int) -> Holding:
        self._tenures += 1
        return self._facts.holding(topic_partition, self._tenures)


class _Bricks:
    """Tables, topics and items, as start-up and `tidegate init` see them. Blocking."""

    def __init__(self, settings: Settings, metrics: Metrics | None = None) -> None:
        self._dynamo = _dynamo_settings(settings)
        self._client: DynamoDBClient = make_client(self._dynamo)
        self._kafka = settings.kafka
        self.store = DynamoStore(self._client, self._dynamo, _observer(metrics) if metrics else lambda *_: None)

    def tables(self) -> Sequence[Difference]:
        # Billing and expiry are an operator's choice; a table that is not there, or has another key, is not.
        return [
            Difference(str(found), unsafe=found.what not in ("its billing mode", "its expiry attribute"))
            for found in self._asked_store(check_tables)
        ]

    def make_tables(self) -> None:
        self._asked_store(create_tables)

    def topics(self) -> Sequence[Difference]:
        try:
            return [Difference(str(found), found.unsafe) for found in TopicAdmin(self._kafka).check()]
        except TopicsUnavailable as silence:
            raise NotYet(str(silence)) from silence

    def make_topics(self) -> None:
        try:
            TopicAdmin(self._kafka).apply()
        except TopicsUnavailable as silence:
            raise NotYet(str(silence)) from silence

    def items(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        return self.store.get(keys)

    def commit(self, transaction: Transaction) -> Committed | Refused | Unavailable:
        verdict = carry_out(
            self.store, transaction, lambda milliseconds: time.sleep(milliseconds / 1000), random.random
        )
        assert isinstance(verdict, Committed | Refused | Unavailable)
        return verdict

    def _asked_store(self, ask: Any) -> Any:
        try:
            return ask(self._dynamo, self._client)
        except (ClientError, BotoCoreError, PynamoDBException) as failure:
            raise NotYet(f"store: {failure}") from failure


def _topic_names(kafka: KafkaSettings) -> TopicNames:
    return TopicNames(
        requests=kafka.topic("requests"),
        events=kafka.topic("events"),
        pokes=kafka.topic("pokes"),
        receipts=kafka.topic("receipts"),
        runs=kafka.topic("runs"),
        requests_dlq=kafka.topic("requests.dlq"),
        events_dlq=kafka.topic("events.dlq"),
    )


def _dynamo_settings(settings: Settings) -> DynamoSettings:
    section = settings.dynamodb
    return DynamoSettings(
        endpoint_url=section.endpoint_url,
        region=section.region,
        table_prefix=section.table_prefix,
        connect_timeout_s=section.connect_timeout_s,
        read_timeout_s=section.read_timeout_s,
        connections_max=section.connections_max,
    )


def _launcher_settings(settings: Settings) -> LocalSettings:
    section = settings.launcher
    try:
        return LocalSettings(
            data_dir=settings.data_dir,
            host=section.host,
            python=section.python,
            spark_home=section.spark_home,
            spark_master=section.spark_master,
            gate_wait_s=section.gate_wait_s,
            report_wait_s=section.report_wait_s,
            submit_timeout_s=section.submit_timeout_s,
            cancel_grace_s=section.cancel_grace_s,
        )
    except ValueError as wrong:
        raise StartRefused(str(wrong)) from wrong


def _observer(metrics: Metrics) -> Any:
    def observe(operation: str, outcome: str, seconds: float) -> None:
        metrics.observe("tidegate_store_call_seconds", seconds, operation=operation)
        if outcome != "ok":
            metrics.count("tidegate_store_call_failures_total", operation=operation, code=outcome)

    return observe


def _listen_to_signals(stop: asyncio.Event) -> None:
    """The first signal drains; a second one ends the process at once."""

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(EXIT_SIGNAL_BASE + number)
        stop.set()

    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
