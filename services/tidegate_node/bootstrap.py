"""Builds a node, or a cluster's tables, topics and map, from the adapters. No other module of this service imports
adapters.

The command line calls `load`, `run` and `initialise`. Other modules of this service are private.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from confluent_kafka import KafkaException
from pynamodb.exceptions import PynamoDBException

from tidegate_core.language.constraints.load import LOCAL
from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.store_operations import Item, Key, Transaction
from tidegate_core.writes.partition_map import ClusterMap
from tidegate_dynamo.async_store import AsyncDynamoStore
from tidegate_dynamo.call_metrics import Observer, UnitsListener
from tidegate_dynamo.client_factory import UNUSABLE, make_client, sdk_client, why_unusable
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_dynamo.tables import check_tables, create_tables
from tidegate_dynamo.transaction_sender import carry_out
from tidegate_kafka.admin.log_reader import KafkaLogReader
from tidegate_kafka.admin.topic_growth import GrowthRefused, TopicGrowth
from tidegate_kafka.admin.topic_metadata import TopicFacts as BrokerTopics
from tidegate_kafka.admin.topic_provisioning import TopicAdmin, TopicsUnavailable
from tidegate_kafka.admin.topic_snapshot_reader import LandedOnTopics
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.partition_reader import KafkaPartitionReader
from tidegate_kafka.group.group_session import GroupProtocolRefused, GroupSessionUnavailable, group_session
from tidegate_kafka.group.membership import KafkaMembership
from tidegate_kafka.group.previous_incarnation import PreviousIncarnation, client_id, process_age_ms
from tidegate_kafka.producer.producer import KafkaPublisher
from tidegate_launchers.local.folder_retention import LocalKeeping
from tidegate_launchers.local.host_programs import LocalPrograms
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.settings import LocalSettings
from tidegate_node.assembly import Clients, Surroundings, assemble
from tidegate_node.assigned_partitions import AssignedPartitions, GroupListener, OthersListener
from tidegate_node.commands.cluster_init import initialise_cluster
from tidegate_node.commands.grow.partition_growth import grow_cluster
from tidegate_node.effects.program_shutdown import ProgramsEnd
from tidegate_node.effects.store_effects import StoreEffects
from tidegate_node.effects.threaded_store import ThreadedStore
from tidegate_node.load.host_load import HostLoad
from tidegate_node.load.http_metric import PageLoad
from tidegate_node.node_identity import NodeFacts
from tidegate_node.process_lifecycle import exit_code_of, run_until, seldom_looked_for, stop_on_signals, unless_stopped
from tidegate_node.settings import OTHERS, NodeSettings
from tidegate_node.startup_checks import (
    START,
    Difference,
    NotYet,
    StartRefused,
    TopicNames,
    gate_secret,
    node_facts,
    patiently,
)
from tidegate_node.steady_clock import SteadyClock
from tidegate_ports.bus import Notices, Topic
from tidegate_ports.clock import Clock, SystemClock
from tidegate_ports.common.daemon_threads import apart
from tidegate_ports.common.settings_loader import SettingsRefused, load_settings, load_with_sources
from tidegate_ports.common.settings_rows import SettingRow, setting_rows
from tidegate_ports.load_sampler import LoadSampler
from tidegate_ports.store import AsyncStore, Store
from tidegate_ports.topic_snapshot import LandedRecords
from tidegate_telemetry.log_setup import Notifier, set_up_logs
from tidegate_telemetry.metric_names import NODE_METRICS
from tidegate_telemetry.metrics import Metrics
from tidegate_telemetry.store_metrics import calls_measured, units_counted

__all__ = [
    "NotYet",
    "Settings",
    "SettingsRefused",
    "StartRefused",
    "audited",
    "effective_settings",
    "grown",
    "initialise",
    "load",
    "migrated",
    "run",
]


class Settings(NodeSettings):
    """Settings of a node, with the Kafka adapter's section."""

    kafka: KafkaSettings


def load(environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """Reads the settings; `given` sections and fields override the environment. Raises SettingsRefused."""
    return load_settings(Settings, os.environ if environment is None else environment, OTHERS, **given)


def effective_settings(environment: Mapping[str, str]) -> list[SettingRow]:
    """Returns each setting with the value that a node uses, for `tidegate config show`. Raises SettingsRefused."""
    loaded = load_with_sources(Settings, environment, OTHERS)
    try:
        _launcher_settings(loaded.settings)
        _dynamo_settings(loaded.settings)
    except (StartRefused, ValueError) as refusal:
        raise SettingsRefused([str(refusal)]) from refusal
    return setting_rows("node", loaded)


def initialise(settings: Settings, *, check: bool = False) -> list[Difference]:
    """Creates missing tables, topics and the map, or only compares them.

    Returns:
        Differences from the plan. `str(difference.text)` is a sentence; `unsafe` differences keep nodes from serving.

    Raises:
        NotYet: The store or a broker does not answer.
        StartRefused: `shards` or another setting is impossible, or nodes of other tables read the topics.
    """
    bricks, brokers = _adapters(settings)
    return initialise_cluster(settings.shards, TopicNames.by(settings.kafka.topic), bricks, brokers, check=check)


def audited(settings: Settings) -> tuple[Store, LandedRecords, str]:
    """Returns the inputs of an audit: the tables, a reader of the messages' topics, and the name of the dead-letter
    topic.

    Raises:
        StartRefused: A setting is impossible.
    """
    bricks, _ = _adapters(settings)
    dead_letters = TopicNames.by(settings.kafka.topic).requests_dlq
    return bricks.store, LandedOnTopics(settings.kafka), dead_letters


def migrated(settings: Settings) -> tuple[Store, Callable[[Transaction], Committed | Refused | Unavailable]]:
    """Returns the tables for a migration, and a function that sends a transaction until it is settled.

    Raises:
        StartRefused: A setting is impossible.
    """
    bricks, _ = _adapters(settings)
    return bricks.store, bricks.commit


def grown(settings: Settings, number: int, *, say: Callable[[str], None], wait: Callable[[], None]) -> ClusterMap:
    """Grows the requests topic and the map to this number of topic partitions; see `grow_cluster`."""
    bricks, brokers = _adapters(settings)
    requests = TopicNames.by(settings.kafka.topic).requests
    return grow_cluster(number, requests, bricks, _Growing(settings.kafka), brokers, say=say, wait=wait)


def run(settings: Settings, orders: int | None = None) -> int:
    """Runs a node until a signal, or an order on the descriptor `orders`, ends it; returns the exit code of the
    process.
    """
    set_up_logs(settings.log.level, settings.log.format)
    metrics = Metrics(NODE_METRICS)
    notices = Notifier(metrics, node=settings.node)
    return exit_code_of(_run(settings, metrics, notices, orders), notices)


async def _run(settings: Settings, metrics: Metrics, notices: Notifier, orders: int | None) -> int:
    stop = stop_on_signals(orders)
    clock = SteadyClock(SystemClock(), lambda ahead: notices("clock_stepped", machine_ahead_ms=ahead))
    kafka = settings.kafka
    notices("node_starting", version=version("tidegate"), brokers=kafka.bootstrap_servers, pid=os.getpid())
    secret = gate_secret(settings.gate.secret_file)
    loads = _samplers(settings)
    # The SDK reads its credentials while its client is created, and their source may hang.
    made = await unless_stopped(apart(partial(_adapters, settings, metrics), START), stop)
    if made is None:
        return 0
    bricks, brokers = made
    names = TopicNames.by(kafka.topic)

    async def look() -> tuple[NodeFacts, KafkaSettings]:
        return await node_facts(settings, names, bricks, brokers, notices), await _guarding(kafka, notices)

    found = await unless_stopped(patiently(look, settings.startup_wait_s, clock, notices), stop)
    if found is None:
        return 0
    facts, guarding = found
    with bricks.on_loop() as store, closing(KafkaLogReader(kafka, brokers)) as finder:
        surroundings = Surroundings(
            settings=settings,
            facts=facts,
            secret=secret,
            store=StoreEffects(store, clock, metrics, settings.dynamodb.connections_max),
            topics=brokers,
            finder=finder,
            clients=partial(_clients, guarding, facts, brokers, clock, notices),
            launcher=LocalLauncher(_launcher_settings(settings)),
            run_folders=LocalKeeping(_launcher_settings(settings)),
            loads=loads,
            clock=clock,
            metrics=metrics,
            notices=notices,
        )
        with seldom_looked_for():
            status = await run_until(stop, assemble(surroundings))
    await programs_end(settings, notices).wait(status)
    return status


def programs_end(settings: Settings, notices: Notices) -> ProgramsEnd:
    """Returns the handling of the host's programs at the end of this process."""
    launcher = settings.launcher
    programs = LocalPrograms(_launcher_settings(settings))
    return ProgramsEnd(programs, launcher.end_wait_s, launcher.cancel_grace_s, SystemClock(), notices)


def _samplers(settings: Settings) -> dict[str, LoadSampler]:
    """Creates the samplers of load constraints. Raises StartRefused if a source has the reserved name of the host."""
    sources = settings.load.sources
    if LOCAL in sources:
        raise StartRefused(f"load.sources: {LOCAL} is the host of the node itself; give the source another name")
    pages = {name: PageLoad(source.url, source.resources) for name, source in sources.items()}
    return {LOCAL: HostLoad(), **pages}


def _adapters(settings: Settings, metrics: Metrics | None = None) -> tuple[_Bricks, BrokerTopics]:
    """Creates the clients of the store and the brokers, unconnected.

    Raises:
        StartRefused: A setting that only the client library checks is wrong or missing.
    """
    try:
        bricks = _Bricks(settings, metrics)
    except UNUSABLE as wrong:
        raise StartRefused(why_unusable(wrong)) from wrong
    try:
        return bricks, BrokerTopics(settings.kafka)
    except KafkaException as wrong:
        raise StartRefused(f"kafka: {wrong.args[0].str()}") from wrong


async def _guarding(settings: KafkaSettings, notices: Notices) -> KafkaSettings:
    """Asks how long the group keeps a silent member, logs the result, and returns the settings of the membership lease.

    Raises:
        NotYet: The brokers do not answer.
        StartRefused: The brokers do not speak the protocol, or their session is too short.
    """
    try:
        session = await apart(partial(group_session, settings), START)
    except GroupSessionUnavailable as silence:
        raise NotYet(str(silence)) from silence
    except GroupProtocolRefused as refusal:
        raise StartRefused(f"kafka.{refusal}") from refusal
    try:
        guarding = session.settings(settings)
    except ValueError as wrong:
        raise StartRefused(f"kafka: {wrong}") from wrong
    notices(
        "take_over_bound",
        protocol=session.protocol,
        session_ms=session.session_ms,
        said_by=session.said_by,
        take_over_ms=session.take_over_ms,
        guard_ms=guarding.half_session_ms,
    )
    return guarding


def _clients(
    settings: KafkaSettings,
    facts: NodeFacts,
    brokers: BrokerTopics,
    clock: Clock,
    notices: Notices,
    holdings: AssignedPartitions,
) -> Clients:
    """Creates the Kafka clients of this node, which report to the assignments."""
    own = settings.model_copy(update={"client_id": client_id(settings, facts.name, facts.owner)})
    former = None
    if settings.group_protocol == "classic":
        former = PreviousIncarnation(settings, facts.name, clock.monotonic_ms() - process_age_ms())
    topic = Topic(facts.requests.name, facts.requests.id, facts.requests.topic_partitions)
    common: dict[str, Any] = {"loop": asyncio.get_running_loop(), "clock": clock, "notices": notices}
    membership = KafkaMembership(own, topic, GroupListener(holdings), **common, topics=brokers, former=former)
    return Clients(
        membership=membership,
        reader=KafkaPartitionReader(own, OthersListener(holdings), brokers, **common),
        guarded=KafkaPublisher(own, **common, guard_holds=membership.guard_holds),
        plain=KafkaPublisher(own, **common),
    )


class _Bricks:
    """Tables, topics and items for start-up and `tidegate init`. Blocking."""

    def __init__(self, settings: Settings, metrics: Metrics | None = None) -> None:
        self._dynamo = _dynamo_settings(settings)
        client = make_client(self._dynamo)
        self._kafka = settings.kafka
        self._listeners = _measuring(metrics)
        self._on_loop = client.on_loop
        self.store = DynamoStore(client.items, self._dynamo, *self._listeners)

    @contextmanager
    def on_loop(self) -> Iterator[AsyncStore]:
        """The store for the running loop, while the context is entered."""
        if self._on_loop is not None:
            try:
                yield AsyncDynamoStore(self._on_loop, self._dynamo, *self._listeners)
            finally:
                self._on_loop.close()
            return
        with ThreadPoolExecutor(self._dynamo.connections_max, thread_name_prefix="tidegate-store") as threads:
            try:
                yield ThreadedStore(self.store, threads, self._dynamo.connections_max)
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def tables(self) -> Sequence[Difference]:
        # An operator may choose billing and expiry. A missing table, or one with another key, is unsafe.
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

    def held(self, topic: str) -> frozenset[int] | None:
        return _Growing(self._kafka).held(topic)

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
            with closing(sdk_client(self._dynamo)) as client:
                return ask(self._dynamo, client)
        except (ClientError, BotoCoreError, PynamoDBException) as failure:
            raise NotYet(f"store: {failure}") from failure


def _measuring(metrics: Metrics | None) -> tuple[Observer, UnitsListener] | tuple[()]:
    return () if metrics is None else (calls_measured(metrics), units_counted(metrics))


class _Growing:
    """The requests topic while it grows."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._topics = TopicGrowth(settings)

    def grow(self, topic: str, topic_partitions: int) -> None:
        try:
            self._topics.grow(topic, topic_partitions)
        except GrowthRefused as refusal:
            raise StartRefused(str(refusal)) from refusal
        except TopicsUnavailable as silence:
            raise NotYet(str(silence)) from silence

    def held(self, topic: str) -> frozenset[int] | None:
        try:
            return self._topics.held(topic)
        except TopicsUnavailable as silence:
            raise NotYet(str(silence)) from silence


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
            keep_runs_for_s=section.keep_runs_for_s,
            keep_runs_bytes=section.keep_runs_bytes,
        )
    except ValueError as wrong:
        raise StartRefused(str(wrong)) from wrong
