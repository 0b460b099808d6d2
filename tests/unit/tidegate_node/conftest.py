"""A node's surroundings without any brick: a bus, a launcher and clocks that tests command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate_core.engine.actor_inputs import TopicFacts, Woken
from tidegate_core.engine.membership_lease import MapLease
from tidegate_core.rows.effects import EndOffsets, NotProduced, Outcome, Produce, Produced, Unavailable
from tidegate_core.writes.partition_map import ClusterMap
from tidegate_memory.store import MemoryStore
from tidegate_node.effects.bus_effects import BusEffects
from tidegate_node.effects.effect_router import EffectRouter
from tidegate_node.effects.launch_effects import LaunchEffects
from tidegate_node.effects.store_effects import StoreEffects
from tidegate_node.effects.threaded_store import ThreadedStore
from tidegate_node.load.load_effects import LoadEffects
from tidegate_node.node_identity import NodeFacts
from tidegate_node.topics.lost_offsets import LostOffsets
from tidegate_node.topics.offset_gaps import LogGaps
from tidegate_ports.bus import BeginOffsets, Position, Settled, Topic
from tidegate_ports.common.program_file_check import FileLooks
from tidegate_ports.launcher import Absent, Elsewhere, Ended, Launch, LaunchUnavailable, Lookup, Placement, ProgramType
from tidegate_telemetry.metrics import Metrics

NOW = 1_763_676_000_000
PATIENCE_S = 60.0
THREADS = 4


class ManualClock:
    """Stands still until it is told otherwise; wall and monotonic apart."""

    def __init__(self) -> None:
        self.wall = NOW
        self.monotonic = 1_000_000

    def now_ms(self) -> int:
        return self.wall

    def monotonic_ms(self) -> int:
        return self.monotonic

    def pass_ms(self, milliseconds: int) -> None:
        self.wall += milliseconds
        self.monotonic += milliseconds


@dataclass
class FakeBus:
    """Membership, reader, publisher and topics in one; `calls` in order."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    produced: list[Produce] = field(default_factory=list)
    outcome: Produced | NotProduced = field(default_factory=Produced)
    holds: bool = True
    owns: frozenset[int] = frozenset(range(8))
    proof: bool | None = True
    log_ends: EndOffsets | Unavailable = field(default_factory=lambda: EndOffsets({}))
    ends_by_topic: dict[str, EndOffsets] = field(default_factory=dict)
    stable_by_topic: dict[str, EndOffsets] = field(default_factory=dict)
    """Where a transaction is open."""
    appended: int | None = None
    log_begins: list[BeginOffsets | Unavailable] = field(default_factory=lambda: [BeginOffsets({})])
    """One answer after the other; the last one again and again."""
    begins_asked: list[str] = field(default_factory=list)
    topics: dict[str, Topic] = field(default_factory=dict)
    """Those that are not as all others are."""
    on_produce: Callable[[Produce], None] = lambda _: None
    stands: dict[int, int] = field(default_factory=dict)
    read: list[Topic] = field(default_factory=list)
    stands_of_topics: dict[str, dict[int, int]] = field(default_factory=dict)
    ends_shown: list[dict[int, int]] = field(default_factory=list)
    records_at: dict[int, int] | Unavailable = field(default_factory=dict)
    """Where the next record of each topic partition lies, or would lie."""
    finds: list[tuple[str, str, dict[int, int]]] = field(default_factory=list)

    # Membership
    def seek_and_resume(self, topic_partition: int, offset: int) -> None:
        self.calls.append(("seek", topic_partition, offset))

    def guard_holds(self) -> bool:
        return self.holds

    def owned(self) -> frozenset[int]:
        return self.owns

    async def prove(self, topic_partition: int) -> bool | None:
        return self.proof

    def stop_reading(self, topic_partition: int) -> None:
        self.calls.append(("stop", topic_partition))

    # Membership and reader: the latter also names the topic
    def standing(self, *topic_and_ends: Any) -> Mapping[int, int]:
        *topic, ends = topic_and_ends
        self.ends_shown.append(dict(ends))
        return self.stands_of_topics.get(topic[0], {}) if topic else self.stands

    def restart(self, *where: Any) -> None:
        self.calls.append(("restart", *where))

    def taken(self, *where: Any) -> None:
        self.calls.append(("taken", *where))

    def commit_hint(self, *where: Any) -> None:
        self.calls.append(("hint", *where))

    # Reader
    def assign(self, topic: Topic, topic_partition: int, position: Position) -> None:
        self.calls.append(("assign", topic.name, topic_partition, position))

    def unassign(self, topic: str, topic_partition: int) -> None:
        self.calls.append(("unassign", topic, topic_partition))

    def being_read(self) -> Sequence[Topic]:
        return self.read

    # Publisher
    async def produce(self, order: Produce) -> Outcome:
        self.produced.append(order)
        self.on_produce(order)
        return self.outcome

    def produce_many(self, orders: Sequence[Produce], settled: Settled) -> None:
        outcomes = []
        for order in orders:
            self.produced.append(order)
            self.on_produce(order)
            outcomes.append(self.outcome)
        settled(outcomes)

    # Topics
    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        return self.ends_by_topic.get(topic, self.log_ends)

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        return self.stable_by_topic.get(topic) or await self.end_offsets(topic)

    async def begin_offsets(self, topic: str) -> BeginOffsets | Unavailable:
        self.begins_asked.append(topic)
        await asyncio.sleep(0)
        return self.log_begins.pop(0) if len(self.log_begins) > 1 else self.log_begins[0]

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        return {name: self.topics.get(name, Topic(name, "ab" * 16, 4)) for name in names}

    # Record finder
    async def next_records(
        self, topic: str, topic_id: str, begins: Mapping[int, int]
    ) -> Mapping[int, int] | Unavailable:
        self.finds.append((topic, topic_id, dict(begins)))
        await asyncio.sleep(0)
        if isinstance(self.records_at, Unavailable):
            return self.records_at
        return {number: max(begin, self.records_at.get(number, begin)) for number, begin in begins.items()}

    async def appended_at(self, topic: str, topic_partition: int, offset: int) -> int | None:
        return self.appended

    async def cluster_id(self) -> str | Unavailable:
        return "cluster"


@dataclass
class FakeLauncher:
    """Answers as it is told; remembers what it was asked."""

    launches: list[Launch] = field(default_factory=list)
    submission: Placement | Exception = field(default_factory=lambda: Placement("pid 1", "host", "boot"))
    found: Lookup = field(default_factory=Absent)
    ended: Ended = field(default_factory=lambda: Ended(0))
    out_of_reach: Absent | Elsewhere | None = None
    """What a cancel finds instead of an end."""
    cancelled: list[tuple[str, int]] = field(default_factory=list)
    unavailable: int = 0
    """So many further calls of wait and cancel fail before they work."""

    refused: str | None = None
    """Why it would take no program of a schedule that is applied."""

    def refuses(self, program_type: ProgramType, conf: Mapping[str, str]) -> str | None:
        return self.refused

    async def submit(self, launch: Launch) -> Placement:
        self.launches.append(launch)
        if isinstance(self.submission, Exception):
            raise self.submission
        return self.submission

    async def lookup(self, run_id: str, attempt: int, place: str | None, instance: str | None) -> Lookup:
        self._maybe_fail()
        return self.found

    async def wait_until_gone(self, run_id: str, attempt: int) -> Ended:
        self._maybe_fail()
        return self.ended

    async def cancel(self, run_id: str, attempt: int) -> Ended | Absent | Elsewhere:
        self._maybe_fail()
        self.cancelled.append((run_id, attempt))
        return self.out_of_reach or self.ended

    def _maybe_fail(self) -> None:
        if self.unavailable:
            self.unavailable -= 1
            raise LaunchUnavailable("the launcher is away")


@dataclass
class Notes:
    """Notices, in order."""

    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, event: str, **fields: object) -> None:
        self.said.append((event, dict(fields)))

    def names(self) -> list[str]:
        return [name for name, _ in self.said]


@dataclass
class Surroundings:
    """All of it, wired."""

    facts: NodeFacts
    clock: ManualClock
    bus: FakeBus
    launcher: FakeLauncher
    store: MemoryStore
    threads: ThreadPoolExecutor
    metrics: Metrics
    notes: Notes
    standing_still: LostOffsets
    map_guard: MapLease = field(default_factory=MapLease)
    poked: list[Woken] = field(default_factory=list)
    pokes_here: bool = True

    def poke_here(self, poked: Woken) -> bool:
        self.poked.append(poked)
        return self.pokes_here

    def store_effects(self, store: Any = None) -> StoreEffects:
        threaded = ThreadedStore(store or self.store, self.threads, THREADS)
        return StoreEffects(threaded, self.clock, self.metrics, THREADS, jitter=lambda: 0.0)

    def bus_effects(self) -> BusEffects:
        return BusEffects(
            self.facts,
            membership=self.bus,
            reader=self.bus,
            guarded=self.bus,
            plain=self.bus,
            topics=self.bus,
            gaps=LogGaps(self.bus, self.clock),
            standing_still=self.standing_still,
            poke_here=self.poke_here,
            clock=self.clock,
            metrics=self.metrics,
            notices=self.notes,
        )

    def launch_effects(self, looks: FileLooks | None = None, in_line_s: float = PATIENCE_S) -> LaunchEffects:
        return LaunchEffects(
            self.launcher,
            gate_url="http://gate",
            secret=b"s" * 32,
            clock=self.clock,
            metrics=self.metrics,
            notices=self.notes,
            ask_again_s=0.0,
            in_line_s=in_line_s,
            looks=looks or FileLooks(PATIENCE_S),
        )

    def shell(self) -> EffectRouter:
        """Its map is in force now."""
        self.map_guard.read(self.facts.cluster.version, self.clock.monotonic_ms())
        return EffectRouter(
            self.store_effects(),
            self.bus_effects(),
            self.launch_effects(),
            LoadEffects({}, self.clock, self.metrics),
            self.clock,
            self.notes,
            self.bus,
            self.map_guard,
        )


async def until(condition: Callable[[], Any], what: str) -> Any:
    """Lets the loop turn until the condition says something true."""
    async with asyncio.timeout(PATIENCE_S):
        while not (said := condition()):  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.001)
    assert said, what
    return said


def some_facts() -> NodeFacts:
    requests = TopicFacts("tidegate.requests", "ab" * 16, 4)
    return NodeFacts(
        owner="7f0e8a52-7a30-4a5c-9c0b-0d7f7b6c1a11",
        name="node-1",
        cluster=ClusterMap.first(8, requests, "cluster"),
        requests=requests,
        events=TopicFacts("tidegate.events", "cd" * 16, 8),
        pokes=TopicFacts("tidegate.pokes", "ef" * 16, 4),
        receipts="tidegate.receipts",
        runs="tidegate.runs",
        requests_dlq="tidegate.requests.dlq",
        events_dlq="tidegate.events.dlq",
        runs_dlq="tidegate.runs.dlq",
        minimum_period_ms=1_000,
    )


@pytest.fixture
def facts() -> NodeFacts:
    return some_facts()


@pytest.fixture
def around(facts: NodeFacts) -> Iterator[Surroundings]:
    bus, metrics, notes = FakeBus(), Metrics(), Notes()
    still = LostOffsets(facts, bus, metrics, notes)
    with ThreadPoolExecutor(THREADS) as threads:
        yield Surroundings(facts, ManualClock(), bus, FakeLauncher(), MemoryStore(), threads, metrics, notes, still)


@pytest.fixture(name="until")
def until_fixture() -> Callable[[Callable[[], Any], str], Any]:
    return until
