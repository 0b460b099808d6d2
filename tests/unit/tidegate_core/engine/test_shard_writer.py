"""A shard's transactions: one at a time, several decisions in each, and what they need read before."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.builders import a_job
from tests.support.harness.shard_writer_rig import InParts, Rig, Touch, Wide
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import GROUP_MAX
from tidegate_core.rows.effects import Commit, Read, ReadRange, Refused, WakeUp
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.store_operations import Key, RangeRead
from tidegate_core.writes.unit_of_work import UnitOfWork

ELSEWHERE = RangeRead("SH#0003", "W#a#", "W#a#~", limit=1)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_given_many_decisions_then_at_most_sixteen_share_a_transaction_in_their_order(rig: Rig) -> None:
    numbers = list(range(40))
    rig.lay(*numbers)
    rig.holds = lambda effect: isinstance(effect, Read)
    for number in numbers:
        rig.writer.add(Touch(number, rig.done))
    rig.go()
    rig.release()
    assert rig.done == numbers
    sizes = [len(transaction.actions) - 1 for transaction in rig.commits]
    assert sum(sizes) == 40
    assert max(sizes) == GROUP_MAX


def test_given_a_group_then_what_all_need_is_read_at_once(rig: Rig) -> None:
    rig.lay(*range(10))
    for number in range(10):
        rig.writer._queue.append(Touch(number, rig.done))
    rig.writer.add(Touch(3, rig.done))
    rig.go()
    assert len([effect for effect in rig.asked if isinstance(effect, Read)]) == 1
    assert len(rig.commits) == 1


def test_given_a_decision_alone_whose_rows_are_known_then_it_is_made_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.lay(1)
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    made: list[int] = []
    decide = Touch.decide

    def counting(decision: Touch, unit: UnitOfWork, now: int) -> None:
        made.append(decision.number)
        decide(decision, unit, now)

    monkeypatch.setattr(Touch, "decide", counting)
    rig.writer.add(Touch(1, rig.done, to=3))
    rig.go()
    assert made == [1]
    assert rig.done == [1, 1]


def test_given_a_transaction_under_way_then_the_next_waits_for_its_answer(rig: Rig) -> None:
    rig.lay(1, 2)
    rig.holds = lambda effect: isinstance(effect, Commit)
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    rig.writer.add(Touch(2, rig.done))
    rig.go()
    assert len(rig.held) == 1
    rig.release()
    assert rig.done == [1, 2]


def test_given_a_commit_then_each_written_row_is_observed_before_what_follows_is_carried_out(rig: Rig) -> None:
    rig.lay(1)
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    ((key, item),) = rig.observed
    assert key == a_job(1).key(0)
    assert item is not None
    assert item["attempt"] == 2
    assert rig.asked[-1] == WakeUp(1)


def test_given_a_decision_that_has_nothing_to_write_then_no_transaction_is_sent(rig: Rig) -> None:
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.commits == []
    assert rig.writer.is_idle


def test_given_decisions_that_do_not_fit_together_then_the_later_one_goes_into_the_next_transaction(rig: Rig) -> None:
    rig.lay(1)
    for first in (100, 200, 300):
        rig.writer._queue.append(Wide(first, 40, rig.done))
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    assert rig.done == [100, 200, 300, 1]
    assert [len(transaction.actions) for transaction in rig.commits] == [81, 42]


def test_given_work_that_arrives_during_a_read_then_its_stale_items_are_read_anew(rig: Rig) -> None:
    """A poke says that a run changed; a look at what was read before the poke would miss the change."""
    rig.lay(1, 2)
    rig.writer.view.learn(
        [a_job(2).key(0)], {a_job(2).key(0): {**to_item(a_job(2, attempt=9), a_job(2).key(0)), "rev": 1}}
    )
    rig.holds = lambda effect: isinstance(effect, Read)
    rig.writer.add(Touch(1, rig.done))
    rig.go()
    rig.writer.add(Touch(2, rig.done, stale=(a_job(2).key(0),)))
    rig.release()
    assert rig.done == [1, 2]


def test_given_a_long_range_then_it_is_read_page_by_page(rig: Rig) -> None:
    rig.lay(*range(1_500))
    found: list[int] = []

    def look() -> Operation[None]:
        found.append(len((yield from rig.writer.read_range("J#", "J#~"))))

    rig.host.operations.start(look())
    rig.go()
    assert found == [1_500]


# -- what is done in parts ---------------------------------------------------------------------------------------------


def test_given_a_decision_that_goes_on_then_its_parts_come_one_by_one_before_what_waits_behind_it(rig: Rig) -> None:
    rig.lay(1, 2, 3, 4, 5)
    rig.holds = lambda effect: isinstance(effect, Read)
    for work in (Touch(1, rig.done), InParts((2, 3, 4), rig.done), Touch(5, rig.done)):
        rig.writer.add(work)
    rig.go()
    rig.release()
    assert rig.done == [1, 2, 3, 4, 5]
    assert [len(transaction.actions) - 1 for transaction in rig.commits] == [1, 1, 1, 2]


def test_given_a_part_that_is_refused_then_it_comes_again_and_still_before_what_waits_behind_it(rig: Rig) -> None:
    rig.lay(1, 2, 3)
    refusals = [Refused((), doubtful=False)]
    rig.script = lambda effect: refusals.pop() if isinstance(effect, Commit) and refusals else None
    rig.holds = lambda effect: isinstance(effect, Read)
    for work in (InParts((1, 2), rig.done), Touch(3, rig.done)):
        rig.writer.add(work)
    rig.go()
    rig.release()
    assert rig.done == [1, 2, 3]


def test_given_a_lane_that_closes_amid_the_parts_then_the_rest_is_the_successors(rig: Rig) -> None:
    rig.lay(1, 2)
    rig.holds = lambda effect: isinstance(effect, Commit)
    rig.writer.add(InParts((1, 2), rig.done))
    rig.go()
    rig.writer.close()
    rig.release()
    assert rig.done == [1]
    assert (rig.attempt(1), rig.attempt(2)) == (2, 1)


def test_given_a_decision_of_a_procedure_then_all_of_its_parts_are_done_before_the_procedure_goes_on(rig: Rig) -> None:
    rig.lay(1, 2, 3)

    def both() -> Operation[None]:
        yield from rig.writer.decide_alone(InParts((1, 2), rig.done))
        yield from rig.writer.decide_alone(Touch(3, rig.done))

    rig.host.operations.start(both())
    rig.go()
    assert rig.done == [1, 2, 3]


@dataclass(eq=False)
class Asks:
    """Wants rows that lie elsewhere, and then an item that may have been read before, or not."""

    number: int
    done: list[int]
    stale: tuple[Key, ...] = ()
    name: str = "asks"
    about: str = "rows"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        if not unit.elsewhere(ELSEWHERE):
            unit.record(Job, a_job(self.number).key(0))
            unit.after(lambda: self.done.append(self.number))


def test_given_rows_elsewhere_then_each_decision_reads_them_for_itself_and_after_all_items(rig: Rig) -> None:
    rig.lay(1)
    rig.writer._queue.append(Asks(1, rig.done))  # In one group with the next.
    rig.writer.add(Asks(1, rig.done))
    rig.go()
    assert rig.done == [1, 1]
    reads = [type(effect) for effect in rig.asked if isinstance(effect, (Read, ReadRange))]
    assert reads == [ReadRange, Read, ReadRange, ReadRange]
