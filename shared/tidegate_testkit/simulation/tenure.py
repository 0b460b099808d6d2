"""Drives one partition actor as the node's driver does: carries its effects out, holds no rule of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tidegate_core.decisions.guard import ProbeVerdict
from tidegate_core.decisions.inputs import Begin, Drain, Holding, Input, LogRecord, RecordsArrived, Tick, TopicFacts
from tidegate_core.decisions.partition_actor import PartitionActor
from tidegate_core.effects import (
    Answer,
    Ask,
    Cancel,
    Commit,
    Drained,
    Inspect,
    Inspected,
    Lookup,
    Membership,
    Notice,
    NotProduced,
    NotSubmitted,
    Poke,
    Produce,
    Produced,
    ProveMembership,
    Read,
    ReadEndOffsets,
    ReadRange,
    Result,
    StartReading,
    StopReading,
    Submit,
    Taken,
    Watch,
    Write,
)
from tidegate_testkit.simulation import cluster as world
from tidegate_testkit.simulation.broker import Outgoing, Reader
from tidegate_testkit.simulation.record import Sent, TenureEnd

if TYPE_CHECKING:
    from tidegate_testkit.simulation.node import Node

PRODUCE_PATIENCE_MS = 2_500
"""`message.timeout.ms`: below half a session."""
SENT_HEADER = "simulation-sent"
REPLAY_MS = 5_000
"""A hand-over in the middle of a take-over may repeat what was sent before the log was replayed; a later one may not."""
MAP_VERSION = 1
MINIMUM_PERIOD_MS = 1_000


class Tenure:
    """A node's holding of one ownership topic partition, from its assignment to its loss."""

    def __init__(self, node: Node, topic_partition: int, number: int) -> None:
        self.node = node
        self.topic_partition = topic_partition
        self.name = f"{node.name}/{node.owner[:6]}/{topic_partition}.{number}"
        self.drained = False
        self._alive = True
        self._life = 0
        self._readers: dict[tuple[str, int], Reader] = {}
        self._tick_at: int | None = None
        self._serving_since: int | None = None
        self._drain_repeats_nothing = False
        self.actor = PartitionActor(self._holding(number), node.index)

    def _holding(self, number: int) -> Holding:
        cluster = self.node.cluster
        topics = cluster.broker.topics

        def facts(name: str) -> TopicFacts:
            return TopicFacts(name, topics[name].id, len(topics[name].logs))

        return Holding(
            owner=self.node.owner,
            node=self.node.name,
            topic_partition=self.topic_partition,
            topic_partitions=cluster.swarm.topic_partitions,
            map_version=MAP_VERSION,
            shards=cluster.swarm.shards,
            cluster_id=world.CLUSTER_ID,
            requests=facts(world.REQUESTS),
            events=facts(world.EVENTS),
            receipts_topic=world.RECEIPTS,
            runs_topic=world.RUNS,
            requests_dlq_topic=world.REQUESTS_DLQ,
            events_dlq_topic=world.EVENTS_DLQ,
            minimum_period_ms=MINIMUM_PERIOD_MS,
            tenure=number,
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.node.cluster.trace.note(self.name, "assigned")
        self.take(Begin())

    def drain(self) -> None:
        since = self._serving_since
        self._drain_repeats_nothing = since is not None and self.node.cluster.timeline.now - since > REPLAY_MS
        self.take(Drain())

    def drop(self, why: str) -> None:
        """Nothing reaches the actor any more; what it has sent is on its way all the same."""
        if not self._alive:
            return
        self._alive = False
        for reader in self._readers.values():
            self.node.cluster.broker.stop(reader)
        self._readers.clear()
        cluster = self.node.cluster
        cluster.trace.note(self.name, "dropped", why, "drained" if self.drained else "")
        self._life_ended(orderly=self.drained and self._drain_repeats_nothing)

    def _life_ended(self, *, orderly: bool) -> None:
        ends = self.node.cluster.record.tenures.setdefault(self.life_name, [])
        ends.append(TenureEnd(self.node.cluster.timeline.now, orderly))
        self._life += 1

    @property
    def life_name(self) -> str:
        """A fenced actor starts again: each of its lives has a name of its own."""
        return f"{self.name}.{self._life}"

    # -- inputs -------------------------------------------------------------------------------------------------------

    def take(self, incoming: Input) -> None:
        """Gives the actor an input and carries out what it asks for."""
        if not self._alive or self.actor.has_ended:
            return
        try:
            asked = self.actor.step(self.node.clock(), incoming)
        except Exception as error:  # noqa: BLE001  # whatever an actor raises is what the simulation is there to find
            self._failed(error)
            return
        for ask in asked:
            self._carry_out(ask)
        self._plan_tick()

    def _failed(self, error: Exception) -> None:
        cluster = self.node.cluster
        cluster.record.failures.append(f"{self.name} raised {error!r}")
        cluster.trace.note(self.name, "raised", repr(error))
        if cluster.raises:
            raise error
        self.drop("raised")

    def _plan_tick(self) -> None:
        wake = self.actor.next_wake()
        if wake is None:
            return
        timeline = self.node.cluster.timeline
        at = max(timeline.now + 1, wake - self.node.offset_ms)
        if self._tick_at is None or at < self._tick_at or self._tick_at <= timeline.now:
            self._tick_at = at
            self.node.process.after(at - timeline.now, partial(self._tick, at))

    def _tick(self, planned: int) -> None:
        if self._tick_at == planned:
            self._tick_at = None
            self.take(Tick())

    def _answer(self, token: int, result: Result) -> None:
        if token:
            self.take(Answer(token, result))

    def _answer_later(self, token: int, milliseconds: float, result: Result) -> None:
        self.node.process.after(milliseconds, lambda: self._answer(token, result))

    # -- effects ------------------------------------------------------------------------------------------------------

    def _carry_out(self, ask: Ask) -> None:
        node, token = self.node, ask.token
        answer = partial(self._answer, token)
        match ask.effect:
            case Read(keys):
                node.store.read(keys, answer)
            case ReadRange(wanted):
                node.store.read_range(wanted, answer)
            case Commit(transaction):
                node.store.commit(transaction, answer)
            case Write(batch):
                node.store.write(batch.actions, answer)
            case ReadEndOffsets(topic):
                node.cluster.broker.end_offsets(topic, lambda ends: node.process.post(lambda: answer(ends)))
            case Produce():
                self._produce(ask.effect, token)
            case Submit(order):
                if node.guard_holds():
                    self._acts(f"submit {order.run_id}")
                    node.cluster.launcher.submit(node, order, answer)
                else:
                    node.cluster.trace.bit("guard_lapsed", "submit")
                    self._answer_later(token, 1, NotSubmitted("the guard has lapsed"))
            case Lookup(run_id, attempt):
                node.cluster.launcher.look_up(node, run_id, attempt, answer)
            case Watch(run_id, attempt):
                node.cluster.launcher.watch(node, run_id, attempt, answer)
            case Cancel(run_id, attempt):
                node.cluster.launcher.cancel(run_id, attempt)
            case Inspect():
                self._answer_later(token, 1, Inspected())
            case StartReading(topic, topic_partition, offset):
                self._start_reading(topic, topic_partition, offset or 0)
            case StopReading(topic, topic_partition):
                self._stop_reading(topic, topic_partition)
            case Poke(shard, run_id):
                node.cluster.poke(shard, run_id)
            case Drained():
                self.drained = True
            case Notice(event, fields):
                self._notice(event, dict(fields))
            case ProveMembership():
                self._prove(token)
            case Taken():
                pass

    def _notice(self, event: str, fields: dict[str, object]) -> None:
        trace = self.node.cluster.trace
        trace.note(self.name, event, fields)
        trace.counts[event] += 1
        if event == "serving":
            self._serving_since = self.node.cluster.timeline.now
            self.node.cluster.serves(self.topic_partition, self.name)
        elif event in {"fenced", "outranked"}:
            self._serving_since = None
            self._life_ended(orderly=False)

    def _prove(self, token: int) -> None:
        def proved(verdict: ProbeVerdict) -> None:
            held = self.topic_partition in self.node.member.owned
            holds = {ProbeVerdict.MEMBER: held, ProbeVerdict.UNSETTLED: None, ProbeVerdict.EXPELLED: False}[verdict]
            self._answer(token, Membership(holds))

        self.node.prove(proved)

    # -- topics -------------------------------------------------------------------------------------------------------

    def _start_reading(self, topic: str, topic_partition: int, offset: int) -> None:
        self._stop_reading(topic, topic_partition)

        def deliver(records: Sequence[LogRecord]) -> None:
            self.take(RecordsArrived(topic, topic_partition, tuple(records)))

        reader = Reader(self.node.process, topic, topic_partition, offset, deliver)
        self._readers[(topic, topic_partition)] = reader
        self.node.cluster.broker.read(reader)

    def _stop_reading(self, topic: str, topic_partition: int) -> None:
        reader = self._readers.pop((topic, topic_partition), None)
        if reader is not None:
            self.node.cluster.broker.stop(reader)

    def _acts(self, what: str) -> None:
        """Something irreversible: by then nobody else may have been given the topic partition (the guard's whole point)."""
        holder = self.node.cluster.coordinator.holders.get(self.topic_partition, "")
        if not self.node.member.is_known_as(holder):
            self.node.cluster.record.failures.append(
                f"I5: {self.name} did {what} while {holder} held its topic partition"
            )

    def _produce(self, produce: Produce, token: int) -> None:
        cluster, process = self.node.cluster, self.node.process
        headers, patience = produce.headers, float(PRODUCE_PATIENCE_MS)
        message = produce.value.decode(errors="replace")
        if produce.guarded:
            left = self.node.guard.remaining_ms(cluster.timeline.now)
            if left <= 0:
                cluster.trace.bit("guard_lapsed", "produce")
                self._answer_later(token, 1, NotProduced("guard", "the guard has lapsed"))
                return
            self._acts(f"produce {message}")
            patience = min(patience, left)
            sent = [cluster.timeline.now, self.node.clock(), self.node.owner, self.life_name]
            headers = (*headers, (SENT_HEADER, json.dumps(sent).encode()))
        life = self.life_name

        def done(result: Produced | NotProduced) -> None:
            if isinstance(result, NotProduced):
                cluster.record.unsure.add((life, message))
            process.post(lambda: self._answer(token, result))

        def fits() -> bool:
            return self._alive and not process.paused and (not produce.guarded or self.node.guard_holds())

        number = produce.topic_partition
        outgoing = Outgoing(produce.topic, produce.key, produce.value, headers, number, patience, fits)
        cluster.broker.produce(outgoing, done)


def sent_of(record: LogRecord) -> Sent:
    """Returns what the simulated driver noted when it checked the guard for this record."""
    at, clock, owner, tenure = json.loads(dict(record.headers)[SENT_HEADER])
    return Sent(at, clock, owner, tenure)
