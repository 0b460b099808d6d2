"""Assignments of this node: one driver for each ownership topic partition that the group has given to it.

Called by the Kafka clients through both listeners of the bus; it passes each call to the driver concerned. It writes
nothing. Callbacks
of the group may come late or never: fencing, not a callback, keeps the data safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol

from tidegate_core.engine.actor_inputs import LogRecord, Migrated, OffsetOutOfRange, RecordsArrived, Woken
from tidegate_core.rows.schema_version import NEWEST
from tidegate_core.shard.outages.outage_recorder import sign_name
from tidegate_core.writes.partition_map import ClusterMap
from tidegate_node.node_identity import NodeFacts
from tidegate_node.partition_driver import PartitionDriver
from tidegate_node.topics.lost_offsets import LostOffsets
from tidegate_node.topics.wakeup_records import Beat, read_record
from tidegate_ports.bus import END, Drain, Notices, PartitionReader, Record, Topic
from tidegate_ports.clock import Clock

SWITCH_MS: Final = 2_500
"""Time that a hand-over from one map to the next may take; as between nodes. Other nodes wait for it
(`former_maps.HAND_OVER_MS`)."""


class Heartbeats(Protocol):
    """Takes the heartbeats that are read."""

    def heard(self, beat: Beat) -> None: ...


class AssignedPartitions:
    """One per process. `connect` is called once, before the membership starts.

    Attributes:
        requests_doubted: Whether a record came from a topic other than the map's requests topic, or a stored position
            was gone.
    """

    def __init__(
        self,
        facts: NodeFacts,
        standing_still: LostOffsets,
        clock: Clock,
        notices: Notices,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._facts = facts
        self.standing_still = standing_still
        self._clock = clock
        self._notices = notices
        self._loop = loop
        self._drivers: dict[int, PartitionDriver] = {}
        self.requests_doubted = False
        self._given: set[int] = set()
        self._served: dict[str, int] = {}
        self._make_driver: Callable[[int], PartitionDriver] | None = None
        self._reader: PartitionReader | None = None
        self._heartbeats: Heartbeats | None = None
        self._hand_overs: list[_HandOver] = []

    def connect(
        self, make_driver: Callable[[int], PartitionDriver], reader: PartitionReader, heartbeats: Heartbeats
    ) -> None:
        """Sets the parts that this object works with. A separate call, because Kafka clients, drivers and this object
        refer to each other.
        """
        self._make_driver, self._reader, self._heartbeats = make_driver, reader, heartbeats

    # -- figures ------------------------------------------------------------------------------------------------------

    @property
    def held(self) -> frozenset[int]:
        return frozenset(self._drivers)

    @property
    def serving(self) -> frozenset[int]:
        """Topic partitions that are recovered and fire."""
        return frozenset(number for number, driver in self._drivers.items() if driver.is_serving)

    def served(self, now: int) -> dict[str, int]:
        """Returns, by `sign_name`, until when each topic partition was certainly served, for all that are or were
        assigned here.
        """
        for number, driver in self._drivers.items():
            self._note_served(number, driver, now)
        return dict(self._served)

    def shards(self, topic_partitions: Iterable[int]) -> int:
        """Returns the number of shards of these topic partitions."""
        cluster = self._facts.cluster
        return sum(len(range(number, cluster.shards, cluster.topic_partitions)) for number in topic_partitions)

    def writes(self) -> int:
        """Returns the oldest version in which an actor here writes rows. Without an actor no rows are written."""
        return min((driver.writes for driver in self._drivers.values()), default=NEWEST)

    def migrated(self, writes: int) -> None:
        """Tells all drivers that rows are now written in this version."""
        for driver in self._drivers.values():
            if driver.writes < writes:
                driver.give(Migrated(writes))

    def poke(self, poked: Woken) -> bool:
        """Wakes a shard of this process; False if another process owns it."""
        driver = self._drivers.get(self._facts.holder_of(poked.shard))
        if driver is None:
            return False
        driver.give(poked)
        return True

    def drop_all(self) -> None:
        self.lost(sorted(self._drivers))

    # -- the group ----------------------------------------------------------------------------------------------------

    def assigned(self, topic_partitions: Sequence[int]) -> None:
        self._notices("assigned", topic_partitions=list(topic_partitions))
        self._given |= set(topic_partitions)
        if beyond := self.beyond_the_map & set(topic_partitions):
            # The requests topic has grown before the map. No shard belongs to these topic partitions. A driver for one
            # would count shards of other owners as its own, and would fight with them for ever.
            self._notices("beyond_the_map", topic_partitions=sorted(beyond))
        for number in (each for each in topic_partitions if each not in beyond):
            if (former := self._drivers.pop(number, None)) is not None:
                self._drop(number, former)
            self._begin(number)

    def _begin(self, number: int) -> None:
        assert self._make_driver is not None
        driver = self._drivers[number] = self._make_driver(number)
        driver.map_version = self._facts.cluster.version
        driver.begin()
        self._read_pokes(number)

    def revoked(self, topic_partitions: Sequence[int], drain: Drain) -> None:
        self._notices("revoked", topic_partitions=list(topic_partitions))
        self._given -= set(topic_partitions)
        going = [number for number in topic_partitions if number in self._drivers]
        for number in going:
            self._stop_pokes(number)
        self._hand_over(going, drain)

    def _hand_over(self, going: Sequence[int], drain: Drain) -> None:
        waiting = {number: self._drivers[number] for number in going}
        if not waiting:
            drain.done()
            return
        left_s = max(0, drain.deadline_ms - self._clock.monotonic_ms()) / 1000
        # At the deadline the drivers are dropped, drained or not.
        hand_over = _HandOver(waiting, drain)
        hand_over.deadline = self._loop.call_later(left_s, partial(self._cut, hand_over))
        self._hand_overs.append(hand_over)
        for number, driver in sorted(waiting.items()):
            driver.drain(partial(self._drained, number, driver))

    # -- the map ------------------------------------------------------------------------------------------------------

    @property
    def beyond_the_map(self) -> frozenset[int]:
        """Topic partitions that the group has given, but that have no shards under the map that this process knows."""
        return frozenset(number for number in self._given if number >= self._facts.cluster.topic_partitions)

    def follow(self, cluster: ClusterMap) -> None:
        """A newer map is in force: hands all topic partitions over, and starts those that the group has given again,
        under the new map.

        The hand-over drains first, as at a planned end, so that sent records are not sent again. At the deadline it
        stops without draining.
        """
        assert self._reader is not None
        for each in {each for number in self._drivers for each in self._facts.pokes_of(number)}:
            self._reader.unassign(self._facts.pokes.name, each)
        self._facts.follow(cluster)
        self.requests_doubted = False
        for number in sorted(self._given & self._drivers.keys()):
            switch = _Switch(self._clock.monotonic_ms() + SWITCH_MS, partial(self._begin_again, number))
            self._hand_over([number], switch)
        for number in sorted(self._given - self._drivers.keys()):
            self._begin_again(number)

    def _begin_again(self, number: int) -> None:
        """Starts the topic partition again, unless it was taken or given again during the hand-over."""
        if number in self._given - self.beyond_the_map and number not in self._drivers:
            self._begin(number)

    def lost(self, topic_partitions: Sequence[int]) -> None:
        self._given -= set(topic_partitions)
        gone = [number for number in topic_partitions if number in self._drivers]
        if gone:
            self._notices("lost", topic_partitions=gone)
        for number in gone:
            self._stop_pokes(number)
            self._drop(number, self._drivers.pop(number))

    def _drained(self, number: int, driver: PartitionDriver) -> None:
        self._notices("drained", topic_partition=number)
        self._let_go(number, driver)

    def _cut(self, hand_over: _HandOver) -> None:
        self._notices("drain_cut", topic_partitions=sorted(hand_over.waiting))
        for number, driver in list(hand_over.waiting.items()):
            self._let_go(number, driver)

    def _let_go(self, number: int, driver: PartitionDriver) -> None:
        """Drops a driver. The topic partition may have been lost by now, or given to a new driver.

        Several hand-overs may wait for one driver: a rebalance may revoke a topic partition that a map change is
        handing over.
        """
        if self._drivers.get(number) is driver:
            self._drop(number, self._drivers.pop(number))
        else:
            driver.drop()
        for hand_over in self._hand_overs:
            if hand_over.waiting.get(number) is driver:
                del hand_over.waiting[number]
        done = [each for each in self._hand_overs if not each.waiting]
        self._hand_overs = [each for each in self._hand_overs if each.waiting]
        for each in done:
            each.end()

    def _drop(self, number: int, driver: PartitionDriver) -> None:
        driver.drop()
        self._note_served(number, driver, self._clock.now_ms())

    def _note_served(self, number: int, driver: PartitionDriver, now: int) -> None:
        until = driver.served_until(now)
        if until is not None:
            self._served[sign_name(driver.map_version, number)] = until

    # -- records ------------------------------------------------------------------------------------------------------

    def requests(self, topic_partition: int, records: Sequence[Record]) -> None:
        self.requests_doubted |= records[0].topic_id != self._facts.requests.id
        self._pass_on(topic_partition, self._facts.requests.name, topic_partition, records)

    def requests_gone(self, topic_partition: int, offset: int) -> None:
        self.requests_doubted = True
        self._position_gone(topic_partition, self._facts.requests.name, topic_partition, offset)

    def others(self, topic: str, topic_partition: int, records: Sequence[Record]) -> None:
        if topic == self._facts.pokes.name:
            self._take_pokes(topic_partition, records)
        else:
            self._pass_on(topic_partition % self._facts.cluster.topic_partitions, topic, topic_partition, records)

    def others_gone(self, topic: str, topic_partition: int, offset: int) -> None:
        if topic == self._facts.pokes.name:
            # Lost wake-ups cost little: continue at the end.
            self._read_at_end(topic_partition)
        else:
            number = topic_partition % self._facts.cluster.topic_partitions
            self._position_gone(number, topic, topic_partition, offset)

    def _position_gone(self, holder: int, topic: str, topic_partition: int, offset: int) -> None:
        if (driver := self._drivers.get(holder)) is not None:
            self.standing_still.gone(topic, topic_partition, offset)
            driver.give(OffsetOutOfRange(topic, topic_partition, offset))

    def _pass_on(self, holder: int, topic: str, topic_partition: int, records: Sequence[Record]) -> None:
        if (driver := self._drivers.get(holder)) is not None:
            at = self._times(topic)
            taken = tuple(LogRecord(r.offset, at(r), r.key, r.value, r.headers) for r in records)
            driver.give(RecordsArrived(topic, topic_partition, taken, records[0].topic_id))

    def _times(self, topic: str) -> Callable[[Record], int]:
        """Returns the time that counts for a record of the topic.

        Evidence is judged by the broker's times. A user's topic may carry producer times, which can have any value.
        Such records count from the time at which they are read (decision 19).
        """
        own = topic in {self._facts.requests.name, self._facts.events.name}
        now = self._clock.now_ms()
        return lambda record: record.append_time_ms if own or record.timed_by_broker else now

    # -- pokes --------------------------------------------------------------------------------------------------------

    def _take_pokes(self, topic_partition: int, records: Sequence[Record]) -> None:
        assert self._reader is not None
        assert self._heartbeats is not None
        # Return the credits first: the share of the flow's bound is free, also if a record is unreadable.
        self._reader.taken(self._facts.pokes.name, topic_partition, len(records))
        for record in records:
            said = read_record(record.value)
            if said is None:
                self._notices("poke_unreadable", topic_partition=topic_partition, offset=record.offset)
            elif isinstance(said, Beat):
                self._heartbeats.heard(said)
            else:
                self.poke(said)

    def _read_pokes(self, number: int) -> None:
        for each in self._facts.pokes_of(number):
            self._read_at_end(each)

    def _read_at_end(self, topic_partition: int) -> None:
        assert self._reader is not None
        pokes = self._facts.pokes
        self._reader.assign(Topic(pokes.name, pokes.id, pokes.topic_partitions), topic_partition, END)

    def _stop_pokes(self, number: int) -> None:
        """Stops the wake-ups of a topic partition, except topics that another assignment of this process also reads."""
        assert self._reader is not None
        others = {each for other in self._drivers if other != number for each in self._facts.pokes_of(other)}
        for each in self._facts.pokes_of(number):
            if each not in others:
                self._reader.unassign(self._facts.pokes.name, each)


@dataclass(slots=True)
class _HandOver:
    """Topic partitions that are handed over together.

    Attributes:
        waiting: Drivers that have not ended, by topic partition.
        drain: Order of the hand-over; its callback runs when all drivers have ended.
        deadline: Timer that ends the remaining drivers.
    """

    waiting: dict[int, PartitionDriver]
    drain: Drain | _Switch
    deadline: asyncio.TimerHandle | None = None

    def end(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        self.drain.done()


class _Switch(NamedTuple):
    """Hand-over to this node itself, under the next map."""

    deadline_ms: int
    done: Callable[[], None]


class GroupListener:
    """`MembershipListener` of the assignments."""

    def __init__(self, holdings: AssignedPartitions) -> None:
        self._holdings = holdings
        self.assigned = holdings.assigned
        self.revoked = holdings.revoked
        self.lost = holdings.lost
        self.records = holdings.requests
        self.position_gone = holdings.requests_gone


class OthersListener:
    """`ReaderListener` of the assignments: events and wake-ups."""

    def __init__(self, holdings: AssignedPartitions) -> None:
        self.records = holdings.others
        self.position_gone = holdings.others_gone
