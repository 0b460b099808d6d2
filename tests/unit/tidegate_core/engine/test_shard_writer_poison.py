"""Decisions that cannot be made: dropped and told, alone, while the others are done."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tests.support.builders import a_job
from tests.support.harness.shard_writer_rig import Rig, Touch
from tidegate_core.engine.actor_context import Fenced
from tidegate_core.engine.decision import Decision, Procedure, Work
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Effect, Invalid, Read
from tidegate_core.rows.store_operations import ITEM_BYTES_MAX, Key, Put
from tidegate_core.writes.read_cache import RANGES_MAX
from tidegate_core.writes.unit_of_work import AlreadyThere, UnitOfWork


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

    def run(self, writer: ShardWriter) -> Operation[None]:
        yield from writer.decide_alone(Touch(1, self.done))
        yield from writer.decide_alone(self.decision)
        self.done.append(100)


@pytest.fixture
def rig() -> Rig:
    return Rig()


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
    rig.writer._queue.extend(queue)
    rig.writer.add(Touch(3, rig.done))
    rig.go()
    assert rig.done == [1, 2, 3]
    assert [failed for failed, _ in rig.failed] == [work]
    assert [rig.attempt(number) for number in (1, 2, 3)] == [2, 2, 2]
    assert rig.writer.is_idle


@pytest.mark.parametrize("place", [0, 1, 2])
def test_given_a_decision_that_asks_for_what_no_item_can_be_then_the_others_of_its_group_are_done(
    rig: Rig, place: int
) -> None:
    """Review: the read ahead for the whole group ended the shard writer, and with it the topic partition, as often as it was taken up again."""

    @dataclass(eq=False)
    class Nameless:
        stale: tuple[Key, ...] = ()
        name: str = "nameless"
        about: str = "a job"

        def decide(self, unit: UnitOfWork, now: int) -> None:
            unit.item(Key(keys.shard_pk(0), ""))

    def refused(effect: Effect) -> Invalid | None:
        asked = effect.keys if isinstance(effect, Read) else ()
        return Invalid("an empty key") if any(not key.sk for key in asked) else None

    rig.lay(1, 2, 3)
    rig.script = refused
    nameless = Nameless()
    queue: list[Work] = [Touch(1, rig.done), Touch(2, rig.done)]
    queue.insert(place, nameless)
    rig.writer._queue.extend(queue)
    rig.writer.add(Touch(3, rig.done))
    rig.go()
    assert rig.done == [1, 2, 3]
    assert [failed for failed, _ in rig.failed] == [nameless]


def test_given_a_used_key_then_a_procedure_does_not_ask_for_it_for_ever(rig: Rig) -> None:
    """What refused the write is known from then on: assumed unused again, it would be refused again, without end."""
    rig.lay(1, 2, 50)
    rig.writer.add(Bad(Once(50, rig.done), rig.done))
    rig.writer.add(Touch(2, rig.done))
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
    rig.writer.add(procedure)
    rig.writer.add(Touch(2, rig.done))
    rig.go()
    assert rig.done == [1, 2]
    assert [failed for failed, _ in rig.failed] == [procedure]


def test_given_a_dropped_decision_then_nothing_that_it_staged_is_written(rig: Rig) -> None:
    rig.lay(1)
    rig.writer._queue.extend([Touch(1, rig.done), Poison()])
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.attempt(77) is None


def test_given_a_range_beyond_memory_then_only_who_asked_for_it_fails(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_core.engine.shard_writer.RANGE_ITEMS_MAX", 100)

    @dataclass(eq=False)
    class Everything:
        stale: tuple[Key, ...] = ()
        name: str = "everything"
        about: str = "jobs"

        def decide(self, unit: UnitOfWork, now: int) -> None:
            unit.range("J#", "J#~")

    rig.lay(*range(1_500))
    rig.writer.add(Everything())
    rig.writer.add(Touch(1, rig.done))
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
    rig.writer.add(Hungry())
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [1]
    assert len(rig.failed) == 1


@pytest.mark.parametrize("work", [Poison(), Bad(Poison(), [])], ids=["decision", "procedure"])
def test_given_a_decision_that_cannot_be_made_by_a_former_owner_then_its_holding_ends_and_nothing_is_told(
    rig: Rig, work: Work
) -> None:
    """What it had read before another owner's writes does not fit to what it reads now (simulation, seed 70120)."""
    rig.lay(1)
    lease = keys.lease(0)
    rig.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "epoch": 5, "controls": 0})])
    rig.writer.add(work)
    with pytest.raises(Fenced):
        rig.go()
    assert rig.failed == []
