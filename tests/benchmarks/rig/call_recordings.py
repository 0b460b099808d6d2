"""Which calls of the bricks the protocol makes for a workload: recorded on a bench in memory.

Writes, reads of items, and ranges that were read and held something; ranges that were empty are the looks of an idle node, and left
out. Sent again, and timed, by `call_replays.py`.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, TypeAlias

from tests.benchmarks.rig.bulk_producer import NAMESPACE, event
from tests.benchmarks.rig.store_bounds import CALLS_AHEAD
from tests.support.builders import EVENTS, MINUTE, REQUESTS, SECOND, Doc, a_spec, an_apply
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import (
    Committed,
    EffectRequest,
    Invalid,
    Read,
    ReadRange,
    Refused,
    Result,
    Unavailable,
    Written,
)
from tidegate_core.rows.store_operations import Action, Batch, Delete, Key, Page, Put, RangeRead, Transaction
from tidegate_dynamo.settings import TABLE_NAMES
from tidegate_dynamo.store_calls import KEYS_PER_CALL_MAX

PREFIX = "BENCH#"
"""Of partition keys that nothing else has."""
SETTLES_MS = 20 * SECOND
READ_AT_ONCE = 1_000
"""Requests that come together on the bench: of many thousands the effects of one instant would have no end."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A read of single items."""

    keys: Sequence[Key]


Call: TypeAlias = Transaction | Batch | Lookup | RangeRead


@dataclass(frozen=True, slots=True)
class Recording:
    """What was there before, and what was called then.

    Attributes:
        rows: Of before.
        phases: Each is sent when the one before is through; within it, the calls of one partition key in order.
        read: Values of the records that came from topics.
        produced: Values of the records that went to topics.
    """

    rows: Sequence[Put | Delete]
    phases: Sequence[Sequence[Call]]
    read: Sequence[bytes] = ()
    produced: Sequence[bytes] = ()

    @property
    def writes(self) -> Sequence[Transaction | Batch]:
        return [call for phase in self.phases for call in phase if isinstance(call, Transaction | Batch)]

    @property
    def batched_rows(self) -> Sequence[Put]:
        """Of each key the last one."""
        batches = [call for call in self.writes if isinstance(call, Batch)]
        puts = [action for batch in batches for action in batch.actions if isinstance(action, Put)]
        return list({put.key: put for put in puts}.values())

    @property
    def reads(self) -> Sequence[Lookup | RangeRead]:
        return [call for phase in self.phases for call in phase if isinstance(call, Lookup | RangeRead)]


class RecordingBench(ActorHarness):
    """A bench that keeps what it calls the store for.

    Attributes:
        calls: In order, under the keys that they will be sent with.
    """

    def __init__(self, **holding: Any) -> None:
        self.calls: list[Call] = []
        self._moving = _Moving()
        # Tokens of transactions name their owner: two recordings on one store must not have the same ones.
        super().__init__(owner=f"recording-{uuid.uuid4().hex}", **holding)

    def begin_recording(self) -> Sequence[Put | Delete]:
        """Forgets what was called and produced so far; returns what came of it."""
        self.calls.clear()
        self.sent.clear()
        return [
            self._moving.row(Put(Key(str(item["pk"]), str(item["sk"]), table), item))
            for table in TABLE_NAMES
            for item in self.store.items(table)
        ]

    def lookups(self) -> Sequence[Lookup]:
        """Returns all reads of single items, in full calls; one that asks twice for a key would be refused."""
        times = Counter[Key]()
        rounds = defaultdict[int, list[Key]](list)
        for call in self.calls:
            if isinstance(call, Lookup):
                for key in call.keys:
                    rounds[times[key]].append(key)
                    times[key] += 1
        return [
            Lookup(tuple(keys[start : start + KEYS_PER_CALL_MAX]))
            for keys in rounds.values()
            for start in range(0, len(keys), KEYS_PER_CALL_MAX)
        ]

    def other_calls(self) -> Sequence[Transaction | Batch | RangeRead]:
        """Returns all but those, in order."""
        return [call for call in self.calls if not isinstance(call, Lookup)]

    def produced(self) -> Sequence[bytes]:
        return [record.value for record in self.sent]

    def transact(self, transaction: Transaction) -> Committed | Refused | Unavailable | Invalid:
        self.calls.append(self._moving.write(transaction))
        return super().transact(transaction)

    def _written(self, batch: Batch) -> Written | Invalid:
        self.calls.append(self._moving.write(batch))
        return super()._written(batch)

    def _result(self, ask: EffectRequest) -> Result | None:
        result = super()._result(ask)
        match ask.effect, result:
            case Read(keys), _:
                self.calls.append(Lookup(tuple(self._moving.key(key) for key in keys)))
            case ReadRange(wanted), Page(items, _) if items:
                self.calls.append(self._moving.range(wanted))
        return result


def recorded_runs(count: int, shards: int) -> Recording:
    """Returns what is called for the runs of so many schedules that are due at one instant; the schedules are there before."""
    bench = RecordingBench(shards=shards)
    due = bench.now + MINUTE
    trigger = {"type": "at", "instant": format_instant(due)}
    for number in range(count):
        bench.request(an_apply(a_spec(f"run-{number}", trigger)))
    bench.run(due - SECOND - bench.now)
    rows = bench.begin_recording()
    bench.run(SECOND + SETTLES_MS)
    assert len(bench.started) == count, f"{len(bench.started)} of {count} runs"
    return Recording(rows, [bench.lookups(), bench.other_calls()], produced=bench.produced())


def recorded_events(
    schedules: int, events: int, names: int, spec: Callable[[str], Doc], shards: int, topic_partitions: int
) -> Recording:
    """Returns what is called until so many events are counted; the schedules are there before.

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
    values = [event(f"e-{each}", f"heard.{each % names}").value for each in range(events)]
    for topic_partition in range(topic_partitions):
        bench.append(EVENTS, topic_partition, *values[topic_partition::topic_partitions])
    bench.run(SETTLES_MS)
    others = bench.other_calls()
    moves = [call for call in others if _moves_position(call)]
    counts = [call for call in others if not _moves_position(call)]
    assert counts, "nobody heard them"
    # What is counted lies in inboxes of other partition keys by then.
    return Recording(rows, [moves, bench.lookups(), counts], values, bench.produced())


def recorded_creates(requests: Sequence[bytes], shards: int, holders: int = 1) -> Recording:
    """Returns what is called for the creates of messages, as a node sends it: rows of several shards in one call, up to 25.

    Args:
        requests: Records of the requests topic.
        shards: Of the cluster.
        holders: Of topic partitions, over which the records are spread. What has neither id nor key is a shard's of who reads it: with
            one holder all such rows would have one partition key.
    """
    parts = [_recorded_by_one(requests[first::holders], shards) for first in range(holders)]
    reads, others, batches = zip(*(part.phases for part in parts), strict=True)
    return Recording(
        [row for part in parts for row in part.rows],
        [
            [call for phase in reads for call in phase],
            [call for phase in others for call in phase],
            [call for calls in zip_longest(*batches) for call in calls if call is not None],
        ],
        requests,
        [value for part in parts for value in part.produced],
    )


def _recorded_by_one(requests: Sequence[bytes], shards: int) -> Recording:
    bench = RecordingBench(shards=shards)
    bench.run(SECOND)
    rows = bench.begin_recording()
    for start in range(0, len(requests), READ_AT_ONCE):
        bench.append(REQUESTS, 0, *requests[start : start + READ_AT_ONCE])
    bench.run(SETTLES_MS)
    others = bench.other_calls()
    created = [action for call in others if isinstance(call, Batch) for action in call.actions]
    assert len(created) >= len(requests), f"{len(created)} rows of {len(requests)} creates"
    batches = [
        Batch("messages", tuple(created[start : start + CALLS_AHEAD])) for start in range(0, len(created), CALLS_AHEAD)
    ]
    rest = [call for call in others if not isinstance(call, Batch)]
    return Recording(rows, [bench.lookups(), rest, batches], requests, bench.produced())


def _moves_position(call: Transaction | Batch | RangeRead) -> bool:
    return not isinstance(call, RangeRead) and call.name == "cursor"


class _Moving:
    """From what a bench called to what can be sent beside a cluster, and beside other recordings: under keys of its own."""

    def __init__(self) -> None:
        self._prefix = f"{PREFIX}{uuid.uuid4().hex[:8]}#"

    def write(self, write: Transaction | Batch) -> Transaction | Batch:
        if isinstance(write, Batch):
            return replace(write, actions=tuple(self.row(each) for each in write.actions))
        witness = None if write.witness is None else self.key(write.witness)
        return replace(write, actions=tuple(self._action(each) for each in write.actions), witness=witness)

    def row(self, action: Put | Delete) -> Put | Delete:
        key = self.key(action.key)
        if isinstance(action, Put):
            return replace(action, key=key, item={**action.item, "pk": key.pk})
        return replace(action, key=key)

    def key(self, key: Key) -> Key:
        return key._replace(pk=self._prefix + key.pk)

    def range(self, wanted: RangeRead) -> RangeRead:
        return replace(wanted, pk=self._prefix + wanted.pk)

    def _action(self, action: Action) -> Action:
        if isinstance(action, Put | Delete):
            return self.row(action)
        return replace(action, key=self.key(action.key))
