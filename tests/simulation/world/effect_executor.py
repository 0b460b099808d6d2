"""Carries a tenure's effects out: each one becomes a call to a part of the world, and its answer an input of the actor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.world.broker import Reader
from tests.simulation.world.guarded_produce import acts, produce, produce_many
from tidegate_core.engine.actor_inputs import LogRecord, OffsetOutOfRange, RecordsArrived
from tidegate_core.engine.membership_lease import ProbeVerdict
from tidegate_core.rows.effects import (
    Cancel,
    Commit,
    Drained,
    EffectRequest,
    EndOffsets,
    FindGaps,
    Inspect,
    Inspected,
    LaunchOrder,
    LoadSampled,
    Lookup,
    Membership,
    Notice,
    NotSubmitted,
    Produce,
    ProduceMany,
    ProveMembership,
    Read,
    ReadEndOffsets,
    ReadRange,
    Result,
    ReturnCredits,
    SampleLoad,
    StartReading,
    StopReading,
    Submit,
    Unavailable,
    WakeUp,
    Watch,
    Write,
)

if TYPE_CHECKING:
    from tests.simulation.world.assignment import Tenure


class Carrier:
    """One per tenure."""

    def __init__(self, tenure: Tenure) -> None:
        self._tenure = tenure
        self._node = tenure.node
        self._cluster = tenure.node.cluster
        self._readers: dict[tuple[str, int], Reader] = {}

    def carry_out(self, ask: EffectRequest) -> None:
        node, token = self._node, ask.token
        answer = partial(self._tenure.answer, token)
        match ask.effect:
            case Read(keys):
                node.store.read(keys, answer)
            case ReadRange(wanted):
                node.store.read_range(wanted, answer)
            case Commit(transaction):
                node.store.commit(transaction, answer)
            case Write(batch, guarded):
                node.store.write(batch.actions, answer, partial(self._may_write, guarded))
            case ReadEndOffsets(topic, may_be_missing):

                def told(ends: EndOffsets | Unavailable) -> None:
                    node.process.post(lambda: answer(ends))

                self._cluster.broker.end_offsets(topic, told, may_be_missing=may_be_missing)
            case FindGaps():
                self._cluster.broker.find_gaps(ask.effect, lambda gaps: node.process.post(lambda: answer(gaps)))
            case Produce():
                produce(self._tenure, ask.effect, answer)
            case ProduceMany(records):
                produce_many(self._tenure, records, answer)
            case Submit(order):
                self._submit(order, token)
            case Lookup(run_id, attempt, host):
                self._cluster.launcher.look_up(node, run_id, attempt, host, answer)
            case Watch(run_id, attempt):
                self._cluster.launcher.watch(node, run_id, attempt, answer)
            case Cancel(run_id, attempt):
                self._cluster.launcher.cancel(node, run_id, attempt)
            case Inspect():
                self._answer_soon(token, Inspected())
            case SampleLoad():
                self._answer_soon(token, LoadSampled(0.5))
            case StartReading(topic, topic_partition, offset, topic_id):
                self._start_reading(topic, topic_partition, offset or 0, topic_id)
            case StopReading(topic, topic_partition):
                self._stop_reading(topic, topic_partition)
            case WakeUp(shard, run_id, controls):
                self._cluster.poke(shard, run_id, controls=controls)
            case Drained():
                self._tenure.drained = True
            case Notice(event, fields):
                self._notice(event, dict(fields))
            case ProveMembership():
                self._prove(token)
            case ReturnCredits():
                pass

    def _may_write(self, guarded: bool) -> bool:
        """A driver that is dropped ends what it had under way: what is with the store is, and nothing is sent again."""
        return self._tenure.alive and (not guarded or self._tenure.may_act())

    def _answer_soon(self, token: int, result: Result) -> None:
        self._node.process.after(1, lambda: self._tenure.answer(token, result))

    def _submit(self, order: LaunchOrder, token: int) -> None:
        if self._tenure.may_act():
            acts(self._tenure, f"submit {order.run_id}")
            self._cluster.launcher.submit(self._node, order, partial(self._tenure.answer, token))
        else:
            self._cluster.trace.counted("guard_lapsed", "submit")
            self._answer_soon(token, NotSubmitted("the guard has lapsed", unasked=True))

    def _notice(self, event: str, fields: dict[str, object]) -> None:
        trace = self._cluster.trace
        trace.note(self._tenure.name, event, fields)
        trace.counts[event] += 1
        if event == "serving":
            self._tenure.serves()
        elif event == "topic_read":
            self._tenure.reads(str(fields["topic"]))
        elif event in {"fenced", "outranked", "schema_refused"}:
            self._tenure.is_fenced(str(fields.get("pk", "")))
        elif event == "decision_failed":
            # Set aside and tried again by design; a proof must not pass because of that.
            self._cluster.record.failures.append(f"{self._tenure.name} gave something up: {fields}")

    def _prove(self, token: int) -> None:
        if self._node.guard_holds():
            self._answer_soon(token, Membership(self._tenure.topic_partition in self._node.member.owned))
            return

        def proved(verdict: ProbeVerdict) -> None:
            held = self._tenure.topic_partition in self._node.member.owned
            holds = {ProbeVerdict.MEMBER: held, ProbeVerdict.UNSETTLED: None, ProbeVerdict.EXPELLED: False}[verdict]
            self._tenure.answer(token, Membership(holds))

        self._node.prove(proved)

    # -- reading ------------------------------------------------------------------------------------------------------

    def stop_reading(self) -> None:
        for topic, topic_partition in list(self._readers):
            self._stop_reading(topic, topic_partition)

    def _start_reading(self, topic: str, topic_partition: int, offset: int, topic_id: str) -> None:
        self._stop_reading(topic, topic_partition)

        def deliver(records: Sequence[LogRecord], lies_in: str) -> None:
            if not reader.listens:
                if (topic, topic_partition) in self._readers or not self._tenure.takes:
                    return  # A node's queue gives it to the actor long before the next reading's.
                self._cluster.trace.bit("behind_end", topic)
            self._tenure.take(RecordsArrived(topic, topic_partition, tuple(records), lies_in))

        def gone(position: int) -> None:
            self._tenure.take(OffsetOutOfRange(topic, topic_partition, position))

        reader = Reader(self._node.process, topic, topic_partition, offset, deliver, gone)
        self._readers[(topic, topic_partition)] = reader
        self._cluster.broker.read(reader, topic_id)

    def _stop_reading(self, topic: str, topic_partition: int) -> None:
        reader = self._readers.pop((topic, topic_partition), None)
        if reader is not None:
            self._cluster.broker.stop(reader)
