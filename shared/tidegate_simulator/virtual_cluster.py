"""One partition actor in a world without faults: store, two logs, programs and a clock that jumps from one due time to the next.

The decisions and transactions are production's. Everything else takes no time at all: what is asked for is answered at the same
instant. Alarms that only look for what got lost on its way (`routine`) are passed over, because nothing gets lost here; so
a year of a daily schedule is a few thousand steps.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count, islice

from tidegate_core.engine.actor_inputs import (
    Assignment,
    Begin,
    Input,
    LogRecord,
    RecordsArrived,
    Tick,
    TopicFacts,
    Woken,
)
from tidegate_core.language.values.instants import Instant, format_instant, parse_instant
from tidegate_core.messages.wire.timer_window import WINDOW_MS
from tidegate_core.ownership.partition_actor import PartitionActor
from tidegate_core.rows import keys
from tidegate_core.rows.effects import (
    Cancel,
    Commit,
    Committed,
    Drained,
    EffectRequest,
    EffectResult,
    EndOffsets,
    FindGaps,
    Gaps,
    Inspect,
    Inspected,
    Items,
    LoadSampled,
    Lookup,
    ManyProduced,
    Membership,
    Notice,
    Produce,
    Produced,
    ProduceMany,
    ProveMembership,
    Read,
    ReadEndOffsets,
    ReadRange,
    Refused,
    Result,
    ReturnCredits,
    SampleLoad,
    StartReading,
    StopReading,
    Submit,
    WakeUp,
    Watch,
    Write,
    Written,
)
from tidegate_core.rows.store_operations import Key, RangeRead, Transaction
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.shard.outages.outage_recorder import heartbeat_row
from tidegate_core.writes.settlement import Settlement
from tidegate_memory.store import BeforeImages, MemoryStore, WrittenBatch
from tidegate_simulator.occurrence_history import Stories
from tidegate_simulator.run_plan import RunPlan
from tidegate_simulator.simulated_launcher import Programs

NEAR_MS = WINDOW_MS // 2
"""How long before its time a row is brought into memory: an owner extends a window that ends sooner than that, whenever it did so last. The one
in which it holds timer rows of the run plane is longer. Any earlier, and what else has happened shortly before would have the look come too soon."""
RECURRING_NEAR_MS = 2 * WINDOW_MS
"""Recurring messages whose next fire is further ahead have a timer row of their own, which says when to be near."""
RECURRING_LOOK_MS = 30_000
"""How far time may jump while a recurring message is near: its fires have no rows, and are found half a window ahead."""


def row_comes_near(store: MemoryStore, now: Instant) -> Instant | None:
    """Returns when a row that is not in memory yet has to be read: the routine that reads it comes by at any tick."""
    # What is nearer than that is in memory by now; of a wide suspend there are rows that lie behind us.
    firsts = [_first(store, prefix, now + NEAR_MS + 1) for prefix in (keys.TIMER_PREFIX, keys.MESSAGE_TIMER_PREFIX)]
    instants = [int(sk.split("#")[1]) - NEAR_MS for sk in firsts if sk is not None]
    if _first(store, keys.RECURRING_PREFIX) is not None:
        instants.append(now + RECURRING_LOOK_MS)
    return min(instants, default=None)


def limits_with_queue(store: MemoryStore) -> list[str]:
    """Returns the partition keys of all shared limits before which somebody waits."""
    found: list[str] = []
    low, high = keys.prefix_range(keys.QUEUE_ENTRY_PREFIX)
    while page := store.query(RangeRead(keys.shard_pk(0), low, high, limit=1)).items:
        found.append(str(page[0]["limit"]))
        low = keys.queue_entries_of(keys.limit_of(found[-1]))[1]
    return found


def _first(store: MemoryStore, prefix: str, instant: Instant | None = None) -> str | None:
    """Returns the first row of a kind, from an instant on where one is given."""
    low = prefix if instant is None else f"{prefix}{keys.instant_text(instant)}"
    page = store.query(RangeRead(keys.shard_pk(0), low, f"{prefix}{keys.LAST}", limit=1))
    return str(page.items[0]["sk"]) if page.items else None


REQUESTS, EVENTS, RECEIPTS, RUNS = "tidegate.requests", "tidegate.events", "tidegate.receipts", "tidegate.runs"
LETTERS = ("tidegate.requests.dlq", "tidegate.events.dlq", "tidegate.runs.dlq")
TOPIC_IDS = {REQUESTS: "a" * 32, EVENTS: "b" * 32}
STEPS_AT_ONE_INSTANT_MAX = 10_000_000
"""Steps that follow from one another without time passing: more are no work but a circle."""
CIRCLES_MAX = 2_000
"""Times that something ends at one instant and starts something new at the same one: what waits in a queue does so once each, what
starts itself in the end does so for ever."""
SKIPS_ROUTINE = True
"""A test says False, and finds no difference."""


class TimeStandsStill(Exception):
    """Schedules start each other again and again at one instant, because their runs take no time.

    Attributes:
        at: The instant.
        schedules: Those that do, as `namespace/name`, sorted.
    """

    def __init__(self, at: Instant, schedules: tuple[str, ...]) -> None:
        self.at = at
        self.schedules = schedules
        named = ", ".join(schedules[:10]) + (", ..." if len(schedules) > 10 else "")
        super().__init__(
            f"time stands still at {format_instant(at)}: runs of {named} take no time, and their ends start others of them "
            "again and again; give them a duration, or break the circle"
        )


class World:
    """Attributes:
    now: Milliseconds since the epoch.
    stories: What became of each occurrence.
    receipts: By request id.
    """

    def __init__(self, begin: Instant, plan: RunPlan, load: float | None, minimum_period_ms: int) -> None:
        self.now = begin
        self.stories = Stories(lambda: self.now)
        self.receipts: dict[str, bytes] = {}
        self._store = MemoryStore(self._applied)
        self._load = load
        self._minimum_period_ms = minimum_period_ms
        self._logs: dict[str, list[LogRecord]] = {REQUESTS: [], EVENTS: []}
        self._reading: set[str] = set()
        self._soon: deque[EffectRequest | Input] = deque()
        self._timeline: list[tuple[Instant, int, Callable[[], None]]] = []
        self._order = count()
        self._circles = 0
        self._writes = 0
        self._lives = count(1)
        self._programs = Programs(self, plan)
        self._actor: PartitionActor | None = None

    # -- life ---------------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Somebody takes the shard over, and recovers it from its rows."""
        owner = f"simulator-{next(self._lives)}"
        holding = Assignment(
            owner=owner,
            node=owner,
            topic_partition=0,
            topic_partitions=1,
            map_version=1,
            shards=1,
            cluster_id="simulated",
            requests=TopicFacts(REQUESTS, TOPIC_IDS[REQUESTS], 1),
            events_topic=EVENTS,
            receipts_topic=RECEIPTS,
            runs_topic=RUNS,
            requests_dlq_topic=LETTERS[0],
            events_dlq_topic=LETTERS[1],
            runs_dlq_topic=LETTERS[2],
            minimum_period_ms=self._minimum_period_ms,
            program_files_checked=False,
            recurring_near_ms=RECURRING_NEAR_MS,
        )
        self._actor = PartitionActor(holding, SubscriptionIndex())
        self.soon(Begin())
        self._settle()

    def fall(self) -> None:
        """Nobody serves from now on; topics go on, and programs do."""
        if self._actor is None:
            return
        actor, owner = self._actor, self._actor.holding.owner
        served = actor.served_until(self.now)
        assert served is not None, "it holds its shard since it was made"
        self._store.write([heartbeat_row(owner, owner, self.now, {0: served}, 0)])
        self._actor = None
        self._soon.clear()
        self._reading.clear()
        self._programs.nobody_watches()

    # -- time ---------------------------------------------------------------------------------------------------------

    def advance(self, until: Instant) -> None:
        """Lets time pass up to an instant, which is included. Raises TimeStandsStill."""
        while (upcoming := self._next()) is not None and upcoming <= until:
            occurrences = len(self.stories.told)
            if upcoming > self.now:
                self.now, self._circles = upcoming, 0
            while self._timeline and self._timeline[0][0] <= self.now:
                heapq.heappop(self._timeline)[2]()
            self.soon(Tick())
            self._settle()
            self._circles += len(self.stories.told) > occurrences
            if self._circles > CIRCLES_MAX:
                newest = islice(reversed(self.stories.told.values()), CIRCLES_MAX // 2)
                raise TimeStandsStill(self.now, tuple(sorted({story.schedule for story in newest})))
        self.now = max(self.now, until)
        self.soon(Tick())
        self._settle()

    def _next(self) -> Instant | None:
        known = [self._timeline[0][0]] if self._timeline else []
        if self._actor is not None:
            known += [
                each for each in (self._due(self._actor), row_comes_near(self._store, self.now)) if each is not None
            ]
        return min(known, default=None)

    def _due(self, actor: PartitionActor) -> Instant | None:
        return actor.next_due() if SKIPS_ROUTINE else actor.next_wake()

    def later(self, milliseconds: int, action: Callable[[], None]) -> None:
        self.at(self.now + milliseconds, action)

    def at(self, instant: Instant, action: Callable[[], None]) -> None:
        """Has something happen at an instant; what was asked for first comes first."""
        heapq.heappush(self._timeline, (instant, next(self._order), action))

    def soon(self, incoming: Input) -> None:
        if self._actor is not None:
            self._soon.append(incoming)

    def _settle(self) -> None:
        """Lets all happen that follows at this instant.

        A slot of a shared limit that comes back from a run that nobody had waited for is found by its home's routine, within a
        second; here the home is told of each change.
        """
        writes = -1
        while writes != self._writes:
            writes = self._writes
            self._carry_out()
            if writes != self._writes:
                for limit in limits_with_queue(self._store):
                    self.soon(Woken(0, limit))
        self._carry_out()

    def _carry_out(self) -> None:
        for _ in range(STEPS_AT_ONE_INSTANT_MAX):
            if not self._soon or self._actor is None:
                return
            following = self._soon.popleft()
            if isinstance(following, EffectRequest):
                result = self._result(following)
                if result is not None and following.token:
                    self._soon.append(EffectResult(following.token, result))
            else:
                self._actor.vouch(self.now)
                self._soon.extend(self._actor.step(self.now, following))
        raise AssertionError("the actor goes round in circles")

    # -- topics -------------------------------------------------------------------------------------------------------

    def append(self, topic: str, value: bytes) -> None:
        """Appends a record to `events` or `requests`."""
        name = EVENTS if topic == "events" else REQUESTS
        log = self._logs[name]
        record = LogRecord(len(log), self.now, None, value)
        log.append(record)
        if name in self._reading:
            self.soon(RecordsArrived(name, 0, (record,), TOPIC_IDS[name]))

    def give(self, topic: str, value: bytes) -> None:
        """Appends a record, and lets all happen that follows from it at this instant."""
        self.append(topic, value)
        self._settle()

    # -- effects ------------------------------------------------------------------------------------------------------

    def _result(self, ask: EffectRequest) -> Result | None:
        match ask.effect:
            case Read(wanted):
                return Items(self._store.get(list(wanted)))
            case ReadRange(wanted):
                return self._store.query(wanted)
            case Commit(transaction):
                return self.transact(transaction)
            case Write(batch):
                self._store.write(batch.actions)
                return Written()
            case FindGaps():
                return Gaps(frozenset())
            case ReadEndOffsets(topic):
                # A topic of the users' own has nothing to say here: what it would carry are events among the happenings.
                own = topic in TOPIC_IDS
                return EndOffsets({f"{TOPIC_IDS[topic]}/0": len(self._logs[topic])} if own else {})
            case Produce():
                return self._produced(ask.effect)
            case ProduceMany(produced):
                return ManyProduced([self._produced(record) for record in produced])
            case Submit() | Lookup() | Watch() | Cancel():
                return self._programs.carry_out(ask, ask.effect)
            case SampleLoad():
                return LoadSampled(self._load, "" if self._load is not None else "the simulation was given no load")
            case Inspect():
                return Inspected()
            case ProveMembership():
                return Membership(True)
            case WakeUp(shard, run, controls):
                self.soon(Woken(shard, run, controls))
            case StartReading(topic, _, offset):
                self._reading.add(topic)
                records = tuple(self._logs[topic][offset or 0 :])
                if records:
                    self.soon(RecordsArrived(topic, 0, records, TOPIC_IDS[topic]))
            case StopReading(topic, _):
                self._reading.discard(topic)
            case Notice("recurring_not_sent", fields):
                self.stories.not_sent(fields)
            case ReturnCredits() | Notice() | Drained():
                pass
        return None

    def transact(self, transaction: Transaction) -> Committed | Refused:
        _, step = Settlement(transaction).answered(self._store.transact(transaction))
        assert isinstance(step, Committed | Refused), "a store that answers everything leaves no doubt"
        return step

    def _produced(self, produce: Produce) -> Produced:
        if produce.topic == RECEIPTS:
            self.receipts[(produce.key or b"").decode()] = produce.value
        elif produce.topic != RUNS and produce.topic not in LETTERS:
            headers = {name: value.decode() for name, value in produce.headers}
            self.stories.delivered(headers, parse_instant(headers["tidegate-nominal"]))
        return Produced()

    def _applied(self, written: Transaction | WrittenBatch, befores: BeforeImages) -> None:
        self._writes += 1
        actions = written.actions if isinstance(written, Transaction) else written
        for action in actions:
            key: Key = action.key
            self.stories.learn(key, self._store.look(key), befores[key])
