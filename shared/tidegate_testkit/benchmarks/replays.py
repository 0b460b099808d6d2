"""What the store alone takes of the very writes that the protocol makes: recorded on a bench in memory, sent with nothing else to do.

No reads, no logs, no programs, no gate over HTTP: a cluster cannot be faster than that on the same store.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from tidegate_core.effects import Committed, Invalid, Refused, Unavailable, Written
from tidegate_core.model.instants import format_instant
from tidegate_core.store.values import Action, Applied, Batch, Delete, Key, Put, Transaction
from tidegate_dynamo.settings import TABLE_NAMES
from tidegate_ports.store import Store
from tidegate_testkit.bench import Bench
from tidegate_testkit.benchmarks.bounds import CALLS_AHEAD, THREADS
from tidegate_testkit.benchmarks.load import NAMESPACE, event
from tidegate_testkit.builders import EVENTS, MINUTE, REQUESTS, SECOND, Doc, a_spec, an_apply

PREFIX = "BENCH#"
"""Of partition keys that nothing else has."""
SETTLES_MS = 20 * SECOND


@dataclass(frozen=True, slots=True)
class Recording:
    """What was there before, and what was written then.

    Attributes:
        phases: Each is sent when the one before is through; within it, the writes of one partition key in order.
    """

    rows: Sequence[Put | Delete]
    phases: Sequence[Sequence[Transaction | Batch]]

    @property
    def writes(self) -> Sequence[Transaction | Batch]:
        return [write for phase in self.phases for write in phase]


class RecordingBench(Bench):
    """A bench that keeps what it writes."""

    def __init__(self, **holding: Any) -> None:
        self.writes: list[Transaction | Batch] = []
        self.moving = _Moving()
        # Tokens of transactions name their owner: two recordings on one store must not have the same ones.
        super().__init__(owner=f"recording-{uuid.uuid4().hex}", **holding)

    def begin_recording(self) -> Sequence[Put | Delete]:
        """Forgets what was written so far; returns what came of it."""
        self.writes.clear()
        return [
            self.moving.row(Put(Key(str(item["pk"]), str(item["sk"]), table), item))
            for table in TABLE_NAMES
            for item in self.store.items(table)
        ]

    def transact(self, transaction: Transaction) -> Committed | Refused | Unavailable | Invalid:
        self.writes.append(transaction)
        return super().transact(transaction)

    def _written(self, batch: Batch) -> Written | Invalid:
        self.writes.append(batch)
        return super()._written(batch)


def recorded_runs(count: int, shards: int) -> Recording:
    """Returns what the runs of so many schedules write that are due at one instant; the schedules are there before."""
    bench = RecordingBench(shards=shards)
    due = bench.now + MINUTE
    trigger = {"type": "at", "instant": format_instant(due)}
    for number in range(count):
        bench.request(an_apply(a_spec(f"run-{number}", trigger)))
    bench.run(due - SECOND - bench.now)
    rows = bench.begin_recording()
    bench.run(SECOND + SETTLES_MS)
    assert len(bench.started) == count, f"{len(bench.started)} of {count} runs"
    return Recording(rows, [[bench.moving.write(write) for write in bench.writes]])


def recorded_events(
    schedules: int, events: int, names: int, spec: Callable[[str], Doc], shards: int, topic_partitions: int
) -> Recording:
    """Returns what is written until so many events are counted; the schedules are there before.

    Args:
        schedules: How many; each waits for the name of its number, modulo `names`.
        events: How many; named in turn, and spread over the topic partitions.
        names: How many different ones.
        spec: Of a schedule that waits for this name, and never fires here.
        shards: Of the cluster.
        topic_partitions: Of the events topic.
    """
    bench = RecordingBench(shards=shards, event_topic_partitions=topic_partitions)
    bench.run(SECOND)
    for number in range(schedules):
        fields = {"kind": "schedule", "namespace": NAMESPACE, "name": f"heard-{number}"}
        bench.request(an_apply(spec(f"heard.{number % names}") | fields))
    bench.run(SETTLES_MS)
    rows = bench.begin_recording()
    for topic_partition in range(topic_partitions):
        mine = range(topic_partition, events, topic_partitions)
        bench.append(EVENTS, topic_partition, *(event(f"e-{each}", f"heard.{each % names}").value for each in mine))
    bench.run(SETTLES_MS)
    moves = [bench.moving.write(write) for write in bench.writes if write.name == "cursor"]
    counts = [bench.moving.write(write) for write in bench.writes if write.name != "cursor"]
    assert counts, "nobody heard them"
    # What is counted lies in inboxes of other partition keys by then.
    return Recording(rows, [moves, counts])


def recorded_creates(requests: Sequence[bytes], shards: int) -> Recording:
    """Returns what the creates of messages write, as a node sends it: rows of several shards in one call, up to 25.

    Args:
        requests: Records of the requests topic.
        shards: Of the cluster.
    """
    bench = RecordingBench(shards=shards)
    bench.run(SECOND)
    rows = bench.begin_recording()
    bench.append(REQUESTS, 0, *requests)
    bench.run(SETTLES_MS)
    writes = [bench.moving.write(write) for write in bench.writes]
    created = [action for write in writes if isinstance(write, Batch) for action in write.actions]
    assert len(created) >= len(requests), f"{len(created)} rows of {len(requests)} creates"
    calls = [
        Batch("messages", tuple(created[start : start + CALLS_AHEAD])) for start in range(0, len(created), CALLS_AHEAD)
    ]
    return Recording(rows, [[write for write in writes if isinstance(write, Transaction)], calls])


def replay_s(store: Store, recording: Recording) -> float:
    """Sends a recording from several threads; returns how many seconds the writes took, those of before not counted."""
    for first in range(0, len(recording.rows), CALLS_AHEAD):
        assert not store.write(recording.rows[first : first + CALLS_AHEAD]), "the store took not all"
    with ThreadPoolExecutor(THREADS) as threads:
        return sum(_sent_s(store, phase, threads) for phase in recording.phases)


def _sent_s(store: Store, writes: Sequence[Transaction | Batch], threads: ThreadPoolExecutor) -> float:
    by_key = defaultdict[str, list[Transaction | Batch]](list)
    for write in writes:
        by_key[write.actions[0].key.pk].append(write)

    def send(writes: Sequence[Transaction | Batch]) -> None:
        for write in writes:
            if isinstance(write, Batch):
                assert not store.write(write.actions), "the store took not all"
            else:
                outcome = store.transact(write)
                assert outcome == Applied(), outcome

    begun_s = time.monotonic()
    list(threads.map(send, by_key.values()))
    return time.monotonic() - begun_s


class _Moving:
    """From what a bench wrote to what can be sent beside a cluster, and beside other recordings: under keys of its own."""

    def __init__(self) -> None:
        self._prefix = f"{PREFIX}{uuid.uuid4().hex[:8]}#"

    def write(self, write: Transaction | Batch) -> Transaction | Batch:
        if isinstance(write, Batch):
            return replace(write, actions=tuple(self.row(each) for each in write.actions))
        witness = None if write.witness is None else self._key(write.witness)
        return replace(write, actions=tuple(self._action(each) for each in write.actions), witness=witness)

    def row(self, action: Put | Delete) -> Put | Delete:
        key = self._key(action.key)
        if isinstance(action, Put):
            return replace(action, key=key, item={**action.item, "pk": key.pk})
        return replace(action, key=key)

    def _action(self, action: Action) -> Action:
        if isinstance(action, Put | Delete):
            return self.row(action)
        return replace(action, key=self._key(action.key))

    def _key(self, key: Key) -> Key:
        return key._replace(pk=self._prefix + key.pk)
