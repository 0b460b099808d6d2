"""A shard's transactions: one at a time, several decisions in each, and what a refusal, a silence or a new owner does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from tidegate_core.decisions.host import Fenced, Host
from tidegate_core.decisions.lane import GROUP_MAX, Decision, Lane, Procedure, Work
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import (
    Answer,
    Ask,
    Commit,
    Effect,
    Invalid,
    Items,
    Poke,
    Read,
    ReadRange,
    Refused,
    Result,
    Unavailable,
)
from tidegate_core.records.codec import to_item
from tidegate_core.records.run_plane import Job
from tidegate_core.store import keys
from tidegate_core.store.values import ITEM_BYTES_MAX, Item, Key, Put, Transaction
from tidegate_core.transactions.settlement import ReadWitness, SendAgain, Settlement
from tidegate_core.transactions.unit_of_work import AlreadyThere, UnitOfWork
from tidegate_core.transactions.view import RANGES_MAX
from tidegate_ports.store import StoreRequestInvalid
from tidegate_testkit.builders import NOW, a_holding, a_job
from tidegate_testkit.memory_store import MemoryStore


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
            unit.after(Poke(self.number))


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
class StepByStep:
    """Knows only after its first read what to read next."""

    done: list[int]
    stale: tuple[Key, ...] = ()
    name: str = "step"
    about: str = "jobs"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        for number in (1, 2):
            unit.record(Job, a_job(number).key(0))
        unit.after(lambda: self.done.append(1))


@dataclass(eq=False)
class Poison:
    """Raises, in whatever company it is decided."""

    stale: tuple[Key, ...] = ()
    name: str = "poison"
    about: str = "a job"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        unit.put_new(a_job(77), a_job(77).key(0))
        raise ZeroDivisionError


@dataclass(eq=False)
class Huge:
    """More than an item holds: only the store says so."""

    done: list[int]
    stale: tuple[Key, ...] = ()
    name: str = "huge"
    about: str = "a job"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        job = replace(a_job(88), unmet="x" * (ITEM_BYTES_MAX + 1))
        unit.put_new(job, job.key(0))
        unit.after(lambda: self.done.append(88))


@dataclass(eq=False)
class Once:
    """Makes a job under a key that it takes for unused."""

    number: int
    done: list[int]
    stale: tuple[Key, ...] = ()
    name: str = "once"
    about: str = "a job"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        unit.put_new(a_job(self.number), a_job(self.number).key(0))
        unit.after(lambda: self.done.append(self.number))


@dataclass(eq=False)
class Bad(Procedure):
    """A procedure whose second decision cannot be made."""

    decision: Decision
    done: list[int]
    name: str = "bad"
    about: str = "jobs"

    def run(self, lane: Lane) -> Operation[None]:
        yield from lane.decide_alone(Touch(1, self.done))
        yield from lane.decide_alone(self.decision)
        self.done.append(100)


@dataclass(eq=False)
class Long(Procedure):
    """A procedure that goes on for many transactions, and lets others in between."""

    done: list[int]
    steps: int = 5
    name: str = "long"
    about: str = "jobs"

    def run(self, lane: Lane) -> Operation[None]:
        for step in range(self.steps):
            yield from lane.decide_alone(Touch(1, [], to=2 + step))
            yield from lane.give_way()
            self.done.append(1000 + step)


@dataclass(eq=False)
class Alone(Procedure):
    """A procedure: two transactions, with nothing of anybody in between."""

    done: list[int]
    name: str = "alone"
    about: str = "jobs"

    def run(self, lane: Lane) -> Operation[None]:
        for number in (1, 2):
            yield from lane.decide_alone(Touch(number, self.done))
        self.done.append(100)


@dataclass
class Rig:
    """A lane on a store; `script` may answer an effect instead of the store."""

    store: MemoryStore = field(default_factory=MemoryStore)
    observed: list[tuple[Key, Item | None]] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    commits: list[Transaction] = field(default_factory=list)
    asked: list[Effect] = field(default_factory=list)
    script: Callable[[Effect], Result | None] = lambda effect: None
    held: deque[Ask] = field(default_factory=deque)
    holds: Callable[[Effect], bool] = lambda effect: False
    failed: list[tuple[Work, Exception]] = field(default_factory=list)

    def __post_init__(self) -> None:
        lease = keys.lease(0)
        self.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "epoch": 4, "controls": 0})])
        self.host = Host(a_holding())
        self.host.now = NOW

        def observe(key: Key, item: Item | None) -> None:
            self.observed.append((key, item))

        self.lane = Lane(self.host, 0, 4, 0, observe, lambda: None, lambda *failed: self.failed.append(failed))
        self.host.operations.start(self.lane.serve())

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
                    self.host.operations.answer(Answer(ask.token, self.result(ask.effect)))
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
            self.host.operations.answer(Answer(ask.token, self.result(ask.effect)))
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


@pytest.fixture
def rig() -> Rig:
    return Rig()


def once(answer: Callable[[Effect], Result | None]) -> Callable[[Effect], Result | None]:
    """Scripts the first commit only."""
    used: list[bool] = []

    def script(effect: Effect) -> Result | None:
        if used or not isinstance(effect, Commit):
            return None
        used.append(True)
        return answer(effect)

    return script


def test_given_many_decisions_then_at_most_sixteen_share_a_transaction_in_their_order(rig: Rig) -> None:
    numbers = list(range(40))
    rig.lay(*numbers)
    rig.holds = lambda effect: isinstance(effect, Read)
    for number in numbers:
        rig.lane.add(Touch(number, rig.done))
    rig.go()
    rig.release()
    assert rig.done == numbers
    sizes = [len(transaction.actions) - 1 for transaction in rig.commits]
    assert sum(sizes) == 40
    assert max(sizes) == GROUP_MAX


def test_given_a_group_then_what_all_need_is_read_at_once(rig: Rig) -> None:
    rig.lay(*range(10))
    for number in range(10):
        rig.lane._queue.append(Touch(number, rig.done))
    rig.lane.add(Touch(3, rig.done))
    rig.go()
    assert len([effect for effect in rig.asked if isinstance(effect, Read)]) == 1
    assert len(rig.commits) == 1


def test_given_a_transaction_under_way_then_the_next_waits_for_its_answer(rig: Rig) -> None:
    rig.lay(1, 2)
    rig.holds = lambda effect: isinstance(effect, Commit)
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    rig.lane.add(Touch(2, rig.done))
    rig.go()
    assert len(rig.held) == 1
    rig.release()
    assert rig.done == [1, 2]


def test_given_a_commit_then_each_written_row_is_observed_before_what_follows_is_carried_out(rig: Rig) -> None:
    rig.lay(1)
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    ((key, item),) = rig.observed
    assert key == a_job(1).key(0)
    assert item is not None
    assert item["attempt"] == 2
    assert rig.asked[-1] == Poke(1)


def test_given_a_decision_that_has_nothing_to_write_then_no_transaction_is_sent(rig: Rig) -> None:
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.commits == []
    assert rig.lane.is_idle


def test_given_a_refusal_then_each_decides_anew_and_the_refused_one_holds_nobody_up(rig: Rig) -> None:
    rig.lay(1, 2, 3)
    rig.lane.view.learn([a_job(2).key(0)], {a_job(2).key(0): {**to_item(a_job(2), a_job(2).key(0)), "rev": 7}})
    for number in (1, 2, 3):
        rig.lane._queue.append(Touch(number, rig.done))
    rig.lane.add(Touch(4, rig.done))
    rig.go()
    assert rig.done == [1, 2, 3]
    assert [rig.attempt(number) for number in (1, 2, 3)] == [2, 2, 2]
    assert [len(transaction.actions) for transaction in rig.commits] == [4, 2, 2, 2]


def test_given_an_answer_that_was_lost_then_what_was_applied_is_observed_once_and_not_done_again(rig: Rig) -> None:
    rig.lay(1)
    rig.script = once(rig.applied_in_silence)
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.attempt(1) == 2
    assert rig.done == [1]
    assert [key for key, _ in rig.observed] == [a_job(1).key(0)]


def test_given_new_rows_whose_answer_was_lost_then_they_are_observed_and_the_lane_goes_on(rig: Rig) -> None:
    rig.lay(50)
    rig.script = once(rig.applied_in_silence)
    rig.lane.add(Wide(1, 2, rig.done))
    rig.lane.add(Touch(50, rig.done))
    rig.go()
    assert rig.done == [1, 50]
    assert {key for key, _ in rig.observed} == {a_job(number).key(0) for number in (1, 2, 50)}


def test_given_a_write_that_never_arrived_then_it_is_done(rig: Rig) -> None:
    rig.lay(1)
    rig.script = once(lambda effect: Unavailable("x"))
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [1]
    assert rig.attempt(1) == 2


def test_given_a_conflict_that_outlives_the_port_then_it_is_done_after_all(rig: Rig) -> None:
    rig.lay(1)
    rig.script = once(lambda effect: Refused(()))
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [1]


def test_given_decisions_that_do_not_fit_together_then_the_later_one_goes_into_the_next_transaction(rig: Rig) -> None:
    rig.lay(1)
    for first in (100, 200, 300):
        rig.lane._queue.append(Wide(first, 40, rig.done))
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [100, 200, 300, 1]
    assert [len(transaction.actions) for transaction in rig.commits] == [81, 42]


def test_given_a_procedure_then_it_has_the_lane_for_itself(rig: Rig) -> None:
    rig.lay(1, 2, 3, 4)
    rig.holds = lambda effect: isinstance(effect, Read)
    rig.lane.add(Touch(3, rig.done))
    rig.lane.add(Alone(rig.done))
    rig.lane.add(Touch(4, rig.done))
    rig.go()
    rig.release()
    assert rig.done == [3, 1, 2, 100, 4]
    assert len(rig.commits) == 4


def test_given_a_newer_epoch_then_the_holding_ends(rig: Rig) -> None:
    rig.lay(1)
    lease = keys.lease(0)
    rig.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "epoch": 5, "controls": 0})])
    rig.lane.add(Touch(1, rig.done))
    with pytest.raises(Fenced) as fenced:
        rig.go()
    assert fenced.value.key == lease
    assert rig.attempt(1) == 1
    assert rig.done == []


def test_given_work_that_arrives_during_a_read_then_its_stale_items_are_read_anew(rig: Rig) -> None:
    """A poke says that a run changed; a look at what was read before the poke would miss the change."""
    rig.lay(1, 2)
    rig.lane.view.learn(
        [a_job(2).key(0)], {a_job(2).key(0): {**to_item(a_job(2, attempt=9), a_job(2).key(0)), "rev": 1}}
    )
    rig.holds = lambda effect: isinstance(effect, Read)
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    rig.lane.add(Touch(2, rig.done, stale=(a_job(2).key(0),)))
    rig.release()
    assert rig.done == [1, 2]


@pytest.mark.parametrize("moment", [Read, Commit], ids=["read", "commit"])
def test_given_a_drain_while_something_is_under_way_then_the_lane_comes_to_rest(
    rig: Rig, moment: type[Read | Commit]
) -> None:
    rig.lay(1, 2)
    rig.holds = lambda effect: isinstance(effect, moment)
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.held
    rig.lane.close()
    rig.release()
    assert rig.lane.is_idle


def test_given_a_drain_between_two_reads_of_a_decision_then_the_lane_comes_to_rest(rig: Rig) -> None:
    rig.holds = lambda effect: isinstance(effect, Read) and a_job(2).key(0) in effect.keys
    rig.lane.add(StepByStep(rig.done))
    rig.go()
    assert rig.held
    rig.lane.close()
    rig.release()
    assert rig.lane.is_idle


def test_given_a_long_range_then_it_is_read_page_by_page(rig: Rig) -> None:
    rig.lay(*range(1_500))
    found: list[int] = []

    def look() -> Operation[None]:
        found.append(len((yield from rig.lane.read_range("J#", "J#~"))))

    rig.host.operations.start(look())
    rig.go()
    assert found == [1_500]


# -- poison ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("poison", ["raises", "too large for the store", "a used key"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_given_a_decision_that_cannot_be_made_then_it_alone_is_dropped_and_told_and_the_others_are_done(
    rig: Rig, poison: str, place: int
) -> None:
    rig.lay(1, 2, 3, 50)
    works: dict[str, Work] = {
        "raises": Poison(),
        "too large for the store": Huge(rig.done),
        "a used key": Once(50, rig.done),
    }
    work = works[poison]
    queue: list[Work] = [Touch(1, rig.done), Touch(2, rig.done)]
    queue.insert(place, work)
    rig.lane._queue.extend(queue)
    rig.lane.add(Touch(3, rig.done))
    rig.go()
    assert rig.done == [1, 2, 3]
    assert [failed for failed, _ in rig.failed] == [work]
    assert [rig.attempt(number) for number in (1, 2, 3)] == [2, 2, 2]
    assert rig.lane.is_idle


def test_given_a_used_key_then_a_procedure_does_not_ask_for_it_for_ever(rig: Rig) -> None:
    """What refused the write is known from then on: assumed unused again, it would be refused again, without end."""
    rig.lay(1, 2, 50)
    rig.lane.add(Bad(Once(50, rig.done), rig.done))
    rig.lane.add(Touch(2, rig.done))
    rig.go()
    assert rig.done == [1, 2]
    assert len(rig.commits) == 3
    ((_, error),) = rig.failed
    assert isinstance(error, AlreadyThere)


@pytest.mark.parametrize("decision", [Poison(), Huge([])], ids=["raises", "too large for the store"])
def test_given_a_procedure_that_cannot_go_on_then_it_is_told_and_what_stands_behind_it_is_done(
    rig: Rig, decision: Decision
) -> None:
    rig.lay(1, 2)
    procedure = Bad(decision, rig.done)
    rig.lane.add(procedure)
    rig.lane.add(Touch(2, rig.done))
    rig.go()
    assert rig.done == [1, 2]
    assert [failed for failed, _ in rig.failed] == [procedure]


def test_given_a_dropped_decision_then_nothing_that_it_staged_is_written(rig: Rig) -> None:
    rig.lay(1)
    rig.lane._queue.extend([Touch(1, rig.done), Poison()])
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.attempt(77) is None


def test_given_a_range_beyond_memory_then_only_who_asked_for_it_fails(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_core.decisions.lane.RANGE_ITEMS_MAX", 100)

    @dataclass(eq=False)
    class Everything:
        stale: tuple[Key, ...] = ()
        name: str = "everything"
        about: str = "jobs"

        def decide(self, unit: UnitOfWork, now: int) -> None:
            unit.range("J#", "J#~")

    rig.lay(*range(1_500))
    rig.lane.add(Everything())
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [1]
    assert len(rig.failed) == 1


def test_given_a_decision_that_needs_more_at_once_than_the_view_holds_then_it_fails_and_does_not_read_for_ever(
    rig: Rig,
) -> None:
    @dataclass(eq=False)
    class Hungry:
        stale: tuple[Key, ...] = ()
        name: str = "hungry"
        about: str = "evidence"

        def decide(self, unit: UnitOfWork, now: int) -> None:
            for number in range(RANGES_MAX + 1):
                unit.range(f"E#{number:03d}", f"E#{number:03d}~")

    rig.lay(1)
    rig.lane.add(Hungry())
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [1]
    assert len(rig.failed) == 1


# -- long procedures ------------------------------------------------------------------------------------------------------


def test_given_a_long_procedure_then_decisions_behind_it_are_made_in_between(rig: Rig) -> None:
    rig.lay(1, 2)
    rig.holds = lambda effect: isinstance(effect, Read)
    rig.lane.add(Long(rig.done))
    rig.go()
    rig.lane.add(Touch(2, rig.done))
    rig.release()
    assert rig.done == [2, 1000, 1001, 1002, 1003, 1004]


def test_given_a_drain_within_a_long_procedure_then_the_rest_is_the_successors(rig: Rig) -> None:
    rig.lay(1)
    rig.holds = lambda effect: isinstance(effect, Commit)
    rig.lane.add(Long(rig.done))
    rig.go()
    rig.lane.close()
    rig.release()
    assert rig.done == []
    assert rig.failed == []
    assert rig.lane.is_idle


def test_given_work_for_a_closed_lane_then_it_is_not_taken(rig: Rig) -> None:
    rig.lay(1)
    rig.lane.close()
    rig.lane.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == []
    assert rig.attempt(1) == 1
    assert rig.lane.is_idle
