"""The actor of one ownership topic partition: it acquires the shards that follow from it, serves them, and gives them back.

The node's partition driver steps it with inputs and carries out the effects that it returns. A take-over has a fixed order:

1. raise the epoch of the request cursor, and wait until the cursors of former partition maps carry the present map (`map_transition`);
2. fence the shards (`acquisition`);
3. prove membership of the group;
4. recover the shards from their rows;
5. read topics and serve.

Any other order loses creates. It could also let a process that was frozen since its assignment answer requests concurrently with the present
owner, which keeps sending until it meets the fence. Other nodes follow the map that a cursor carries. So if the cursor carries an older map,
the actor proves membership before it raises the epoch, too.

A fenced actor ends all its work at once. If it is still a member of the group, it proves that and starts again at step 1. Otherwise a late
raise by a former owner would lock out the present owner for ever. The actor writes the epoch of the request cursor; its parts write the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.commands.scope_commands import SCOPE_SUSPENSIONS
from tidegate_core.commands.source_commands import SOURCES
from tidegate_core.engine.actor_context import ActorContext, Fenced, NewerOwnerExists, run_concurrently
from tidegate_core.engine.actor_inputs import (
    Assignment,
    Begin,
    Drain,
    Input,
    Migrated,
    OffsetOutOfRange,
    RecordsArrived,
    Tick,
    Woken,
)
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest.control_records import pass_marks
from tidegate_core.ingest.request_ingest import REQUESTS_TOGETHER_MAX, RequestIngest
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.ingest.topic_watch import EventsWatch, SourceWatch
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.ownership.acquisition import Acquisition
from tidegate_core.ownership.cluster_object_watch import ClusterObjectWatch
from tidegate_core.ownership.shard_actor import ShardActor
from tidegate_core.rows.effects import (
    STORE_ANSWERS,
    Drained,
    EffectRequest,
    EffectResult,
    EndOffsets,
    Membership,
    ProveMembership,
    ReadEndOffsets,
    StopReading,
)
from tidegate_core.rows.scope_suspension import ScopeSuspensions
from tidegate_core.rows.source_list import Sources
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.shard.map_transition import await_former_positions
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS

REACQUIRE_PAUSE_MS = 500
"""Pause before a fenced owner that is still a member starts again; jittered by its identity."""
PROVE_AGAIN_MS = 1_000
ASK_AGAIN_MS = 1_000
"""Interval between questions for the end of the request log. Until the brokers answer, each create costs a look-up."""
OUTDATED_PAUSE_MS = 5_000
"""Pause before the next try. In it `tidegate migrate` takes the new version back if this node obstructs it, or the process ends."""


class Outdated(Exception):
    """The store's rows have a version that this process cannot read; it has read none of them."""


class PartitionActor:
    """Drives the shards and cursors of one ownership topic partition.

    Args:
        holding: Assignment of the topic partition.
        index: Subscription index of the node; all its partition actors share it.
    """

    def __init__(self, holding: Assignment, index: SubscriptionIndex) -> None:
        self.holding = holding
        self.shards: dict[int, ShardActor] = {}
        self.planes: dict[int, MessageScheduler] = {}
        self.is_serving = False
        self._index = index
        self._host = ActorContext(holding)
        self._cursors: dict[tuple[str, int], TopicCursor] = {}
        self._requests: TopicCursor | None = None
        self._suspensions = self._watch_suspensions()
        self._source_list: ClusterObjectWatch[Sources] | None = None
        self._events: EventsWatch | None = None
        self._sources: SourceWatch | None = None
        self._draining = False

    # -- the driver's side --------------------------------------------------------------------------------------------

    def step(self, now: int, incoming: Input) -> list[EffectRequest]:
        """Takes one input and returns the effects to carry out.

        Args:
            now: Driver's checked clock, milliseconds since the epoch; if it goes back, the former value counts.
            incoming: The input.
        """
        self._host.now = max(self._host.now, now)
        self._look_for_silence()
        try:
            self._take(incoming)
            self._host.ring()
        except Fenced as fenced:
            self._fall(fenced)
        asked, self._host.operations.asked = self._host.operations.asked, []
        return asked

    def next_wake(self) -> int | None:
        """Returns the instant at which `Tick` is due at the latest."""
        return self._host.next_wake()

    def next_due(self) -> int | None:
        """Returns the earliest due instant in memory. A driver of simulated time may skip all ticks before it.

        Rows outside memory do not count: a tick shortly before their instant reads them.
        """
        known = [self._host.next_due(), *(shard.memory.next_due() for shard in self.shards.values())]
        return min((each for each in known if each is not None), default=None)

    def vouch(self, now: int) -> None:
        """Records that the store was reachable up to now: a driver of simulated time skipped the time in between."""
        self._host.store_seen = max(self._host.store_seen, now)

    @property
    def writes(self) -> int:
        """Version in which the actor writes rows."""
        return self._host.writes

    @property
    def has_ended(self) -> bool:
        """Whether the actor will emit nothing more."""
        return self._host.ended

    def awaits(self, token: int) -> bool:
        """Whether the effect with this token belongs to the present life. Effects of a fenced life may wait long for their turn, and must not run."""
        return self._host.operations.awaits(token)

    def served_until(self, now: int) -> int | None:
        """Returns the instant up to which all shards were certainly served, for the node's heartbeat row; None: unknown.

        It is at most the store's last answer: an owner that waits for the store serves no shard. It is None before all shards are acquired. The
        lease of the others may still name this process from an earlier ownership, and the heartbeat would count for them, too.
        """
        if not self.shards or len(self.shards) < len(self.holding.owned_shards()):
            return None
        return min(self._host.store_seen, *(shard.outages.complete_until(now) for shard in self.shards.values()))

    def _look_for_silence(self) -> None:
        """Records an outage before the input takes effect, if the store did not answer for long or the process was frozen."""
        since = self._host.store_seen
        if self._host.now - since >= OUTAGE_GRACE_MS:
            for shard in self.shards.values():
                shard.outages.unserved_since(since)

    def _take(self, incoming: Input) -> None:
        match incoming:
            case EffectResult():
                if isinstance(incoming.result, STORE_ANSWERS):
                    self._host.store_seen = self._host.now
                self._host.operations.answer(incoming)
            case RecordsArrived():
                self._take_records(incoming)
            case Woken(controls=True):
                self._suspensions.check()
                self._read_sources()
            case Woken(shard, run_id):
                if shard in self.shards:
                    self.shards[shard].wake(run_id)
            case Migrated(writes):
                self._host.writes = max(self._host.writes, min(writes, self.holding.readable.newest))
            case Begin():
                self._host.operations.start(self._live())
            case Drain():
                self._host.operations.start(self._drain())
            case OffsetOutOfRange(topic, topic_partition, offset):
                cursor = self._cursors.get((topic, topic_partition))
                if cursor is None or not cursor.skip_missing_offset(offset):
                    self._host.note("position_gone", topic=topic, topic_partition=topic_partition, offset=offset)
                    self._look_for_another(topic)
            case Tick():
                pass

    def _take_records(self, arrived: RecordsArrived) -> None:
        topic, topic_partition = arrived.topic, arrived.topic_partition
        cursor = self._cursors.get((topic, topic_partition))
        if cursor is None:
            return
        if arrived.topic_id == cursor.topic.id:
            cursor.offer(arrived.records)
            return
        # The topic was recreated: name and offsets fit, but the cursor belongs to the former topic. So it does not move.
        self._host.emit(StopReading(topic, topic_partition))
        self._host.note(
            "topic_made_anew", topic=topic, topic_partition=topic_partition, offset=arrived.records[0].offset
        )
        self._look_for_another(topic, cursor.topic.id)

    def _look_for_another(self, topic: str, outlived: str | None = None) -> None:
        for watch in self._watches():
            watch.look_for_another(topic, outlived=outlived)

    def _watches(self) -> Sequence[EventsWatch | SourceWatch]:
        return [watch for watch in (self._events, self._sources) if watch is not None]

    # -- life ---------------------------------------------------------------------------------------------------------

    def _live(self) -> Operation[None]:
        try:
            yield from self._take_over()
        except NewerOwnerExists:
            self._host.note("outranked", topic_partition=self.holding.topic_partition)
            self._start_again(REACQUIRE_PAUSE_MS)
        except Outdated as outdated:
            self._host.note("schema_refused", topic_partition=self.holding.topic_partition, message=str(outdated))
            self._start_again(OUTDATED_PAUSE_MS)

    def _take_over(self) -> Operation[None]:
        requests = yield from self._raise_position()
        if requests is None:
            return
        former = yield from await_former_positions(self._host, self._is_member)
        if self._host.ended:
            return
        acquisition = Acquisition(self._host, self._index, requests, former, self.shards, self.planes)
        yield from acquisition.of_all_shards()
        if acquisition.refusal is not None:
            raise Outdated(acquisition.refusal)
        if not (yield from self._is_member()) or self._draining:
            return
        log_end = yield from self._read_log_end(requests)
        # Read after the fence, so that the version is at least the one in each lease.
        yield from self._suspensions.read()
        yield from self._recover_all()
        if any(shard.is_draining for shard in self.shards.values()):
            return  # A shard that was not recovered before the drain has begun nothing.
        ingest = RequestIngest(requests, self.planes, log_end)
        self._host.operations.start(ingest.serve())
        if log_end is None:
            self._host.operations.start(self._find_log_end(requests, ingest))
        self._host.operations.start(self._suspensions.serve())
        requests.start_reading()
        self._requests = requests
        self._watch_topics(requests)
        self._host.operations.start(pass_marks(self._host, self._cursors))
        self.is_serving = True
        self._host.note("serving", topic_partition=self.holding.topic_partition, shards=len(self.shards))

    def _watch_topics(self, requests: TopicCursor) -> None:
        if self._draining:
            return  # The drain has closed all watches. New ones would acquire cursors and obstruct the next owner.
        self._events = EventsWatch(self._host, self._index, requests, self._cursors)
        self._sources = SourceWatch(self._host, self._index, requests, self._cursors, self._read_sources)
        self._source_list = ClusterObjectWatch(self._host, SOURCES, self._sources.follow, fixed_rate=True)
        self._host.operations.start(self._events.serve())
        self._host.operations.start(self._source_list.serve())

    def _read_sources(self) -> None:
        if self._source_list is not None:
            self._source_list.check()

    def _watch_suspensions(self) -> ClusterObjectWatch[ScopeSuspensions]:
        shards = self.shards

        def tell_shards(suspensions: ScopeSuspensions, read_at: int) -> Operation[None]:
            for shard in list(shards.values()):
                shard.suspensions_changed(suspensions, read_at)
            yield from ()

        return ClusterObjectWatch(self._host, SCOPE_SUSPENSIONS, tell_shards)

    def _raise_position(self) -> Operation[TopicCursor | None]:
        """Raises the epoch of the request cursor: no former owner can move it from here on. None: this node lost the topic partition.

        A cursor with an older map belongs to another node if this node is no member. Once the cursor carries the present map, other nodes
        acquire shards by that map. If a former owner raised it, they would do so concurrently with the present owner, which still follows the
        older map.

        Cursors of events follow when the shards are served (`TopicFollower`). Events that a former owner still hands out lie in inboxes, where
        the owners of their shards find them.
        """
        holding = self.holding
        requests = TopicCursor(
            self._host, holding.requests, holding.topic_partition, holding.requests_dlq_topic, REQUESTS_TOGETHER_MAX
        )
        if not (yield from requests.raise_epoch(self._is_member)):
            if self._host.ended:
                return None
            raise NewerOwnerExists
        self._cursors[(requests.topic.name, requests.topic_partition)] = requests
        return requests

    def _read_log_end(self, requests: TopicCursor) -> Operation[int | None]:
        """Returns the end offset of the request log; 0 if the topic is gone, because nothing more is read from it.

        None: the brokers know the topic, but do not yet know this topic partition, by which it has grown.
        """
        told = yield from self._host.read_for_good(ReadEndOffsets(requests.topic.name))
        assert isinstance(told, EndOffsets)
        of_topic = f"{requests.topic.id}/"
        gone = None if any(place.startswith(of_topic) for place in told.offsets) else 0
        return told.offsets.get(f"{of_topic}{requests.topic_partition}", gone)

    def _find_log_end(self, requests: TopicCursor, ingest: RequestIngest) -> Operation[None]:
        log_end: int | None = None
        while log_end is None:
            yield from self._host.sleep(ASK_AGAIN_MS)
            log_end = yield from self._read_log_end(requests)
        ingest.log_ends_at(log_end)

    def _recover_all(self) -> Operation[None]:
        known, read_at = self._suspensions.known, self._suspensions.read_at
        yield from run_concurrently(self._host, [each.recover(known, read_at) for each in self.shards.values()])

    # -- the end ------------------------------------------------------------------------------------------------------

    def _drain(self) -> Operation[None]:
        """Finishes the work in progress, stores checkpoints and reports. The next owner does all that is not finished in time."""
        self._draining = True
        # Some messages may be sent only after the cursor has passed their create, so reading goes on for them.
        yield from self._host.wait_while(lambda: any(plane.waits_for_the_log for plane in self.planes.values()))
        for plane in self.planes.values():
            plane.stop_sending()
        for watch in self._watches():
            watch.close()
        if self._source_list is not None:
            self._source_list.close()
        self._stop_reading()
        for cursor in self._cursors.values():
            cursor.stop_accepting()
        # While a message waits for the cursor to pass its create, no checkpoint passes the messages that were sent after it.
        yield from self._host.wait_while(lambda: not all(each.is_idle for each in self._in_flight()))
        # A message scheduler sends, and a shard works, as soon as it is recovered; that can be long before all shards are.
        planes, shards = self.planes.values(), self.shards.values()
        yield from run_concurrently(
            self._host, [*(plane.drain() for plane in planes), *(shard.drain() for shard in shards)]
        )
        self._host.emit(Drained(self.holding.topic_partition))
        self._host.ended = True

    def _in_flight(self) -> Sequence[TopicCursor | EventsWatch | SourceWatch]:
        return [*([] if self._requests is None else [self._requests]), *self._watches()]

    def _fall(self, fenced: Fenced) -> None:
        """A newer epoch exists: ends all work of this life."""
        self._host.note("fenced", topic_partition=self.holding.topic_partition, pk=fenced.key.pk, sk=fenced.key.sk)
        self._start_again(REACQUIRE_PAUSE_MS)

    def _start_again(self, pause: int) -> None:
        self._stop_reading()
        asked = self._host.operations.asked
        self._host.new_life()
        self._host.operations.asked = asked
        self.shards, self.planes, self._cursors, self._requests = {}, {}, {}, None
        self._suspensions = self._watch_suspensions()
        self._events = self._sources = self._source_list = None
        self.is_serving = False
        if self._draining:
            self._host.emit(Drained(self.holding.topic_partition))
            self._host.ended = True
            return
        self._host.operations.start(self._prove_and_live(pause))

    def _prove_and_live(self, pause: int) -> Operation[None]:
        yield from self._sleep_about(pause)
        if (yield from self._is_member()):
            yield from self._live()

    def _is_member(self) -> Operation[bool]:
        """Asks the group until it answers whether this node still owns the topic partition; if not, the actor ends."""
        while True:
            membership = yield ProveMembership(self.holding.topic_partition)
            assert isinstance(membership, Membership)
            if membership.holds is not None:
                break
            yield from self._sleep_about(PROVE_AGAIN_MS)
        if not membership.holds:
            self._host.note("not_a_member", topic_partition=self.holding.topic_partition)
            self._host.ended = True
        return membership.holds

    def _sleep_about(self, pause: int) -> Operation[None]:
        yield from self._host.sleep(pause + self._host.jitter(f"again {self._host.now}", pause))

    def _stop_reading(self) -> None:
        for topic, topic_partition in self._cursors:
            self._host.emit(StopReading(topic, topic_partition))


__all__: Sequence[str] = ["NewerOwnerExists", "PartitionActor"]
