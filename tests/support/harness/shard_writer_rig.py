"""A shard writer on a store in memory, whose answers a test may script or hold back, and decisions to put into it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.builders import NOW, a_holding, a_job
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.decision import Work
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.rows import keys
from tidegate_core.rows.effects import (
    Commit,
    Effect,
    EffectRequest,
    EffectResult,
    Invalid,
    Items,
    Read,
    ReadRange,
    Result,
    Unavailable,
    WakeUp,
)
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.store_operations import Item, Key, Put, Transaction
from tidegate_core.writes.settlement import ReadWitness, SendAgain, Settlement
from tidegate_core.writes.unit_of_work import UnitOfWork
from tidegate_memory.store import MemoryStore
from tidegate_ports.store import StoreRequestInvalid


@dataclass(eq=False)
class Touch:
    """Raises the attempt number of a job, once."""

    number: int
    done: list[int]
    stale: tuple[Key, ...] = ()
    name: str = "touch"
    about: str = "a job"
    to: int = 2

    def decide(self, unit: UnitOfWork, now: int) -> None:
        job = unit.record(Job, a_job(self.number).key(0))
        if job is not None and job.attempt < self.to:
            unit.put(a_job(self.number, attempt=self.to), job.key(0))
            unit.after(lambda: self.done.append(self.number))
            unit.after(WakeUp(self.number))


@dataclass(eq=False)
class Wide:
    """Makes many jobs in one transaction."""

    first: int
    many: int
    done: list[int]
    stale: tuple[Key, ...] = ()
    name: str = "wide"
    about: str = "jobs"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        for number in range(self.first, self.first + self.many):
            unit.put_new(a_job(number), a_job(number).key(0))
        unit.after(lambda: self.done.append(self.first))


@dataclass(eq=False)
class InParts:
    """Raises the attempt numbers of several jobs, one at each time that it is decided."""

    numbers: tuple[int, ...]
    done: list[int]
    stale: tuple[Key, ...] = ()
    name: str = "in parts"
    about: str = "jobs"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        found = [(number, unit.record(Job, a_job(number).key(0))) for number in self.numbers]
        left = [(number, job) for number, job in found if job is not None and job.attempt == 1]
        if left:
            number, job = left[0]
            unit.put(a_job(number, attempt=2), job.key(0))
            unit.after(lambda: self.done.append(number))
        if len(left) > 1:
            unit.go_on()


@dataclass
class Rig:
    """A shard writer on a store; `script` may answer an effect instead of the store."""

    store: MemoryStore = field(default_factory=MemoryStore)
    observed: list[tuple[Key, Item | None]] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    commits: list[Transaction] = field(default_factory=list)
    asked: list[Effect] = field(default_factory=list)
    script: Callable[[Effect], Result | None] = lambda effect: None
    held: deque[EffectRequest] = field(default_factory=deque)
    holds: Callable[[Effect], bool] = lambda effect: False
    failed: list[tuple[Work, Exception]] = field(default_factory=list)

    def __post_init__(self) -> None:
        lease = keys.lease(0)
        self.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "epoch": 4, "controls": 0})])
        self.host = ActorContext(a_holding())
        self.host.now = NOW

        def observe(key: Key, item: Item | None) -> None:
            self.observed.append((key, item))

        self.writer = ShardWriter(self.host, 0, 4, 0, observe, lambda: None, lambda *failed: self.failed.append(failed))
        self.host.operations.start(self.writer.serve())

    def lay(self, *numbers: int) -> None:
        for number in numbers:
            job = a_job(number)
            self.store.write([Put(job.key(0), {**to_item(job, job.key(0)), "rev": 1})])

    def attempt(self, number: int) -> object:
        return (self.store.peek(a_job(number).key(0)) or {}).get("attempt")

    def go(self) -> None:
        """Carries everything out, pauses included."""
        while True:
            asked, self.host.operations.asked = self.host.operations.asked, []
            for ask in asked:
                self.asked.append(ask.effect)
                if self.holds(ask.effect):
                    self.held.append(ask)
                elif ask.token:
                    self.host.operations.answer(EffectResult(ask.token, self.result(ask.effect)))
            if not self.host.operations.asked:
                wake = self.host.next_wake()
                if wake is None or self.held:
                    return
                self.host.now = wake
                self.host.ring()

    def release(self) -> None:
        self.holds = lambda effect: False
        while self.held:
            ask = self.held.popleft()
            self.host.operations.answer(EffectResult(ask.token, self.result(ask.effect)))
        self.go()

    def result(self, effect: Effect) -> Result:
        scripted = self.script(effect)
        if isinstance(effect, Commit):
            self.commits.append(effect.transaction)
        if scripted is not None:
            return scripted
        match effect:
            case Read(wanted):
                return Items(self.store.get(wanted))
            case ReadRange(wanted):
                return self.store.query(wanted)
            case Commit(transaction):
                return self.settled(transaction)
            case _:
                raise AssertionError(effect)

    def settled(self, transaction: Transaction) -> Result:
        try:
            outcome = self.store.transact(transaction)
        except StoreRequestInvalid as invalid:
            return Invalid(str(invalid))
        _, step = Settlement(transaction).answered(outcome)
        assert not isinstance(step, SendAgain | ReadWitness)
        return step

    def applied_in_silence(self, effect: Effect) -> Result:
        assert isinstance(effect, Commit)
        self.settled(effect.transaction)
        return Unavailable("scripted")
