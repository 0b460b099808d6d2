"""Procedures of a shard writer: its transactions stand together, long ones give way, and a drain brings all to rest."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.builders import a_job
from tests.support.harness.shard_writer_rig import Rig, Touch
from tidegate_core.engine.decision import Procedure
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.rows.effects import Commit, Read
from tidegate_core.rows.job import Job
from tidegate_core.rows.store_operations import Key
from tidegate_core.writes.unit_of_work import UnitOfWork


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
class Long(Procedure):
    """A procedure that goes on for many transactions, and lets others in between."""

    done: list[int]
    steps: int = 5
    name: str = "long"
    about: str = "jobs"

    def run(self, writer: ShardWriter) -> Operation[None]:
        for step in range(self.steps):
            yield from writer.decide_alone(Touch(1, [], to=2 + step))
            yield from writer.yield_turn()
            self.done.append(1000 + step)


@dataclass(eq=False)
class Alone(Procedure):
    """A procedure: two transactions, with nothing of anybody in between."""

    done: list[int]
    name: str = "alone"
    about: str = "jobs"

    def run(self, writer: ShardWriter) -> Operation[None]:
        for number in (1, 2):
            yield from writer.decide_alone(Touch(number, self.done))
        self.done.append(100)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_given_a_procedure_then_it_has_the_lane_for_itself(rig: Rig) -> None:
    rig.lay(1, 2, 3, 4)
    rig.holds = lambda effect: isinstance(effect, Read)
    rig.writer.add(Touch(3, rig.done))
    rig.writer.add(Alone(rig.done))
    rig.writer.add(Touch(4, rig.done))
    rig.go()
    rig.release()
    assert rig.done == [3, 1, 2, 100, 4]
    assert len(rig.commits) == 4


@pytest.mark.parametrize("moment", [Read, Commit], ids=["read", "commit"])
def test_given_a_drain_while_something_is_under_way_then_the_lane_comes_to_rest(
    rig: Rig, moment: type[Read | Commit]
) -> None:
    rig.lay(1, 2)
    rig.holds = lambda effect: isinstance(effect, moment)
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.held
    rig.writer.close()
    rig.release()
    assert rig.writer.is_idle


def test_given_a_drain_between_two_reads_of_a_decision_then_the_lane_comes_to_rest(rig: Rig) -> None:
    rig.holds = lambda effect: isinstance(effect, Read) and a_job(2).key(0) in effect.keys
    rig.writer.add(StepByStep(rig.done))
    rig.go()
    assert rig.held
    rig.writer.close()
    rig.release()
    assert rig.writer.is_idle


def test_given_a_long_procedure_then_decisions_behind_it_are_made_in_between(rig: Rig) -> None:
    rig.lay(1, 2)
    rig.holds = lambda effect: isinstance(effect, Read)
    rig.writer.add(Long(rig.done))
    rig.go()
    rig.writer.add(Touch(2, rig.done))
    rig.release()
    assert rig.done == [2, 1000, 1001, 1002, 1003, 1004]


def test_given_a_drain_within_a_long_procedure_then_the_rest_is_the_successors(rig: Rig) -> None:
    rig.lay(1)
    rig.holds = lambda effect: isinstance(effect, Commit)
    rig.writer.add(Long(rig.done))
    rig.go()
    rig.writer.close()
    rig.release()
    assert rig.done == []
    assert rig.failed == []
    assert rig.writer.is_idle


def test_given_work_for_a_closed_lane_then_it_is_not_taken(rig: Rig) -> None:
    rig.lay(1)
    rig.writer.close()
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == []
    assert rig.attempt(1) == 1
    assert rig.writer.is_idle
