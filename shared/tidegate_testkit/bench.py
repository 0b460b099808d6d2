"""Drives one partition actor synchronously on the store in memory, with immediate or scripted answers. For tests of the core.

Nothing takes time on a bench: effects are carried out in the order in which they were asked, at the same instant, unless a
test scripts an answer. So a run without a fault is the yardstick for the same run with one.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from tidegate_core.decisions.event_index import EventIndex
from tidegate_core.decisions.inputs import Begin, Drain, Input, LogRecord, Poked, RecordsArrived, Tick, TopicFacts
from tidegate_core.decisions.partition_actor import PartitionActor
from tidegate_core.effects import (
    Answer,
    Ask,
    Cancel,
    Commit,
    Committed,
    Drained,
    Effect,
    EndOffsets,
    Inspect,
    Invalid,
    Items,
    Lookup,
    Membership,
    Notice,
    Poke,
    Produce,
    Produced,
    ProveMembership,
    Read,
    ReadEndOffsets,
    ReadRange,
    Refused,
    Result,
    SampleLoad,
    StartReading,
    StopReading,
    Submit,
    Taken,
    Unavailable,
    Watch,
    Write,
    Written,
)
from tidegate_core.store.values import Batch, Transaction
from tidegate_core.transactions.settlement import ReadWitness, SendAgain, Settlement
from tidegate_memory.store import MemoryStore
from tidegate_ports.store import StoreRequestInvalid
from tidegate_testkit.bench_outcomes import Outcomes, Sent
from tidegate_testkit.bench_programs import Behaviour, Programs
from tidegate_testkit.builders import EVENTS, NOW, REQUESTS, Doc, a_holding

__all__ = ["Behaviour", "Bench"]

EFFECTS_AT_ONE_INSTANT_MAX = 50_000
"""An actor that asks for more without time passing goes round in circles."""
OUTSIDE = (Commit, Write, Produce, Submit, Cancel)
"""Effects that change something outside of the actor: a crash between two others cannot be told from one at these."""
STORE = (Read, ReadRange, Commit, Write)


Match: TypeAlias = Callable[[Effect], bool]


@dataclass(slots=True)
class _Rule:
    """A scripted answer: `before` and `after` say what happens around carrying the effect out."""

    match: Match
    times: int
    act: Callable[[Ask], None]


class Bench(Programs, Outcomes):
    """One partition actor with a world around it: store, two logs, a broker that takes everything, programs.

    Attributes:
        crash_after: The actor is killed when this many effects on the outside are carried out; a successor begins at once.
        late_writes_after: Milliseconds after a crash in which the writes arrive that the dead actor had asked for.
        store_answers_after: Milliseconds that the store takes for each answer.
        ahead_of_broker: Milliseconds that the actor's clock is ahead of the broker's, which dates the records.
    """

    def __init__(
        self,
        *,
        behaviour: Behaviour | None = None,
        beside: Bench | None = None,
        owner: str | None = None,
        **holding: Any,
    ) -> None:
        """Makes an actor that has not begun.

        Args:
            behaviour: Of all programs.
            beside: Another bench, whose store, logs and programs this one shares: two holders that both think that they hold.
            owner: Of the first actor; two benches on one store need two.
            holding: Of all its actors.
        """
        Programs.__init__(self, behaviour)
        Outcomes.__init__(self)
        self.store = MemoryStore()
        self.now = NOW
        self.ahead_of_broker = 0
        self.store_answers_after = 0
        self.crash_after: int | None = None
        self.late_writes_after: int | None = None
        self.effects_outside = 0
        self.lives = 0
        self.is_member: bool | None = True
        self._holding = holding
        self.topics: dict[str, TopicFacts] = {}
        self._logs: dict[tuple[str, int], list[LogRecord]] = {}
        if beside is not None:
            self._share(beside)
        self._reading: set[tuple[str, int]] = set()
        self._soon: deque[Ask | Input] = deque()
        self._timeline: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._rules: list[_Rule] = []
        self._held: list[Callable[[], None]] = []
        self.new_actor(owner)

    def _share(self, other: Bench) -> None:
        """What is outside of an actor is the same for both."""
        self.store, self.now, self.started = other.store, other.now, other.started
        self._logs, self._processes, self.topics = other._logs, other._processes, other.topics

    # -- life ---------------------------------------------------------------------------------------------------------

    def new_actor(self, owner: str | None = None) -> None:
        """Forgets the present actor, if any, and makes another one on the same world; `begin` or `run` sets it going."""
        self.lives += 1
        self.holding = a_holding(owner or f"node-{self.lives}", **self._holding)
        self.actor = PartitionActor(self.holding, EventIndex())
        self._soon.clear()
        self._reading.clear()
        self._held.clear()
        self._nobody_watches()
        self._soon.append(Begin())

    def crash(self) -> None:
        """Kills the actor where it stands, and sets a successor going."""
        self.crash_after = None
        handed_out = [each for each in self._soon if isinstance(each, Ask)]
        self.new_actor()
        if self.late_writes_after is not None:
            self._later(self.late_writes_after, lambda: self._arrive_late(handed_out))

    def _arrive_late(self, handed_out: list[Ask]) -> None:
        """What a dead actor's driver had sent reaches the store after all; the answers find nobody."""
        for ask in handed_out:
            if isinstance(ask.effect, Commit | Write):
                self._result(ask)

    def away(self, milliseconds: int) -> None:
        """The actor dies and nobody takes over; programs go on. A successor begins at the end."""
        self.new_actor()
        self._soon.clear()
        end = self.now + milliseconds
        while self._timeline and self._timeline[0][0] <= end:
            at, _, action = heapq.heappop(self._timeline)
            self.now = max(self.now, at)
            action()
            self._soon.clear()
        self.now = end
        self._soon.append(Begin())
        self.settle()

    def months(self, number: int) -> None:
        """So much time passes while nobody is here, and the store's TTL acts."""
        self.away(number * 30 * 24 * 3_600_000)
        self.store.expire(self.now)

    def drain(self) -> None:
        self.give(Drain())

    # -- inputs -------------------------------------------------------------------------------------------------------

    def give(self, *inputs: Input) -> None:
        """Hands inputs to the actor, and lets everything happen that follows at this instant."""
        self._soon.extend(inputs)
        self.settle()

    def request(self, document: Doc | bytes, topic_partition: int = 0) -> None:
        self.append(REQUESTS, topic_partition, document)

    def event(self, document: Doc | bytes, topic_partition: int = 0) -> None:
        self.append(EVENTS, topic_partition, document)

    def create_topic(self, name: str, topic_partitions: int = 1, topic_id: str = "c" * 32) -> None:
        """A topic of the users' own, or the one of this name made anew."""
        self.topics[name] = TopicFacts(name, topic_id, topic_partitions)

    def append(self, topic: str, topic_partition: int, *documents: Doc | bytes) -> None:
        """Appends records; they arrive as one batch if the topic partition is being read."""
        log = self.log(topic, topic_partition)
        first = len(log)
        for document in documents:
            value = document if isinstance(document, bytes) else json.dumps(document).encode()
            log.append(LogRecord(len(log), self.now - self.ahead_of_broker, None, value))
        self.hand_over(topic, topic_partition, first)

    def hand_over(self, topic: str, topic_partition: int, first: int) -> None:
        """Gives the actor the log's records from an offset on, as one batch, if the topic partition is being read."""
        if (topic, topic_partition) in self._reading:
            self._soon.append(RecordsArrived(topic, topic_partition, tuple(self.log(topic, topic_partition)[first:])))
        self.settle()

    @property
    def logs(self) -> dict[tuple[str, int], list[LogRecord]]:
        """Records by topic and topic partition."""
        return self._logs

    def log(self, topic: str, topic_partition: int) -> list[LogRecord]:
        return self._logs.setdefault((topic, topic_partition), [])

    # -- time ---------------------------------------------------------------------------------------------------------

    def run(self, milliseconds: int = 0) -> None:
        """Lets time pass, alarm by alarm."""
        end = self.now + milliseconds
        self.settle()
        while True:
            upcoming = self.next_moment()
            if upcoming is None or upcoming > end:
                break
            self.now = max(self.now, upcoming)
            if self._timeline and self._timeline[0][0] <= self.now:
                heapq.heappop(self._timeline)[2]()
            else:
                self._soon.append(Tick())
            self.settle()
        self.now = end
        # The clock that programs and logs see moved; so does the actor's.
        self.give(Tick())

    def next_moment(self) -> int | None:
        """Returns when something happens by itself; None when nothing will."""
        known = (self.actor.next_wake(), self._timeline[0][0] if self._timeline else None)
        return min((each for each in known if each is not None), default=None)

    def settle(self) -> None:
        """Carries out what was asked until nothing is left to do at this instant."""
        for _ in range(EFFECTS_AT_ONE_INSTANT_MAX):
            if not self._soon:
                return
            following = self._soon.popleft()
            if isinstance(following, Ask):
                self._carry_out(following)
            else:
                self._soon.extend(self.actor.step(self.now, following))
        raise AssertionError("the actor goes round in circles")

    def _soon_give(self, *inputs: Input) -> None:
        self._soon.extend(inputs)

    def _later(self, milliseconds: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._timeline, (self.now + milliseconds, next(self._order), action))

    # -- scripted answers -----------------------------------------------------------------------------------------------

    def answer_with(self, match: Match, result: Result | None, times: int = 1) -> None:
        """Answers so, and does nothing."""
        self._rules.append(_Rule(match, times, lambda ask: self._answer(ask, result)))

    def lose_answer_of(self, match: Match, times: int = 1) -> None:
        """Carries it out, and says that nobody knows."""

        def act(ask: Ask) -> None:
            self._result(ask)
            self._answer(ask, Unavailable("scripted"))

        self._rules.append(_Rule(match, times, act))

    def lose(self, match: Match, times: int = 1) -> None:
        """Does nothing, and says that nobody knows."""
        self.answer_with(match, Unavailable("scripted"), times)

    def hold_back(self, match: Match, times: int = 1, *, answer_only: bool = False) -> None:
        """Carries it out at `release`; `answer_only`: carries it out now, and answers at `release`."""

        def act(ask: Ask) -> None:
            if answer_only:
                result = self._result(ask)
                self._held.append(lambda: self._answer(ask, result))
            else:
                self._held.append(lambda: self._answer(ask, self._result(ask)))

        self._rules.append(_Rule(match, times, act))

    def delay(self, match: Match, times: int = 1) -> None:
        """Says that nobody knows, and carries it out at `release`: whoever asked has asked again meanwhile."""

        def act(ask: Ask) -> None:
            self._held.append(lambda: self._carry_out_unheard(ask))
            self._answer(ask, Unavailable("scripted"))

        self._rules.append(_Rule(match, times, act))

    def crash_at(self, match: Match) -> None:
        """Carries it out, and kills the actor, which never hears of it."""

        def act(ask: Ask) -> None:
            self._result(ask)
            self.crash()

        self._rules.append(_Rule(match, 1, act))

    def _carry_out_unheard(self, ask: Ask) -> None:
        self._result(ask)

    def release(self) -> None:
        held, self._held = self._held, []
        for each in held:
            each()
        self.settle()

    def as_usual(self) -> None:
        """Ends all scripts, and carries out what they held back."""
        self._rules.clear()
        self.release()

    @property
    def holds_something(self) -> bool:
        return bool(self._held)

    # -- effects ------------------------------------------------------------------------------------------------------

    def _carry_out(self, ask: Ask) -> None:
        self.asked.append(ask.effect)
        life = self.lives
        rule = next((rule for rule in self._rules if rule.times and rule.match(ask.effect)), None)
        if rule is not None:
            rule.times -= 1
            rule.act(ask)
        else:
            self._answer(ask, self._result(ask))
        if isinstance(ask.effect, OUTSIDE) and life == self.lives:
            self.effects_outside += 1
            if self.effects_outside == self.crash_after:
                self.crash()

    def _answer(self, ask: Ask, result: Result | None) -> None:
        if result is None or not ask.token:
            return
        answer, life = Answer(ask.token, result), self.lives
        if self.store_answers_after and isinstance(ask.effect, STORE):
            self._later(self.store_answers_after, lambda: self._soon_give(*[answer] * (life == self.lives)))
        else:
            self._soon_give(answer)

    def _result(self, ask: Ask) -> Result | None:
        match ask.effect:
            case Read(wanted):
                return Items(self.store.get(list(wanted)))
            case ReadRange(wanted):
                return self.store.query(wanted)
            case Commit(transaction):
                return self.transact(transaction)
            case Write(batch):
                return self._written(batch)
            case ReadEndOffsets(topic):
                return self._end_offsets(topic)
            case Produce():
                return self._produced(ask.effect)
            case Submit() | Lookup() | Watch() | Cancel() | Inspect() | SampleLoad():
                return self._launcher(ask)
            case ProveMembership():
                return Membership(self.is_member)
            case Poke(shard, run, controls):
                self._soon.append(Poked(shard, run, controls))
            case StartReading(topic, topic_partition, offset):
                self._reading.add((topic, topic_partition))
                records = tuple(self.log(topic, topic_partition)[offset or 0 :])
                if records:
                    self._soon.append(RecordsArrived(topic, topic_partition, records))
            case StopReading(topic, topic_partition):
                self._reading.discard((topic, topic_partition))
            case Taken() | Notice() | Drained():
                pass
        return None

    def transact(self, transaction: Transaction) -> Committed | Refused | Unavailable | Invalid:
        """Sends a transaction as a driver would, on a store that answers everything."""
        try:
            outcome = self.store.transact(transaction)
        except StoreRequestInvalid as invalid:
            return Invalid(str(invalid))
        _, step = Settlement(transaction).answered(outcome)
        assert not isinstance(step, SendAgain | ReadWitness)
        return step

    def _written(self, batch: Batch) -> Written | Invalid:
        try:
            self.store.write(batch.actions)
        except StoreRequestInvalid as invalid:
            return Invalid(str(invalid))
        return Written()

    def _end_offsets(self, topic: str) -> EndOffsets:
        own = {REQUESTS: self.holding.requests, EVENTS: self.holding.events}
        facts = own.get(topic) or self.topics.get(topic)
        if facts is None:
            return EndOffsets({})
        # The brokers know of topic partitions that came after the holder had asked for their number.
        known = [number for name, number in self._logs if name == topic]
        each = range(max([facts.topic_partitions, *(number + 1 for number in known)]))
        return EndOffsets({f"{facts.id}/{number}": len(self.log(topic, number)) for number in each})

    def _produced(self, produce: Produce) -> Produced:
        headers = {name: value.decode() for name, value in produce.headers}
        self.sent.append(Sent(self.now, produce.topic, produce.key, produce.value, headers))
        return Produced()
