"""Bugs in the limits that several shards share: permits, one for each clause of their conditions, and the queue's order.

Several layers keep a permit from being taken or given back twice: the revisions of run and job refuse a repeat before the
limit does. Those mutants leave the other layers aside: the store hears twice what a transaction says of limits, and that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from tests.simulation.mutants.clauses.weakened_conditions import without
from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tidegate_core.admission import admit, limit_coordinator, permits
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.shared_limit import QueueEntry, SharedLimit
from tidegate_core.rows.store_operations import Action, Applied, Put, RawOutcome, Transaction, Update
from tidegate_core.shard import shard_cache
from tidegate_core.shard.job_order import Place
from tidegate_core.writes import limit_permits
from tidegate_memory.store import MemoryStore

BOUND: Final = "(attribute_not_exists(#in_use) OR #in_use < :most)"
NO_HOLDER: Final = "NOT contains(#holders, :run)"
HAS_WORD: Final = "contains(#offered, :run)"


def echoing(transact: Callable[..., RawOutcome], store: MemoryStore, transaction: Transaction) -> RawOutcome:
    outcome = transact(store, transaction)
    said = tuple(action for action in transaction.actions if action.key.pk.startswith(keys.SHARED_LIMIT))
    if said and isinstance(outcome, Applied):
        transact(store, Transaction(transaction.name, said, f"{transaction.token}000", None))
    return outcome


HEARD_TWICE: Final = Patch(MemoryStore, "transact", around(echoing))
EACH_IN_AN_ITEM: Final = Patch(limit_permits, "HOLDERS_INLINE_MAX", instead(0))


def keeping_the_word(take: Callable[..., tuple[Action, ...]], *arguments: Any, **named: Any) -> tuple[Action, ...]:
    first, *rest = take(*arguments, **named)
    assert isinstance(first, Update)
    expression = first.expression.replace(" DELETE #offered :runs", "")
    values = {name: value for name, value in first.values.items() if name != ":runs" or name in expression}
    return (replace(first, expression=expression, values=values), *rest)


def putting_its_item_anyway(
    take: Callable[..., tuple[Action, ...]], *arguments: Any, **named: Any
) -> tuple[Action, ...]:
    return tuple(replace(each, condition=None) if isinstance(each, Put) else each for each in take(*arguments, **named))


def anybody_passes(limit: SharedLimit, job_id: str, most: int) -> bool:
    return limit.in_use < most


def who_has_the_word_passes(limit: SharedLimit, job_id: str, most: int) -> bool:
    return job_id in limit.offered or (limit.queued is None and limit.in_use < most)


def pretending_to_have_the_word(
    take: Callable[..., tuple[Action, ...]], permit: limit_permits.Permit, most: int, *, offered: bool = False
) -> tuple[Action, ...]:
    return take(permit, most, offered=True)


def offering_to_all(state: SharedLimit, waiters: Sequence[QueueEntry]) -> list[str]:
    return [waiter.job_id for waiter in waiters if waiter.job_id not in state.offered]


def offering_to_the_last(next_offers: Callable[..., list[str]]) -> Any:
    return lambda state, waiters: next_offers(state, waiters[::-1])


def of_two_at_most(
    take: Callable[..., permits.GrantedPermits], unit: Any, wanted: Sequence[permits.RequiredLimit], *more: Any
) -> permits.GrantedPermits:
    shared = [each for each in wanted if each.limit.is_shared]
    return take(unit, [each for each in wanted if each not in shared[2:]], *more)


def first_come(job: Job) -> Place:
    return (False, not job.force_overlap, job.waits_since, job.nominal, job.id)


def keeping_its_slot(state: SharedLimit, waiters: Sequence[QueueEntry]) -> list[QueueEntry]:
    first = next((waiter.job_id for waiter in waiters if waiter.aside), None)
    return [waiter for waiter in waiters if not waiter.aside or waiter.job_id == first]


LINE_TESTS: Final = "unit/tidegate_core/shard/test_job_order.py"
LIMITS: Final = (
    Mutant(
        "permit bound",
        "two shards take the last permit at the same moment",
        breaks="I4",
        patches=(without("permit_free", clauses=f"{NO_HOLDER} AND attribute_not_exists(#queued)", values=(":run",)),),
        killed_by=Seeds(within=75, directed=(25,), trap="contention"),
    ),
    Mutant(
        "permit queue",
        "a newcomer takes the permit that somebody waits for",
        breaks="order",
        patches=(
            without("permit_free", clauses=f"{BOUND} AND {NO_HOLDER}", values=(":most", ":run")),
            Patch(SharedLimit, "lets_pass", instead(anybody_passes)),
        ),
        killed_by=Seeds(within=3, trap="queues"),
    ),
    Mutant(
        "permit twice",
        "an admission that the store hears twice takes two permits, and one of them never comes back",
        breaks="I4",
        patches=(
            without("permit_free", clauses=f"{BOUND} AND attribute_not_exists(#queued)", values=(":most",)),
            HEARD_TWICE,
        ),
        killed_by=Seeds(within=3, trap="queues"),
    ),
    Mutant(
        "offer bound",
        "of more offers than slots each one is taken",
        breaks="I4",
        patches=(
            without("permit_offered", clauses=f"{NO_HOLDER} AND {HAS_WORD}", values=(":run",)),
            Patch(limit_coordinator, "next_offers", instead(offering_to_all)),
            Patch(SharedLimit, "lets_pass", instead(who_has_the_word_passes)),
        ),
        killed_by=Seeds(within=3, trap="queues"),
    ),
    Mutant(
        "offer twice",
        "an offer that is not used up gives two permits to an admission that the store hears twice",
        breaks="I4",
        patches=(
            without("permit_offered", clauses=f"{BOUND} AND {HAS_WORD}", values=(":most", ":run")),
            Patch(permits, "take_permit", around(keeping_the_word)),
            HEARD_TWICE,
        ),
        killed_by=Seeds(within=5, trap="queues"),
    ),
    Mutant(
        "offer word",
        "a job that nobody has offered a slot takes one",
        breaks="order",
        patches=(
            without("permit_offered", clauses=f"{BOUND} AND {NO_HOLDER}", values=(":most", ":run")),
            Patch(SharedLimit, "lets_pass", instead(anybody_passes)),
            Patch(permits, "take_permit", around(pretending_to_have_the_word)),
        ),
        killed_by=Seeds(within=3, trap="queues"),
    ),
    Mutant(
        "permit back twice",
        "an end that the store hears twice gives two permits back",
        breaks="I4",
        patches=(without("permits_held"), HEARD_TWICE),
        killed_by=Seeds(within=3, trap="queues"),
    ),
    Mutant(
        "own item twice",
        "where each permit is an item, an admission that the store hears twice takes two",
        breaks="I4",
        patches=(EACH_IN_AN_ITEM, Patch(permits, "take_permit", around(putting_its_item_anyway)), HEARD_TWICE),
        killed_by=Seeds(within=3, trap="queues"),
    ),
    Mutant(
        "own item back twice",
        "where each permit is an item, an end that the store hears twice gives two back",
        breaks="I4",
        patches=(EACH_IN_AN_ITEM, without("present"), HEARD_TWICE),
        killed_by=Seeds(within=3, trap="queues"),
    ),
    Mutant(
        "queue mark",
        "a queue is closed although somebody has joined since it was seen empty",
        breaks="order",
        patches=(without("queue_marked"),),
        killed_by="unit/tidegate_core/admission/test_limit_coordinator.py::test_given_somebody_who_joins_after_the_queue_was_seen_empty_then_it_stays_open",
    ),
    Mutant(
        "left queue",
        "jobs that abort end for ever because of somebody who waited once",
        breaks="order",
        patches=(Patch(admit, "would_be_granted", returning(False)),),
        killed_by="unit/tidegate_core/admission/test_abandoned_queue.py::test_given_that_the_poke_of_joining_was_lost_and_the_queue_left_then_a_job_that_aborts_starts",
    ),
    Mutant(
        "lapse",
        "an offer to a job that is gone keeps its slot for ever",
        breaks="liveness",
        patches=(Patch(limit_coordinator, "lapsed_offers", returning([])),),
        killed_by=Seeds(within=6, trap="queues"),
    ),
    Mutant(
        "third permit",
        "a job that needs three permits starts with two of them",
        breaks="I4",
        patches=(Patch(permits, "take", around(of_two_at_most)),),
        killed_by=Seeds(within=2),
    ),
    Mutant(
        "last first",
        "who came last is offered the next slot",
        breaks="order",
        patches=(Patch(limit_coordinator, "next_offers", offering_to_the_last),),
        killed_by=Seeds(within=4, trap="queues"),
    ),
    Mutant(
        "missed before due",
        "a job of an instant that was missed stands before those that are due now, and holds the schedule's place for as long as it waits",
        breaks="order",
        patches=(Patch(shard_cache, "queue_position", instead(first_come)),),
        killed_by=f"{LINE_TESTS}::test_given_a_missed_job_that_waits_for_a_busy_group_then_the_one_that_is_due_now_takes_its_place[queue]",
    ),
    Mutant(
        "former version first",
        "a job that an update lets finish stands before those of the new version, which has a higher priority",
        breaks="order",
        patches=(Patch(admit, "by_class", instead(lambda jobs, priority_of: list(jobs))),),
        killed_by=f"{LINE_TESTS}::test_given_finish_old_then_a_job_of_a_low_former_version_holds_up_none_of_the_urgent_new_one[queue]",
    ),
    Mutant(
        "kept from the urgent",
        "the job that keeps a slot for later keeps it from those of a higher class as well",
        breaks="order",
        patches=(Patch(limit_coordinator, "in_line", instead(keeping_its_slot)),),
        killed_by="unit/tidegate_core/admission/test_limit_coordinator.py::test_given_a_job_that_keeps_a_slot_for_later_then_it_does_so_from_nobody_of_a_higher_class[its word is the only slot]",
    ),
)
