"""An API process without bricks: the store in memory, a bus that a test plays the owner on, a clock that stands still."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tidegate_api.app import make_app
from tidegate_api.bus_clients import Bus, TopicNames
from tidegate_api.dependencies import Dependencies
from tidegate_api.requests.request_submission import Timing
from tidegate_api.routes.gate import run_token
from tidegate_api.run_logs import FileLogs
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.values.derived_ids import run_id, schedule_shard
from tidegate_core.rows.effects import EndOffsets, NotProduced, Outcome, Produce, Produced, Unavailable
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.ledger import LedgerPlace
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Check, Key, Put, Transaction
from tidegate_core.runs.run_completion import end_of, ledger_row
from tidegate_core.writes.settlement import Verdict
from tidegate_dynamo.transaction_sender import carry_out
from tidegate_memory.store import MemoryStore
from tidegate_ports.bus import BeginOffsets, LogSlice, PartitionReader, Position, ReaderListener, Record, Settled, Topic
from tidegate_ports.common.program_file_check import FileLooks
from tidegate_ports.run_folders import LogPaths
from tidegate_telemetry.metric_names import API_METRICS
from tidegate_telemetry.metrics import Metrics

SHARDS = 8
TOPIC_PARTITIONS = 4
SECRET = b"0123456789abcdef0123456789abcdef"
NOW = 1_763_676_000_000
TOPICS = TopicNames.with_prefix("tidegate")
QUICK = Timing(first_poll_s=0.02, poll_again_s=0.02, pending_after_s=0.5)
A_WHILE = replace(QUICK, pending_after_s=3.0)
"""For tests in which some of a list stay pending, and others are looked for meanwhile, on a busy machine."""
PATIENT = replace(QUICK, pending_after_s=60.0)
"""For tests in which all that is waited for is there."""

LOOKS_PATIENCE_S = 60.0

Owner = Callable[[Mapping[str, Any]], Receipt | None]


def accepted(document: Mapping[str, Any], **fields: Any) -> Receipt:
    """The receipt of an owner who has no objection."""
    status = fields.pop("status", ReceiptStatus.ACCEPTED)
    return Receipt.model_construct(
        request_id=document["id"],
        status=status,
        namespace=document.get("namespace"),
        name=document.get("name") or document.get("key"),
        at=NOW,
        **fields,
    )


class StandingClock:
    """Moves only when a test says so."""

    def __init__(self) -> None:
        self.now = NOW

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now


class FakeReader(PartitionReader):
    """Remembers what was assigned."""

    def __init__(self) -> None:
        self.assigned: dict[tuple[str, int], Position] = {}
        self.taken_count = 0

    def assign(self, topic: Topic, topic_partition: int, position: Position) -> None:
        self.assigned[topic.name, topic_partition] = position

    def unassign(self, topic: str, topic_partition: int) -> None:
        del self.assigned[topic, topic_partition]

    def pause(self, topic: str, topic_partition: int) -> None:
        raise AssertionError("receipts are never paused")

    def resume(self, topic: str, topic_partition: int) -> None:
        raise AssertionError("receipts are never paused")

    def taken(self, topic: str, topic_partition: int, count: int) -> None:
        self.taken_count += count

    def commit_hint(self, topic: str, topic_partition: int, offset: int) -> None:
        raise AssertionError("this reader has no group")


@dataclass
class FakeLogs:
    """Logs that a test fills.

    Attributes:
        records: By topic and topic partition; an offset is a place in the list, and None a record that is gone.
        failure: What every question is answered with instead.
    """

    records: dict[tuple[str, int], list[Record | None]] = field(default_factory=dict)
    failure: Unavailable | None = None

    def append(self, topic: str, value: bytes, *headers: tuple[str, bytes], key: bytes | None = None) -> None:
        log = self.records.setdefault((topic, 0), [])
        log.append(Record(topic, "", 0, len(log), NOW + 100 + len(log), key, value, headers))

    async def next_records(
        self, topic: str, topic_id: str, begins: Mapping[int, int]
    ) -> Mapping[int, int] | Unavailable:
        raise AssertionError("the API passes over no record")

    async def appended_at(self, topic: str, topic_partition: int, offset: int) -> int | None:
        return None

    async def spans(self, topic: str, since: int | None = None) -> Mapping[int, LogSlice] | Unavailable:
        found = {}
        for (name, number), log in self.records.items():
            there = [each.offset for each in log if each is not None and each.append_time_ms >= (since or 0)]
            if name == topic and there:
                found[number] = LogSlice(topic, number, there[0], len(log))
        return self.failure or found

    async def read(
        self, wanted: Sequence[LogSlice], *, records_max: int, bytes_max: int
    ) -> Sequence[Record] | Unavailable:
        logs = [self.records[each.topic, each.topic_partition][each.begin : each.end] for each in wanted]
        return self.failure or [each for log in logs for each in log if each is not None][:records_max]


@dataclass
class FakeBus:
    """A broker with one owner behind it, which answers as the test says.

    Attributes:
        owner: Returns the receipt of a request, or None for none.
        failure: What every produce comes back as instead.
        refuses: Whether this one comes back as `NotProduced`.
    """

    produced: list[Produce] = field(default_factory=list)
    owner: Owner = accepted
    failure: NotProduced | None = None
    refuses: Callable[[Produce], bool] = lambda order: False
    reader: FakeReader = field(default_factory=FakeReader)
    logs: FakeLogs = field(default_factory=FakeLogs)
    listener: ReaderListener | None = None
    is_down: bool = False
    stable: EndOffsets | Unavailable | None = None
    place: int | None = None
    """Offset of each request, where the broker tells it."""
    topic_partitions: int = 2
    asked_for_topics: int = 0

    async def produce(self, order: Produce) -> Outcome:
        return self._produced(order)

    def produce_many(self, orders: Sequence[Produce], settled: Settled) -> None:
        settled([self._produced(order) for order in orders])

    def _produced(self, order: Produce) -> Outcome:
        if self.failure is not None:
            return self.failure
        if self.refuses(order):
            return NotProduced("unavailable", "no leader")
        self.produced.append(order)
        if order.topic == TOPICS.requests:
            receipt = self.owner(json.loads(order.value))
            if receipt is not None:
                self.announce(receipt)
            if self.place is not None:
                return Produced(NOW - 5, order.topic_partition, self.place)
        return Produced()

    def announce(self, receipt: Receipt) -> None:
        assert self.listener is not None
        record = Record(TOPICS.receipts, "0" * 32, 0, 7, NOW, receipt.request_id.encode(), receipt.to_json(), ())
        self.listener.records(TOPICS.receipts, 0, [record])

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        return Unavailable("down") if self.is_down else EndOffsets({f"{'0' * 32}/{n}": 100 + n for n in range(2)})

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        return self.stable or await self.end_offsets(topic)

    async def begin_offsets(self, topic: str) -> BeginOffsets | Unavailable:
        raise AssertionError("the API reads receipts from their end")

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        self.asked_for_topics += 1
        if self.is_down:
            return Unavailable("down")
        return {name: Topic(name, "0" * 32, self.topic_partitions) for name in names}

    @asynccontextmanager
    async def open(self, listener: ReaderListener) -> AsyncIterator[Bus]:
        self.listener = listener
        yield Bus(self, self, self.reader, self.logs, self.logs)

    def on(self, topic: str) -> list[dict[str, Any]]:
        return [json.loads(order.value) for order in self.produced if order.topic == topic]


@dataclass
class Process:
    """A running API process under test."""

    http: TestClient
    store: MemoryStore
    bus: FakeBus
    clock: StandingClock
    notices: list[tuple[str, dict[str, object]]]
    data: Path

    def put(self, record: Any, key: Key) -> None:
        self.store.write([Put(key, {**to_item(record, key), "rev": 1})])

    def put_ended(self, run: Run) -> None:
        """Stores a run that has ended as the finishing transaction does, without its entry in the ledger."""
        shard = shard_of(run)
        key, end = run.ended_key(shard), end_of(run)
        self.put(run, key)
        self.put(end, end.key(shard))
        place = LedgerPlace(job_id=run.id, entry=ledger_row(run, NOW).key(shard).sk, run=key.sk)
        self.put(place, place.key(shard))

    def report(self, run: Run, action: str, **fields: Any) -> Any:
        """Posts a report with the right token, as driver `d-1` of the run's attempt."""
        body = {"attempt": run.attempt, "driver": "d-1", **fields}
        token = run_token(SECRET, run.id, body["attempt"])
        headers = {"Authorization": f"Bearer {token}"}
        return self.http.post(f"/api/v1/runs/{run.id}/{action}", json=body, headers=headers)


@pytest.fixture(autouse=True)
def patient_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems answer, if not at once on a machine that stands still for a while."""
    monkeypatch.setattr("tidegate_api.thread_pools.LOG_S_MAX", LOOKS_PATIENCE_S)
    monkeypatch.setattr(
        "tidegate_api.thread_pools.FileLooks", lambda patience_s=LOOKS_PATIENCE_S: FileLooks(patience_s)
    )


@pytest.fixture
def bus() -> FakeBus:
    return FakeBus()


@pytest.fixture
def timing() -> Timing:
    """How long requests wait; tests that need another one give it as a parameter."""
    return QUICK


@pytest.fixture
def process(tmp_path: Path, bus: FakeBus, timing: Timing) -> Iterator[Process]:
    store = MemoryStore()
    store.write([Put(MAP_KEY, {"pk": "MAP", "sk": "MAP", "version": 1, "n": TOPIC_PARTITIONS, "shards": SHARDS})])
    clock = StandingClock()
    notices: list[tuple[str, dict[str, object]]] = []

    def settle(transaction: Transaction) -> Verdict:
        # An API process may check nothing beside what it writes: docs/security.md gives it no right to.
        (action,) = transaction.actions
        assert not isinstance(action, Check)
        return carry_out(store, transaction, lambda _: None, lambda: 0.0)

    def log_paths(run: str, attempt: int) -> LogPaths:
        return LogPaths(str(tmp_path / f"{run}-{attempt}.out"), str(tmp_path / f"{run}-{attempt}.err"))

    parts = Dependencies(
        store=store,
        carry_out=settle,
        open_bus=bus.open,
        logs=FileLogs(log_paths),
        clock=clock,
        notices=lambda event, **fields: notices.append((event, fields)),
        metrics=Metrics(API_METRICS),
        secrets=(SECRET,),
        topics=TOPICS,
        gate_threads=2,
        read_threads=4,
        timing=timing,
    )
    # By a name of loopback, where it listens: it answers to no other.
    with TestClient(make_app(parts), "http://127.0.0.1:8080", raise_server_exceptions=False) as http:
        yield Process(http, store, bus, clock, notices, tmp_path)


def a_run(name: str = "join-day", nominal: int = NOW, state: str = "submitted", **fields: Any) -> Run:
    """A run of `flights/<name>` with all that admission writes."""
    shard = schedule_shard("flights", name, SHARDS)
    order = {"program_type": "python", "file": "/jobs/join.py", "args": [], "conf": {}, "env": {}, "properties": {}}
    given: dict[str, Any] = {
        "id": run_id(shard, "0" * 26, "cron", (str(nominal),)),
        "namespace": "flights",
        "name": name,
        "incarnation": "0" * 26,
        "version": 1,
        "generation": 1,
        "attempt": 1,
        "state": state,
        "trigger": "time",
        "nominal": nominal,
        "order": json.dumps(order),
        "admitted_at": nominal + 20,
        "start_by": nominal + 900_000,
    }
    return Run(**{**given, **fields})


def shard_of(run: Run) -> int:
    return int(run.id[:4])


PUT_SCHEDULE = "/api/v1/schedules/flights/land-day"
SPEC: dict[str, Any] = {
    "kind": "schedule",
    "namespace": "flights",
    "name": "land-day",
    "target": {"type": "program", "program": {"type": "python", "file": "/jobs/land.py"}},
    "trigger": {"type": "every", "period": "1h"},
}
EVENT_SPEC = {
    **SPEC,
    "name": "join-day",
    "trigger": {
        "type": "all_of",
        "correlate": "data_partition",
        "triggers": [
            {"type": "data_partitions", "dataset": "flights.raw", "count": 1},
            {"type": "data_partitions", "dataset": "weather.raw", "count": 1},
        ],
    },
}


def put_schedule(process: Process, document: Mapping[str, Any] = SPEC, **fields: Any) -> ScheduleState:
    """Stores a schedule as its owner would."""
    spec = ScheduleSpec.model_validate(document)
    shard = schedule_shard(spec.namespace, spec.name, SHARDS)
    given: dict[str, Any] = {
        "namespace": spec.namespace,
        "name": spec.name,
        "status": "active",
        "incarnation": "0" * 26,
        "version": 1,
        "generation": 1,
        "position": "",
        "spec_hash": spec.spec_hash(),
        "changed_at": NOW,
        "next_nominal": NOW + 3_600_000,
    }
    state = ScheduleState(**{**given, **fields})
    definition = Definition(
        namespace=spec.namespace, name=spec.name, version=state.version, spec=spec.canonical_json(), created_at=NOW
    )
    process.put(state, state.key(shard))
    process.put(definition, definition.key(shard))
    return state
