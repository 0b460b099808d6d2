"""Drives one partition actor synchronously on the store in memory, with immediate or scripted answers. For tests of the core.

Nothing takes time on a bench: effects are carried out in the order in which they were asked, at the same instant, unless a
test scripts an answer. So a run without a fault is the yardstick for the same run with one.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from tests.support.builders import NOW, a_holding
from tests.support.harness.produce_groups import Groups
from tests.support.harness.quiet_time import limits_with_queue, row_comes_near
from tests.support.harness.recorded_effects import Outcomes, Sent
from tests.support.harness.scripted_answers import Scripts
from tests.support.harness.scripted_logs import Topics
from tests.support.harness.scripted_programs import Behaviour, Programs
from tidegate_core.engine.actor_inputs import Begin, Drain, Input, Tick, Woken
from tidegate_core.ownership.partition_actor import PartitionActor
from tidegate_core.rows.effects import (
    Cancel,
    Commit,
    Committed,
    Drained,
    EffectRequest,
    EffectResult,
    FindGaps,
    Inspect,
    Invalid,
    Items,
    Lookup,
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
    Unavailable,
    WakeUp,
    Watch,
    Write,
    Written,
)
from tidegate_core.rows.store_operations import Batch, Transaction
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.writes.settlement import ReadWitness, SendAgain, Settlement
from tidegate_memory.store import MemoryStore
from tidegate_ports.store import StoreRequestInvalid

__all__ = ["ActorHarness", "Behaviour"]

EFFECTS_AT_ONE_INSTANT_MAX = 50_000
"""An actor that asks for more without time passing goes round in circles."""
ANSWERED_WITHIN_MS = 1_000
"""Pokes go on for so long behind an effect: its answer, which changes what a home sees, may take as long."""
OUTSIDE = (Commit, Write, Produce, Submit, Cancel)
"""Effects that change something outside of the actor: a crash between two others cannot be told from one at these."""
STORE = (Read, ReadRange, Commit, Write)


class ActorHarness(Programs, Outcomes, Scripts, Topics):
    """One partition actor with a world around it: store, two logs, a broker that takes everything, programs.

    Attributes:
        crash_after: The actor is killed when this many effects on the outside are carried out; a successor begins at once.
        late_writes_after: Milliseconds after a crash in which the writes arrive that the dead actor had asked for.
        store_answers_after: Milliseconds that the store takes for each answer.
        passes_over_routine: Alarms that only look for what got lost, and for rows that come near, do not ring by themselves. The
            simulator runs so as well. For hours in which nothing gets lost.
    """

    def __init__(
        self,
        *,
        behaviour: Behaviour | None = None,
        beside: ActorHarness | None = None,
        owner: str | None = None,
        event_topic_partitions: int | None = None,
        **holding: Any,
    ) -> None:
        """Makes an actor that has not begun.

        Args:
            behaviour: Of all programs.
            beside: Another bench, whose store, logs and programs this one shares: two holders that both think that they hold.
            owner: Of the first actor; two benches on one store need two.
            event_topic_partitions: How many the events topic has; as many as the requests topic unless told otherwise.
            holding: Of all its actors.
        """
        Programs.__init__(self, behaviour)
        Outcomes.__init__(self)
        Scripts.__init__(self)
        Topics.__init__(self, event_topic_partitions or holding.get("topic_partitions", 1))
        self.store = MemoryStore()
        self.now = NOW
        self.store_answers_after = 0
        self.crash_after: int | None = None
        self.late_writes_after: int | None = None
        self.effects_outside = 0
        self.lives = 0
        self.is_member: bool | None = True
        self.passes_over_routine = False
        self._effects_told, self._told_until = -1, 0
        self._holding = holding
        if beside is not None:
            self._share(beside)
        self._soon: deque[EffectRequest | Input] = deque()
        self._timeline: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self.new_actor(owner)

    def _share(self, other: ActorHarness) -> None:
        """What is outside of an actor is the same for both."""
        self.store, self.now, self.started = other.store, other.now, other.started
        self._logs, self._processes, self.topics = other._logs, other._processes, other.topics
        self.event_topic_partitions = other.event_topic_partitions

    # -- life ---------------------------------------------------------------------------------------------------------

    def new_actor(self, owner: str | None = None) -> None:
        """Forgets the present actor, if any, and makes another one on the same world; `begin` or `run` sets it going."""
        self.lives += 1
        self.holding = a_holding(owner or f"node-{self.lives}", **self._holding)
        self.actor = PartitionActor(self.holding, SubscriptionIndex())
        self._groups = Groups()
        self._soon.clear()
        self._reading.clear()
        self._held.clear()
        self._nobody_watches()
        self._soon.append(Begin())

    def restart_with(self, **settings: Any) -> None:
        """Kills the actor; its successors have these settings of a holding."""
        self._holding.update(settings)
        self.crash()

    def crash(self) -> None:
        """Kills the actor where it stands, and sets a successor going."""
        self.crash_after = None
        handed_out = [each for each in self._soon if isinstance(each, EffectRequest)]
        self.new_actor()
        if self.late_writes_after is not None:
            self._later(self.late_writes_after, lambda: self._arrive_late(handed_out))

    def _arrive_late(self, handed_out: list[EffectRequest]) -> None:
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

    # -- time ---------------------------------------------------------------------------------------------------------

    def run(self, milliseconds: int = 0) -> None:
        """Lets time pass, alarm by alarm."""
        end = self.now + milliseconds
        self.settle()
        while True:
            upcoming = self.next_moment()
            if upcoming is None or upcoming > end:
                break
            self._pass_to(max(self.now, upcoming))
            if self._timeline and self._timeline[0][0] <= self.now:
                heapq.heappop(self._timeline)[2]()
            else:
                self._soon.append(Tick())
            self.settle()
            self._poke_limits()
        self._pass_to(end)
        # The clock that programs and logs see moved; so does the actor's.
        self.give(Tick())

    def next_moment(self) -> int | None:
        """Returns when something happens by itself; None when nothing will."""
        known = (self._next_wake(), self._timeline[0][0] if self._timeline else None)
        return min((each for each in known if each is not None), default=None)

    def _next_wake(self) -> int | None:
        if not self.passes_over_routine:
            return self.actor.next_wake()
        near = (row_comes_near(self.store, shard, self.now) for shard in self.actor.shards)
        return min((each for each in (self.actor.next_due(), *near) if each is not None), default=None)

    def _poke_limits(self) -> None:
        """A permit that nobody had waited for is found by routine, within a second; where that is passed over, its home is told."""
        if self.effects_outside != self._effects_told:
            self._told_until = self.now + ANSWERED_WITHIN_MS
        # The home's own reads are moments too: each would be followed by the next poke, and so on for hours.
        if not self.passes_over_routine or self.now > self._told_until:
            return
        told = -1
        while told != self.effects_outside:
            told = self._effects_told = self.effects_outside
            self.give(*(Woken(home, limit) for home, limit in limits_with_queue(self.store, self.actor.shards)))

    def _pass_to(self, instant: int) -> None:
        self.now = instant
        if self.passes_over_routine:
            self.actor.vouch(instant)

    def settle(self) -> None:
        """Carries out what was asked until nothing is left to do at this instant."""
        for _ in range(EFFECTS_AT_ONE_INSTANT_MAX):
            if not self._soon:
                return
            following = self._soon.popleft()
            if isinstance(following, EffectRequest):
                self._carry_out(following)
                continue
            told = self._groups.together(following) if isinstance(following, EffectResult) else following
            if told is not None:
                self._soon.extend(self._groups.apart(self.actor.step(self.now, told)))
        raise AssertionError("the actor goes round in circles")

    def _soon_give(self, *inputs: Input) -> None:
        self._soon.extend(inputs)

    def _later(self, milliseconds: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._timeline, (self.now + milliseconds, next(self._order), action))

    # -- effects ------------------------------------------------------------------------------------------------------

    def _carry_out(self, ask: EffectRequest) -> None:
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

    def _answer(self, ask: EffectRequest, result: Result | None) -> None:
        if result is None or not ask.token:
            return
        answer, life = EffectResult(ask.token, result), self.lives
        if self.store_answers_after and isinstance(ask.effect, STORE):
            self._later(self.store_answers_after, lambda: self._soon_give(*[answer] * (life == self.lives)))
        else:
            self._soon_give(answer)

    def _result(self, ask: EffectRequest) -> Result | None:
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
            case FindGaps():
                return self._gaps(ask.effect)
            case Produce():
                return self._produced(ask.effect)
            case Submit() | Lookup() | Watch() | Cancel() | Inspect() | SampleLoad():
                return self._launcher(ask)
            case ProveMembership():
                return Membership(self.is_member)
            case WakeUp(shard, run, controls):
                self._soon.append(Woken(shard, run, controls))
            case StartReading(topic, topic_partition, offset):
                self._begin_reading(topic, topic_partition, offset)
            case StopReading(topic, topic_partition):
                self._reading.discard((topic, topic_partition))
            case ReturnCredits() | Notice() | Drained():
                pass
            case ProduceMany():
                raise AssertionError("taken apart")
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

    def _produced(self, produce: Produce) -> Produced:
        headers = {name: value.decode() for name, value in produce.headers}
        self.sent.append(Sent(self.now, produce.topic, produce.key, produce.value, headers))
        return Produced()
