"""What a shard writer makes of a refusal, an answer that was lost, and a newer owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.support.builders import a_job
from tests.support.harness.shard_writer_rig import Rig, Touch, Wide
from tidegate_core.engine.actor_context import Fenced
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, Effect, Read, Refused, Result, Unavailable
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.store_operations import Key, Put, Transaction
from tidegate_core.writes.unit_of_work import UnitOfWork


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


def test_given_a_refusal_then_each_decides_anew_and_the_refused_one_holds_nobody_up(rig: Rig) -> None:
    rig.lay(1, 2, 3)
    rig.writer.view.learn([a_job(2).key(0)], {a_job(2).key(0): {**to_item(a_job(2), a_job(2).key(0)), "rev": 7}})
    for number in (1, 2, 3):
        rig.writer._queue.append(Touch(number, rig.done))
    rig.writer.add(Touch(4, rig.done))
    rig.go()
    assert rig.done == [1, 2, 3]
    assert [rig.attempt(number) for number in (1, 2, 3)] == [2, 2, 2]
    assert [len(transaction.actions) for transaction in rig.commits] == [4, 2, 2, 2]


def test_given_an_answer_that_was_lost_then_what_was_applied_is_observed_once_and_not_done_again(rig: Rig) -> None:
    rig.lay(1)
    rig.script = once(rig.applied_in_silence)
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.attempt(1) == 2
    assert rig.done == [1]
    assert [key for key, _ in rig.observed] == [a_job(1).key(0)]


def test_given_new_rows_whose_answer_was_lost_then_they_are_observed_and_the_lane_goes_on(rig: Rig) -> None:
    rig.lay(50)
    rig.script = once(rig.applied_in_silence)
    rig.writer.add(Wide(1, 2, rig.done))
    rig.writer.add(Touch(50, rig.done))
    rig.go()
    assert rig.done == [1, 50]
    assert {key for key, _ in rig.observed} == {a_job(number).key(0) for number in (1, 2, 50)}


@pytest.mark.parametrize("is_read", [True, False], ids=["is read", "is in the way"])
def test_given_a_copy_of_what_was_refused_that_comes_when_its_condition_holds_then_what_it_wrote_is_observed(
    rig: Rig, is_read: bool
) -> None:
    """Seed 33000291: an admission was refused by a full limit, and a second copy of it carried out when that had a slot. Its owner knew of
    no run, and an update was acknowledged that had not ended it.
    """
    rig.lay(1)
    copies: list[Transaction] = []

    def script(effect: Effect) -> Result | None:
        if isinstance(effect, Commit) and not rig.commits:
            copies.append(effect.transaction)
            return Refused(((a_job(9).key(0), None),))
        if copies and isinstance(effect, Read if is_read else Commit):
            rig.settled(copies.pop())
        return None

    rig.script = script
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert [(key, found and found["attempt"]) for key, found in rig.observed] == [(a_job(1).key(0), 2)]
    assert [transaction.name for transaction in rig.commits] == ["touch"] * (1 if is_read else 2)


def test_given_a_write_that_never_arrived_then_it_is_done(rig: Rig) -> None:
    rig.lay(1)
    rig.script = once(lambda effect: Unavailable("x"))
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [1]
    assert rig.attempt(1) == 2


def test_given_a_conflict_that_outlives_the_port_then_it_is_done_after_all(rig: Rig) -> None:
    rig.lay(1)
    rig.script = once(lambda effect: Refused(()))
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [1]


def test_given_a_newer_epoch_when_a_doubtful_write_is_made_impossible_then_nothing_of_the_owner_before_is_taken(
    rig: Rig,
) -> None:
    """Seed 400033: it was on its way for as long as the take-over lasted, and moved the revision of a successor's item."""
    rig.lay(1)
    lease = keys.lease(0)

    def taken_over(effect: Effect) -> Result | None:
        rig.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "epoch": 5, "controls": 0})])
        return Refused(((a_job(1).key(0), None),), doubtful=True)

    rig.script = once(taken_over)
    rig.writer.add(Touch(1, rig.done))
    with pytest.raises(Fenced) as fenced:
        rig.go()
    assert fenced.value.key == lease
    assert [transaction.name for transaction in rig.commits] == ["touch", "void"]
    assert (rig.store.peek(a_job(1).key(0)) or {})["rev"] == 1


def test_given_a_newer_epoch_then_the_holding_ends(rig: Rig) -> None:
    rig.lay(1)
    lease = keys.lease(0)
    rig.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "epoch": 5, "controls": 0})])
    rig.writer.add(Touch(1, rig.done))
    with pytest.raises(Fenced) as fenced:
        rig.go()
    assert fenced.value.key == lease
    assert rig.attempt(1) == 1
    assert rig.done == []


@dataclass(eq=False)
class Remove:
    """Removes a job, and touches others behind it."""

    number: int
    others: tuple[int, ...]
    done: list[int]
    stale: tuple[Key, ...] = ()
    name: str = "remove"
    about: str = "a job"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        if unit.record(Job, a_job(self.number).key(0)) is None:
            return
        unit.delete(a_job(self.number).key(0))
        for other in self.others:
            if unit.record(Job, a_job(other).key(0)) is not None:
                unit.put(a_job(other, attempt=2), a_job(other).key(0))
        unit.after(lambda: self.done.append(self.number))


@pytest.mark.parametrize(("others", "asked_of"), [((), 1), ((2,), 2)], ids=["nothing is left", "another item is left"])
@pytest.mark.parametrize("was_applied", [True, False])
def test_given_a_doubtful_removal_then_what_refuses_its_impossibility_says_whether_it_was_applied(
    rig: Rig, others: tuple[int, ...], asked_of: int, was_applied: bool
) -> None:
    """Seed 20521099: an item that was gone said nothing. The admission was taken for refused, and its run was never launched."""
    rig.lay(1, 2)

    def doubtful(effect: Effect) -> Result | None:
        if was_applied:
            rig.applied_in_silence(effect)
        return Refused(((a_job(9).key(0), None),), doubtful=True)

    rig.script = once(doubtful)
    rig.writer.add(Remove(1, others, rig.done))
    rig.go()
    void = rig.commits[1]
    assert (void.name, void.actions[1].key) == ("void", a_job(asked_of).key(0))
    assert rig.done == [1]
    assert rig.store.peek(a_job(1).key(0)) is None
    assert [each.name for each in rig.commits] == ["remove", "void", *(() if was_applied else ("remove",))]
