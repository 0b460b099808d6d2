"""Clauses that write the fact of an outage once, by whom it is up to, from what is still so."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.mutants.clauses.clause_finder import always
from tests.simulation.mutants.clauses.clause_mutant import dropped
from tests.simulation.stories.stage import takes
from tests.support.builders import HOUR, NOW
from tidegate_core.records.outages import Outage, outages_of
from tidegate_core.store import keys
from tidegate_core.store.values import Transaction
from tidegate_core.transactions.delivery import Tally, checkpoint, progress_of
from tidegate_core.transactions.outages import record_outages
from tidegate_core.transactions.ownership import acquire_shard, whole
from tidegate_memory.store import MemoryStore

LEASE, PROGRESS = keys.lease(0), keys.progress(0)
FIRST, SECOND, THIRD = (Outage(NOW + day * 24 * HOUR, NOW + day * 24 * HOUR + HOUR) for day in range(3))


def an_owned_store(*outages: Outage) -> MemoryStore:
    """Shard 0 of node-a, with these facts."""
    store = MemoryStore(remembers_tokens=False)
    assert takes(store, acquire_shard(0, None, None, 1, 1, "node-a", "first", served=NOW))
    assert takes(store, a_checkpoint(store, NOW, "a#1"))
    assert not outages or takes(store, an_owners_word((), outages))
    return store


def facts_in(store: MemoryStore) -> tuple[Outage, ...]:
    return outages_of(store.peek(PROGRESS))


def an_acquire(store: MemoryStore, owner: str, *outages: Outage) -> Transaction:
    """Decided from what the store holds now, sent whenever."""
    lease, progress = store.peek(LEASE), store.peek(PROGRESS)
    return acquire_shard(0, lease, progress, 1, 1, owner, f"{owner} acquires", served=NOW, outages=outages)


def an_owners_word(before: tuple[Outage, ...], outages: tuple[Outage, ...], epoch: int = 1) -> Transaction:
    return record_outages(0, epoch, before, outages, f"{epoch} records {outages}")


def a_checkpoint(store: MemoryStore, slot: int, message_id: str) -> Transaction:
    progress = store.peek(PROGRESS)
    assert progress is not None
    return checkpoint(0, progress_of(progress), slot, message_id, Tally(), None, f"checkpoint {slot} {message_id}")


# -- with the acquire --------------------------------------------------------------------------------------------------------


def an_acquire_that_ends_an_outage_arrives_late() -> Iterable[str]:
    """Another node has acquired the shard since, and has found no outage."""
    store = an_owned_store()
    late = an_acquire(store, "node-b", FIRST)
    assert takes(store, an_acquire(store, "node-c"))
    if takes(store, late):
        yield "I5: two owners hold one epoch"


def an_owner_delivers_before_it_is_taken_for_gone(slot: int, message_id: str) -> Iterable[str]:
    store = an_owned_store()
    acquire = an_acquire(store, "node-b", FIRST)
    assert takes(store, a_checkpoint(store, slot, message_id))
    if takes(store, acquire):
        yield f"I1: what was due in {facts_in(store)} counts as missed although its owner was there"


def an_owner_goes_on_before_it_is_taken_for_gone() -> Iterable[str]:
    return an_owner_delivers_before_it_is_taken_for_gone(NOW + HOUR, "a#1")


def an_owner_goes_on_within_a_millisecond_before_it_is_taken_for_gone() -> Iterable[str]:
    return an_owner_delivers_before_it_is_taken_for_gone(NOW, "b#1")


def an_owner_writes_a_fact_before_it_is_taken_for_gone(*before: Outage) -> Iterable[str]:
    store = an_owned_store(*before)
    acquire = an_acquire(store, "node-b", *before, THIRD)
    assert takes(store, an_owners_word(before, (*before, SECOND)))
    takes(store, acquire)
    if SECOND not in facts_in(store):
        yield f"I1: {SECOND} was a fact, and is none any more"


def an_owner_writes_the_first_fact_before_it_is_taken_for_gone() -> Iterable[str]:
    return an_owner_writes_a_fact_before_it_is_taken_for_gone()


def an_owner_writes_a_further_fact_before_it_is_taken_for_gone() -> Iterable[str]:
    return an_owner_writes_a_fact_before_it_is_taken_for_gone(FIRST)


# -- by an owner that was there all along --------------------------------------------------------------------------------------


def a_former_owner_writes_down_that_it_was_away() -> Iterable[str]:
    """Its successor has served the shard since."""
    store = an_owned_store()
    assert takes(store, an_acquire(store, "node-b"))
    progress = store.peek(PROGRESS)
    assert progress is not None
    if takes(store, an_owners_word((), (FIRST,))):
        yield f"I5: epoch 1 wrote a fact under epoch {whole(progress, 'epoch')}"


def a_fact_arrives_twice(*before: Outage) -> Iterable[str]:
    store = an_owned_store(*before)
    first = an_owners_word(before, (*before, SECOND))
    assert takes(store, first)
    assert takes(store, an_owners_word((*before, SECOND), (*before, SECOND, THIRD)))
    takes(store, first)
    if THIRD not in facts_in(store):
        yield f"I1: {THIRD} was a fact, and is none any more"


def the_first_fact_arrives_twice() -> Iterable[str]:
    return a_fact_arrives_twice()


def a_further_fact_arrives_twice() -> Iterable[str]:
    return a_fact_arrives_twice(FIRST)


CLAUSES_OF_OUTAGES = (
    dropped(
        "outage_ends",
        "#epoch = :epoch_seen",
        "a late acquire takes back an epoch that another node has, and calls its time an outage",
        breaks="I5",
        scenario=an_acquire_that_ends_an_outage_arrives_late,
        # The lease is raised in the same transaction, from the same epoch.
        beside=(always("acquirable", "#epoch = :epoch_seen"),),
    ),
    dropped(
        "outage_ends",
        "#slot = :slot_seen",
        "a time in which the owner delivered is written down as one without an owner",
        breaks="I1",
        scenario=an_owner_goes_on_before_it_is_taken_for_gone,
    ),
    dropped(
        "outage_ends",
        "#id = :id_seen",
        "a time in which the owner delivered, within one millisecond, is written down as one without an owner",
        breaks="I1",
        scenario=an_owner_goes_on_within_a_millisecond_before_it_is_taken_for_gone,
    ),
    dropped(
        "outage_ends",
        "attribute_not_exists(#outages)",
        "an acquire removes the shard's first fact, which its owner has just written",
        breaks="I1",
        scenario=an_owner_writes_the_first_fact_before_it_is_taken_for_gone,
    ),
    dropped(
        "outage_ends",
        "#outages = :outages_seen",
        "an acquire removes a fact that its owner has just written",
        breaks="I1",
        scenario=an_owner_writes_a_further_fact_before_it_is_taken_for_gone,
    ),
    dropped(
        "outages_recordable",
        "#epoch = :epoch",
        "a former owner calls a time an outage in which its successor has served the shard",
        breaks="I5",
        scenario=a_former_owner_writes_down_that_it_was_away,
    ),
    dropped(
        "outages_recordable",
        "attribute_not_exists(#outages)",
        "a shard's first fact that arrives a second time removes a later one",
        breaks="I1",
        scenario=the_first_fact_arrives_twice,
    ),
    dropped(
        "outages_recordable",
        "#outages = :outages_seen",
        "a fact that arrives a second time removes a later one",
        breaks="I1",
        scenario=a_further_fact_arrives_twice,
    ),
)
