"""Carries out the bus effects of actors: records to send, topic partitions to read, proofs of membership, wake-ups.

Called by `effect_router.py`. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, get_args

from tidegate_core.engine.actor_inputs import TopicFacts, Woken
from tidegate_core.language.values.problems import ErrorClass
from tidegate_core.rows.dead_letter import UNDELIVERABLE
from tidegate_core.rows.effects import (
    EndOffsets,
    FindGaps,
    Gaps,
    ManyProduced,
    NotProduced,
    Outcome,
    Produce,
    ProduceMany,
    ProveMembership,
    ReadEndOffsets,
    ReturnCredits,
    StartReading,
    StopReading,
    Unavailable,
    WakeUp,
)
from tidegate_core.rows.effects import Membership as Proof
from tidegate_node.node_identity import NodeFacts
from tidegate_node.topics.earliest_offsets import EarliestOffsets
from tidegate_node.topics.lost_offsets import LostOffsets
from tidegate_node.topics.offset_gaps import LogGaps
from tidegate_node.topics.wakeup_records import poke_record
from tidegate_ports.bus import Membership, Notices, PartitionReader, Publisher, Topic, Topics
from tidegate_ports.clock import Clock
from tidegate_telemetry.metrics import Metrics

POKES_UNDER_WAY_MAX: Final = 1_000
"""Pending wake-ups; further ones are dropped. The sweep finds the same changes within 10 s."""
GIVEN_AWAY: Final = NotProduced("guard", "membership is not proven, or the topic partition is another one's")


class BusEffects:
    """One per process.

    Args:
        membership: Group member, which also reads the requests topic.
        reader: Reader of events, event sources and wake-ups.
        guarded: Publisher of irreversible records.
        plain: Publisher of records that may repeat.
        topics: Queries the brokers.
        gaps: Offsets without records.
        standing_still: Lost offsets; a start or stop of reading ends such a state.
        poke_here: Wakes a shard of this process; False if another process owns it.
    """

    def __init__(
        self,
        facts: NodeFacts,
        *,
        membership: Membership,
        reader: PartitionReader,
        guarded: Publisher,
        plain: Publisher,
        topics: Topics,
        gaps: LogGaps,
        standing_still: LostOffsets,
        poke_here: Callable[[Woken], bool],
        clock: Clock,
        metrics: Metrics,
        notices: Notices,
    ) -> None:
        self._facts = facts
        self._membership = membership
        self._reader = reader
        self._guarded = guarded
        self._plain = plain
        self._topics = topics
        self._gaps = gaps
        self._standing_still = standing_still
        self._beginnings = EarliestOffsets(topics, self._start, notices)
        self._poke_here = poke_here
        self._clock = clock
        self._metrics = metrics
        self._pokes: set[asyncio.Task[Outcome]] = set()
        for topic in (facts.requests.name, facts.events.name):
            self._begin_series(topic)
        metrics.count("tidegate_dead_letters_total", 0, topic=facts.requests.name, error_class=UNDELIVERABLE)

    async def produce(self, effect: Produce, may_act: Callable[[], bool]) -> Outcome:
        outcome: Outcome = GIVEN_AWAY
        if not effect.guarded or may_act():
            outcome = await (self._guarded if effect.guarded else self._plain).produce(effect)
        self._count([effect], [outcome])
        return outcome

    def produce_many(
        self, effect: ProduceMany, may_act: Callable[[], bool], answer: Callable[[ManyProduced], None]
    ) -> None:
        """Passes the records on at once, and calls `answer` on the loop."""
        records = effect.records
        guarded = records[0].guarded
        assert all(record.guarded == guarded for record in records)

        def settled(outcomes: Sequence[Outcome]) -> None:
            answer(ManyProduced(outcomes))
            self._count(records, outcomes)

        if guarded and not may_act():
            settled([GIVEN_AWAY] * len(records))
            return
        (self._guarded if guarded else self._plain).produce_many(records, settled)

    async def read_end_offsets(self, effect: ReadEndOffsets) -> EndOffsets | Unavailable:
        return await self._topics.end_offsets(effect.topic, may_be_missing=effect.may_be_missing)

    async def find_gaps(self, effect: FindGaps) -> Gaps | Unavailable:
        found = await self._gaps.among(effect.topic, effect.topic_id, effect.spans)
        return found if isinstance(found, Unavailable) else Gaps(found)

    async def prove_membership(self, effect: ProveMembership) -> Proof:
        return Proof(await self._membership.prove(effect.topic_partition))

    def start_reading(self, effect: StartReading) -> None:
        self._ends(effect.topic, effect.topic_partition)
        self._begin_series(effect.topic)
        topic = TopicFacts(effect.topic, effect.topic_id, effect.topic_partitions)
        self._standing_still.reads(topic)
        if effect.offset is not None:
            self._start(topic, effect.topic_partition, effect.offset)
            return
        # No position is stored, so no record can be missed: reading starts at the begin of the log.
        self._beginnings.find(topic, effect.topic_partition)

    def _start(self, topic: TopicFacts, topic_partition: int, offset: int) -> None:
        if topic.name == self._facts.requests.name:
            self._membership.seek_and_resume(topic_partition, offset)
        else:
            self._reader.assign(Topic(topic.name, topic.id, topic.topic_partitions), topic_partition, offset)

    def _ends(self, topic: str, topic_partition: int) -> None:
        """Ends the previous state of a topic partition: a search for its first offset, or a lost offset."""
        self._beginnings.forget(topic, topic_partition)
        self._standing_still.over(topic, topic_partition)

    def _begin_series(self, topic: str) -> None:
        """Starts each series at 0. A series that starts with its first dead letter shows no increase, so an alert would
        miss that one.
        """
        for error_class in get_args(ErrorClass):
            self._metrics.count("tidegate_dead_letters_total", 0, topic=topic, error_class=error_class)

    def stop_reading(self, effect: StopReading) -> None:
        self._ends(effect.topic, effect.topic_partition)
        if effect.topic == self._facts.requests.name:
            self._membership.stop_reading(effect.topic_partition)
        else:
            self._reader.unassign(effect.topic, effect.topic_partition)

    def taken(self, effect: ReturnCredits) -> None:
        if effect.topic == self._facts.requests.name:
            self._membership.taken(effect.topic_partition, effect.count)
            self._membership.commit_hint(effect.topic_partition, effect.next_offset)
        else:
            self._reader.taken(effect.topic, effect.topic_partition, effect.count)

    def poke(self, effect: WakeUp) -> None:
        """Wakes a shard of this process directly, another shard by a record."""
        if self._poke_here(Woken(effect.shard, effect.run_id, effect.controls)):
            return
        if len(self._pokes) >= POKES_UNDER_WAY_MAX:
            self._metrics.count("tidegate_pokes_dropped_total")
            return
        sending = asyncio.get_running_loop().create_task(self._send(poke_record(effect, self._facts)))
        self._pokes.add(sending)
        sending.add_done_callback(self._pokes.discard)

    async def _send(self, record: Produce) -> Outcome:
        return await self._plain.produce(record)

    def _count(self, records: Sequence[Produce], outcomes: Sequence[Outcome]) -> None:
        delivered = []
        for record, outcome in zip(records, outcomes, strict=True):
            if isinstance(outcome, NotProduced):
                self._metrics.count("tidegate_records_not_produced_total", kind=outcome.kind)
            elif record.guarded:
                delivered.append(record)
        if delivered:
            self._delivered(delivered)

    def _delivered(self, messages: Sequence[Produce]) -> None:
        now = self._clock.now_ms()
        self._metrics.count("tidegate_messages_delivered_total", len(messages))
        for due, times in Counter(each.due for each in messages if each.due is not None).items():
            self._metrics.observe("tidegate_fire_lateness_seconds", (now - due) / 1000, times, plane="delivery")
