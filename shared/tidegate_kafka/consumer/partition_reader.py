"""Reads topic partitions that the caller chooses: events and wake-ups for a node, receipts for an API process.

Implements the port `PartitionReader` on its own thread. The reader is no member of a group, so no topic partition is
ever taken from it. After a failure, or when a topic was recreated (`RecreationDetector`), a new client continues at the
listener's position.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from confluent_kafka import Consumer

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_kafka.clients.client_config import reader_config
from tidegate_kafka.clients.client_log import LOG
from tidegate_kafka.clients.client_thread import ClientThread, Life
from tidegate_kafka.clients.connectivity import Connectivity, CutOff, OthersFind, close_aside, others_find
from tidegate_kafka.clients.loop_bridge import post_to
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.consumer.batch_poll import read_batch
from tidegate_kafka.consumer.consumer_commands import ConsumerCommands, Where
from tidegate_kafka.consumer.partition_flows import Client, PartitionFlows, PositionGone, Read
from tidegate_kafka.consumer.reader_progress import Progress
from tidegate_kafka.consumer.topic_ids import TopicIds
from tidegate_kafka.consumer.topic_recreation import RecreationDetector
from tidegate_kafka.group.membership import CLOSE_MS_MAX
from tidegate_ports.bus import END, Notices, Position, ReaderListener, Topic, Topics
from tidegate_ports.clock import Clock

MakeReader: TypeAlias = Callable[[KafkaSettings], Client]


def make_reader(settings: KafkaSettings) -> Client:
    return Consumer({**reader_config(settings), "logger": LOG})


@dataclass(slots=True)
class _Stand:
    """Position of the listener in one topic partition.

    Attributes:
        topic: Topic as the listener knows it; once an end offset is known, the topic of that offset.
        next: Next offset; None while the end offset is being queried.
        checked: Whether records are handed on only after the topic's id was confirmed. The listener's position belongs
            to one topic, not to any topic of its name.
        asking: Task that queries the end offset.
    """

    topic: Topic
    next: int | None
    checked: bool
    asking: asyncio.Task[None] | None = None


class KafkaPartitionReader:
    """One consumer with manual assignment. It may be started and stopped repeatedly."""

    def __init__(
        self,
        settings: KafkaSettings,
        listener: ReaderListener,
        topics: Topics,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        notices: Notices,
        make: MakeReader = make_reader,
        others: OthersFind = others_find,
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._topics = topics
        self._loop = loop
        self._clock = clock
        self._notices = notices
        self._make = make
        self._others = others
        self._post = post_to(loop)
        self._orders = ConsumerCommands()
        self._stands: dict[Where, _Stand] = {}
        self._progress: defaultdict[str, Progress] = defaultdict(Progress)
        """Progress by topic."""
        self._ids = TopicIds(topics, self._hand_on, loop=loop, notices=notices)
        self._made_anew = RecreationDetector(topics, self._renew, loop=loop, notices=notices)
        self._renewals = 0
        self._thread = ClientThread("tidegate-reader", self._serve, notices, settings.restart_wait_ms)
        self.polled_at_ms = clock.monotonic_ms()

    def start(self) -> None:
        """Starts the thread. Earlier assignments continue at the listener's positions. Idempotent."""
        self.polled_at_ms = self._clock.monotonic_ms()
        self._made_anew.start()
        self._thread.start()

    async def stop(self) -> bool:
        """Closes the client; returns False if that took too long. Idempotent."""
        self._made_anew.stop()
        for stand in self._stands.values():
            if stand.asking is not None:
                stand.asking.cancel()
        self._ids.stop()
        return await self._thread.stop(CLOSE_MS_MAX)

    def assign(self, topic: Topic, topic_partition: int, position: Position) -> None:
        where = (topic.name, topic_partition)
        self.unassign(*where)
        stand = self._stands[where] = _Stand(topic, None, checked=position != END)
        if position == END:
            # The brokers are queried here, because the client's own search for the end is not safe (`PartitionFlows`).
            stand.asking = self._loop.create_task(self._find_end(where, stand))
        else:
            self._start_at(where, stand, position)

    def unassign(self, topic: str, topic_partition: int) -> None:
        where = (topic, topic_partition)
        stand = self._stands.pop(where, None)
        if stand is not None and stand.asking is not None:
            stand.asking.cancel()
        self._progress[topic].ended(topic_partition)
        if not any(name == topic for name, _ in self._stands):
            del self._progress[topic]  # Topics of event sources come and go.
        self._orders.leave(where)

    def taken(self, topic: str, topic_partition: int, count: int) -> None:
        if topic in self._progress:
            self._progress[topic].taken(topic_partition, count)
        self._orders.taken((topic, topic_partition), count)

    def being_read(self) -> Sequence[Topic]:
        read = {stand.topic.name: stand.topic for stand in self._stands.values() if stand.next is not None}
        return [read[name] for name in sorted(read)]

    def standing(self, topic: str, ends: Mapping[int, int]) -> Mapping[int, int]:
        return dict(self._progress[topic].standing(ends)) if topic in self._progress else {}

    def restart(self, topic: str, topic_partition: int, offset: int) -> None:
        """Restarts the reading, or replaces the client, which continues all topic partitions at the listener's
        positions.
        """
        where = (topic, topic_partition)
        remedy = self._progress[topic].remedy(topic_partition, offset) if topic in self._progress else None
        if remedy == "another client":
            self._renew(topic)
        elif remedy is not None:
            self._notices("kafka_reading_restarted", topic=topic, topic_partition=topic_partition, offset=offset)
            self._start_at(where, self._stands[where], offset)

    def _start_at(self, where: Where, stand: _Stand, offset: int) -> None:
        self._made_anew.know(stand.topic)
        self._progress[where[0]].begun(where[1], offset)
        stand.next = offset
        self._orders.seek(where, offset, stand.topic)

    async def _find_end(self, where: Where, stand: _Stand) -> None:
        """Queries the end offset until the brokers answer; stops when the assignment was replaced."""
        while True:
            try:
                found = await self._topics.end_offsets(stand.topic.name)
            except Exception as bug:  # noqa: BLE001 - a bug must not leave a topic partition unread silently
                self._notices("kafka_topic_unknown", topic=stand.topic.name, reason=repr(bug))
                found = Unavailable(repr(bug))
            if self._stands.get(where) is not stand:
                return  # `end_offsets` may have swallowed the cancellation, so the assignment is checked here.
            end = None if isinstance(found, Unavailable) else _end_of(where[1], found)
            if end is not None:
                topic_id, offset = end
                stand.topic = replace(stand.topic, id=topic_id)
                self._start_at(where, stand, offset)
                return
            await asyncio.sleep(self._settings.restart_wait_ms / 1000)

    def _renew(self, topic: str) -> None:
        self._notices("kafka_client_renewed", topic=topic)
        self._renewals += 1

    def _serve(self) -> None:
        """Serves one client until it ends, on the reader's thread."""
        renewals = self._renewals
        client, life = self._make(self._settings), Life()
        reach = Connectivity(self._settings, self._others, self._clock.monotonic_ms())
        let_go: Callable[[], None] = client.close
        try:
            lanes = PartitionFlows(client, self._settings.in_flight_records_max, self._notices)
            self._post(self._begin_again)
            while not self._thread.stopping and self._renewals == renewals:
                self._turn(client, lanes, life, reach)
                life.check()
                self.polled_at_ms = self._clock.monotonic_ms()
        except CutOff:
            let_go = partial(close_aside, client)
            raise
        finally:
            let_go()

    def _turn(self, client: Client, lanes: PartitionFlows, life: Life, reach: Connectivity) -> None:
        lanes.carry_out(self._orders.collect())
        if found := lanes.sort(read_batch(client, self._settings)):
            self._post(self._tell, found, life)
            reach.heard(self._clock.monotonic_ms())
        else:
            reach.look(client, self._clock.monotonic_ms())

    def _begin_again(self) -> None:
        """Assigns all topic partitions at the new client, from the listener's positions. On the loop."""
        for where, stand in self._stands.items():
            if stand.next is not None:
                self._start_at(where, stand, stand.next)
            elif stand.asking is None or stand.asking.done():
                stand.asking = self._loop.create_task(self._find_end(where, stand))

    def _tell(self, found: Sequence[Read | PositionGone], life: Life) -> None:
        """Hands on the results of one turn. After a failure nothing more is handed on: the next client reads it
        again.
        """
        if life.bug is not None:
            return
        try:
            for each in found:
                stand = self._stands.get(each.where)
                if stand is None or self._orders.era(each.where) != each.era:
                    continue
                if stand.checked:
                    self._ids.put(each.where[0], each)
                else:
                    self._hand_on(each, None)
        except Exception as bug:  # noqa: BLE001 - reported when the client ends (`Life.check`)
            life.bug = bug

    def _hand_on(self, found: Read | PositionGone, topic_id: str | None) -> None:
        if self._orders.era(found.where) != found.era:
            return  # A seek came since: the records are read again from the new position.
        topic, number = found.where
        if isinstance(found, PositionGone):
            self._progress[topic].ended(number)
            self._listener.position_gone(*found.where, found.offset)
            return
        stand, records = self._stands[found.where], found.records
        if topic_id is not None and topic_id != stand.topic.id:
            records = [record._replace(topic_id=topic_id) for record in records]
        progress = self._progress[topic]
        progress.handed(number, records[-1].offset + 1, len(records))
        try:
            self._listener.records(topic, number, records)
        except Exception:
            progress.taken(number, len(records))  # They will be handed on again.
            raise
        stand.next = records[-1].offset + 1  # Moved only after the hand-over, so that refused records are read again.


def _end_of(topic_partition: int, found: EndOffsets) -> tuple[str, int] | None:
    """Returns the id of the topic that now has the name, and the end offset of a topic partition.

    A listener that starts at the end means the present topic. The id it knows may be of a topic that was recreated
    since, and under that id no record would ever arrive.
    """
    for place, offset in found.offsets.items():
        topic_id, number = place.split("/")
        if int(number) == topic_partition:
            return topic_id, offset
    return None
