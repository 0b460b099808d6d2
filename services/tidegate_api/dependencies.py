"""Ports of an API process, which `bootstrap` or a test passes in, and the services that are built from them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tidegate_api.bus_clients import Bus, OpenBus, TopicNames
from tidegate_api.cluster_map import MapReader
from tidegate_api.dead_letter_service import DeadLetterService
from tidegate_api.http.request_bodies import LARGE_TOGETHER_BYTES
from tidegate_api.reads.dead_letters import DeadLetterReads
from tidegate_api.reads.jobs import JobReads
from tidegate_api.reads.limits import LimitReads
from tidegate_api.reads.messages import MessageReads
from tidegate_api.reads.nodes import NodeReads
from tidegate_api.reads.occurrences import OccurrenceReads
from tidegate_api.reads.range_scan import RangeReader
from tidegate_api.reads.runs import RunReads
from tidegate_api.reads.schedules import ScheduleReads
from tidegate_api.reads.shards import ShardReads
from tidegate_api.reads.sources import SourceReads
from tidegate_api.reads.why import WhyReads
from tidegate_api.requests.overtaking import Overtaking
from tidegate_api.requests.receipt_lookup import StoredAnswers
from tidegate_api.requests.receipt_waiters import ReceiptWaiters
from tidegate_api.requests.request_submission import Submission, Timing
from tidegate_api.run_logs import RunLogs
from tidegate_api.start_gate import CarryOut, Gate
from tidegate_api.thread_pools import Pools
from tidegate_api.wakeup_sender import WakeUpSender
from tidegate_core.language.definitions.quotas import Quotas
from tidegate_ports.bus import Notices
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store
from tidegate_telemetry.metrics import Metrics
from tidegate_telemetry.open_transactions import Followed, OpenTransactions


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Ports and values from `bootstrap` or a test.

    Attributes:
        carry_out: Sends one transaction until its verdict is known; blocking.
        open_bus: Starts the Kafka clients on the running loop.
        metrics: Metrics with the API's table.
        secrets: Secrets of the run tokens.
        host: Address on which the API listens.
        gate_url: Base URL under which programs reach the API, if configured.
        large_bodies_bytes_max: Bytes of all large bodies at the same time.
        minimum_period_ms: Shortest period of a time trigger, for dry runs while no node has reported its setting.
        quotas: Quotas for dry runs; an apply is decided by the owner's setting.
    """

    store: Store
    carry_out: CarryOut
    open_bus: OpenBus
    logs: RunLogs
    clock: Clock
    notices: Notices
    metrics: Metrics
    secrets: Sequence[bytes]
    topics: TopicNames
    host: str = "127.0.0.1"
    gate_url: str | None = None
    large_bodies_bytes_max: int = LARGE_TOGETHER_BYTES
    gate_threads: int = 16
    read_threads: int = 16
    minimum_period_ms: int = 10_000
    quotas: Quotas = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class Services:
    """Services that the routes use while the process serves."""

    secrets: Sequence[bytes]
    minimum_period_ms: int
    quotas: Quotas
    clock: Clock
    notices: Notices
    bus: Bus
    topics: TopicNames
    pools: Pools
    metrics: Metrics
    cluster: MapReader
    gate: Gate
    wake_ups: WakeUpSender
    receipt_waiters: ReceiptWaiters
    transactions: OpenTransactions
    submission: Submission
    answers: StoredAnswers
    logs: RunLogs
    schedules: ScheduleReads
    jobs: JobReads
    runs: RunReads
    occurrences: OccurrenceReads
    messages: MessageReads
    sources: SourceReads
    why: WhyReads
    nodes: NodeReads
    shards: ShardReads
    limits: LimitReads
    letters: DeadLetterReads
    dead_letter_service: DeadLetterService


@asynccontextmanager
async def running(parts: Dependencies) -> AsyncIterator[Services]:
    """Starts all services. Stops them in the order that loses nothing: wake-ups, Kafka clients, threads."""
    pools = Pools(parts.gate_threads, parts.read_threads)
    receipt_waiters = ReceiptWaiters(parts.topics.receipts, parts.notices)
    async with parts.open_bus(receipt_waiters) as bus:
        services = assemble(parts, pools, receipt_waiters, bus)
        # In the background, because the start gate and the reads also work while the broker is down.
        lives = [
            asyncio.create_task(receipt_waiters.keep_reading(bus)),
            asyncio.create_task(services.transactions.run()),
        ]
        try:
            yield services
        finally:
            for life in lives:
                life.cancel()
            for life in lives:
                with contextlib.suppress(asyncio.CancelledError):
                    await life
            await services.wake_ups.settle()
    pools.close()


def assemble(parts: Dependencies, pools: Pools, receipt_waiters: ReceiptWaiters, bus: Bus) -> Services:
    """Builds the services without starting anything."""
    cluster = MapReader(parts.store, pools, parts.clock)
    ranges = RangeReader(parts.store, pools)
    answers = StoredAnswers(parts.store, parts.clock)
    schedules = ScheduleReads(parts.store, pools, cluster, ranges)
    letters = DeadLetterReads(parts.store, pools, bus, parts.topics)
    wake_ups = WakeUpSender(bus, cluster, parts.topics.pokes, parts.metrics)
    return Services(
        secrets=parts.secrets,
        minimum_period_ms=parts.minimum_period_ms,
        quotas=parts.quotas,
        clock=parts.clock,
        notices=parts.notices,
        bus=bus,
        topics=parts.topics,
        pools=pools,
        metrics=parts.metrics,
        cluster=cluster,
        gate=Gate(parts.store, parts.carry_out, parts.clock),
        wake_ups=wake_ups,
        receipt_waiters=receipt_waiters,
        transactions=OpenTransactions(
            lambda: (
                []
                if receipt_waiters.read is None
                else [Followed(receipt_waiters.read.name, receipt_waiters.read.id, is_own=True)]
            ),
            lambda _: True,  # Each process reads all receipts.
            bus.topics,
            bus.finder,
            parts.clock,
            parts.metrics,
            parts.notices,
        ),
        submission=Submission(
            bus,
            receipt_waiters,
            answers,
            cluster,
            pools,
            Overtaking(bus, parts.store, pools, wake_ups, parts.topics.requests, parts.notices),
            parts.clock,
            parts.topics,
            parts.metrics,
            parts.notices,
            parts.timing,
        ),
        answers=answers,
        logs=parts.logs,
        schedules=schedules,
        jobs=JobReads(parts.store, pools, cluster, ranges, schedules, parts.clock),
        runs=RunReads(parts.store, pools, cluster, ranges),
        occurrences=OccurrenceReads(pools, cluster, ranges),
        messages=MessageReads(parts.store, pools, cluster, parts.clock),
        sources=SourceReads(parts.store, pools),
        why=WhyReads(parts.store, pools, cluster, parts.clock),
        nodes=NodeReads(parts.store, pools, parts.clock),
        shards=ShardReads(parts.store, pools, bus, parts.topics, parts.clock),
        limits=LimitReads(parts.store, pools, cluster, ranges, parts.clock),
        letters=letters,
        dead_letter_service=DeadLetterService(
            letters, parts.store, parts.carry_out, pools, bus.publisher, parts.clock, parts.notices
        ),
    )
