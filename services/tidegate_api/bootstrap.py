"""Builds an API process from its settings. It is the only module of the API that knows DynamoDB, Kafka and the local launcher."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException
from fastapi import FastAPI
from pydantic import TypeAdapter, ValidationError

from tidegate_api.app import make_app
from tidegate_api.bus_clients import Bus, OpenBus, TopicNames
from tidegate_api.dependencies import Dependencies
from tidegate_api.run_logs import FileLogs
from tidegate_api.settings import MIB, OTHERS, ApiSettings, SettingsInvalid, read_secrets
from tidegate_api.start_gate import CarryOut
from tidegate_core.language.values.problems import did_you_mean
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.settlement import Verdict
from tidegate_dynamo.client_factory import UNUSABLE, make_client, why_unusable
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_dynamo.transaction_sender import carry_out
from tidegate_kafka.admin.log_reader import KafkaLogReader
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.partition_reader import KafkaPartitionReader
from tidegate_kafka.producer.producer import KafkaPublisher
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.bus import Notices, ReaderListener
from tidegate_ports.clock import Clock, SystemClock
from tidegate_ports.common.settings_loader import SettingsRefused, load_settings, load_with_sources
from tidegate_ports.common.settings_rows import SettingRow, setting_rows
from tidegate_ports.store import Store
from tidegate_telemetry.metrics import Metrics
from tidegate_telemetry.store_metrics import calls_measured, units_counted

__all__ = ["Settings", "SettingsRefused", "build", "effective_settings", "load"]

T = TypeVar("T")

DELIVERY_MS_MAX: Final = 5_000
"""Default of Kafka's delivery timeout, in ms. It is short because a client waits: after it the answer says that the broker is down."""
CLIENT_ID: Final = "tidegate-api"


class Settings(ApiSettings):
    """Settings of an API process, including the Kafka adapter's."""

    kafka: KafkaSettings


def load(environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """Reads the settings; `given` sections and fields override them. Raises SettingsRefused."""
    return load_settings(Settings, os.environ if environment is None else environment, OTHERS, **given)


def effective_settings(environment: Mapping[str, str]) -> list[SettingRow]:
    """Returns each setting as an API process uses it; `tidegate config show` prints them. Raises SettingsRefused."""
    loaded = load_with_sources(Settings, environment, OTHERS)
    try:
        local_settings(loaded.settings)
        used = {"kafka": kafka_settings(loaded.settings), "dynamodb": dynamo_settings(loaded.settings)}
    except SettingsInvalid as refusal:
        raise SettingsRefused([str(refusal)]) from refusal
    return setting_rows("api", loaded, used)


def build(settings: Settings, notices: Notices, metrics: Metrics) -> FastAPI:
    """Returns the application of these settings. It connects to nothing before its lifespan begins.

    Raises:
        SettingsInvalid: A setting cannot work.
    """
    secrets = read_secrets(settings.gate)
    kafka, dynamo, local = kafka_settings(settings), dynamo_settings(settings), local_settings(settings)
    clock = SystemClock()
    try:
        items = make_client(dynamo).items
    except UNUSABLE as wrong:
        raise SettingsInvalid(why_unusable(wrong)) from wrong
    store = DynamoStore(items, dynamo, calls_measured(metrics), units_counted(metrics))
    try:
        topics = TopicFacts(kafka)
    except KafkaException as wrong:
        # For example a property that only the client can check, or an unreadable certificate.
        raise SettingsInvalid(f"kafka: {wrong.args[0].str()}") from wrong
    parts = Dependencies(
        store=store,
        carry_out=settled_on(store),
        open_bus=kafka_bus(kafka, topics, clock, notices),
        logs=FileLogs(LocalLauncher(local).log_paths),
        clock=clock,
        notices=notices,
        metrics=metrics,
        secrets=secrets,
        topics=TopicNames.with_prefix(kafka.topic_prefix),
        host=settings.api.host,
        gate_url=settings.gate.url,
        large_bodies_bytes_max=settings.api.large_bodies_mib_max * MIB,
        gate_threads=settings.api.gate_threads,
        read_threads=settings.api.read_threads,
        minimum_period_ms=settings.minimum_period_ms,
        quotas=settings.quotas,
    )
    return make_app(parts)


def settled_on(store: Store) -> CarryOut:
    """Returns a function that sends a transaction to this store until its verdict is known."""

    def settle(transaction: Transaction) -> Verdict:
        return carry_out(store, transaction, lambda ms: time.sleep(ms / 1000), random.random)

    return settle


def kafka_bus(settings: KafkaSettings, topics: TopicFacts, clock: Clock, notices: Notices) -> OpenBus:
    """Returns a context manager that starts the Kafka clients on the running loop."""

    @asynccontextmanager
    async def opened(listener: ReaderListener) -> AsyncIterator[Bus]:
        loop = asyncio.get_running_loop()
        # Without a membership lease: any process may produce requests, events and wake-ups.
        publisher = KafkaPublisher(settings, loop=loop, clock=clock, notices=notices)
        reader = KafkaPartitionReader(settings, listener, topics, loop=loop, clock=clock, notices=notices)
        log_reader = KafkaLogReader(settings, topics)
        publisher.start()
        reader.start()
        try:
            yield Bus(publisher, topics, reader, log_reader, log_reader)
        finally:
            log_reader.close()
            await reader.stop()
            await publisher.stop()

    return opened


def kafka_settings(settings: Settings) -> KafkaSettings:
    """Returns the adapter's settings with the API's own defaults."""
    ours = {"client_id": CLIENT_ID, "delivery_ms_max": DELIVERY_MS_MAX}
    given = settings.kafka.model_fields_set
    return settings.kafka.model_copy(update={name: value for name, value in ours.items() if name not in given})


def dynamo_settings(settings: Settings) -> DynamoSettings:
    """Raises SettingsInvalid."""
    given = settings.store_fields()
    known = [field.name for field in fields(DynamoSettings)]
    for name in given:
        if name not in known:
            raise SettingsInvalid(f"TIDEGATE_DYNAMODB__{name.upper()}: no such setting; {did_you_mean(name, known)}")
    # Validated, so that texts from the environment become the types of the fields.
    return _checked("TIDEGATE_DYNAMODB__", lambda: TypeAdapter(DynamoSettings).validate_python(given))


def local_settings(settings: Settings) -> LocalSettings:
    """Raises SettingsInvalid."""
    return _checked("TIDEGATE_DATA_DIR", lambda: LocalSettings(data_dir=settings.data_dir))


def _checked(name: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except (TypeError, ValueError, ValidationError) as error:
        raise SettingsInvalid(f"{name}…: {error}") from error
