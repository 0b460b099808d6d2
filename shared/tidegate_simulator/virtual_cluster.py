"""One partition actor in a world without faults: store, two logs, programs and a clock that jumps to the next due time.

The decisions and transactions are those of production. All else takes no time: each effect is answered at the same
instant. Alarms that only search for lost rows or records (`routine`) are skipped, because nothing is lost here. So
a year of a daily schedule takes a few thousand steps.
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
"""Time before its instant at which a row is loaded. An owner extends its window when less than this is left, whenever
it last did so. The window with the timer rows of schedules is longer. Loaded earlier, another event shortly before
could trigger the check too soon."""
RECURRING_NEAR_MS = 2 * WINDOW_MS
"""Recurring messages whose next fire is further ahead have a wake row, which states when to load them."""
RECURRING_LOOK_MS = 30_000
"""Longest jump of time while a recurring message is loaded: its fires have no rows, and are found half a window
ahead."""


def row_comes_near(store: MemoryStore, now: Instant) -> Instant | None:
    """Returns when the next row that is not in memory must be read; the routine that reads it runs at any tick."""
    # Nearer rows are in memory already. Rows of a scope suspension may be past their instant.
    firsts = [_first(store, prefix, now + NEAR_MS + 1) for prefix in (keys.TIMER_PREFIX, keys.MESSAGE_TIMER_PREFIX)]
    instants = [int(sk.split("#")[1]) - NEAR_MS for sk in firsts if sk is not None]
    if _first(store, keys.RECURRING_PREFIX) is not None:
        instants.append(now + RECURRING_LOOK_MS)
    return min(instants, default=None)


def limits_with_queue(store: MemoryStore) -> list[str]:
    """Returns the partition keys of all shared limits with waiting jobs."""
    found: list[str] = []
    low, high = keys.prefix_range(keys.QUEUE_ENTRY_PREFIX)
    while page := store.query(RangeRead(keys.shard_pk(0), low, high, limit=1)).items:
        found.append(str(page[0]["limit"]))
        low = keys.queue_entries_of(keys.limit_of(found[-1]))[1]
    return found


def _first(store: MemoryStore, prefix: str, instant: Instant | None = None) -> str | None:
    """Returns the first row of a kind, optionally from an instant on."""
    low = prefix if instant is None else f"{prefix}{keys.instant_text(instant)}"
    page = store.query(RangeRead(keys.shard_pk(0), low, f"{prefix}{keys.LAST}", limit=1))
    return str(page.items[0]["sk"]) if page.items else None


REQUESTS, EVENTS, RECEIPTS, RUNS = "tidegate.requests", "tidegate.events", "tidegate.receipts", "tidegate.runs"
LETTERS = ("tidegate.requests.dlq", "tidegate.events.dlq", "tidegate.runs.dlq")
TOPIC_IDS = {REQUESTS: "a" * 32, EVENTS: "b" * 32}
STEPS_AT_ONE_INSTANT_MAX = 10_000_000
"""Most steps at one instant; more means an endless loop."""
CIRCLES_MAX = 2_000
"""Most times that an end at one instant starts new work at the same instant. Each queued job does so once; a schedule
that starts itself does so for ever."""
SKIPS_ROUTINE = True
"""Whether routine alarms are skipped. A test sets False and finds no difference."""


class TimeStandsStill(Exception):
    """Schedules start each other repeatedly at one instant, because their runs take no time.

    Attributes:
        at: The instant.
        schedules: Names of these schedules, as `namespace/name`, sorted.
    """

    def __init__(self, at: Instant, schedules: tuple[str, ...]) -> None:
        self.at = at
        self.schedules = schedules
        named = ", ".join(schedules[:10]) + (", ..." if len(schedules) > 10 else "")
        super().__init__(
            f"time stands still at {format_instant(at)}: runs of {named} take no time, and their ends start each other without "
            "end; give them a duration, or break the circle"
        )


class World:
    """The simulated world.

    Attributes:
        now: Milliseconds since the epoch.
        stories: Histories of all occurrences.
        receipts: Receipts by request id.
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
        """Starts an owner, which recovers the shard from its rows."""
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
        """Ends the owner; topics and programs go on."""
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
        """Advances time up to an instant, inclusive. Raises TimeStandsStill."""
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
        """Schedules an action at an instant; actions of one instant run in the order of these calls."""
        heapq.heappush(self._timeline, (instant, next(self._order), action))

    def soon(self, incoming: Input) -> None:
        if self._actor is not None:
            self._soon.append(incoming)

    def _settle(self) -> None:
        """Processes all consequences at this instant.

        In production nothing wakes the limit coordinator for a permit of a schedule without waiting jobs. Its periodic check finds the permit within a second. Here each change wakes the coordinator.
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
        """Appends a record and processes all its consequences at this instant."""
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
                # Users' topics are empty here: their records would be events among the happenings.
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
