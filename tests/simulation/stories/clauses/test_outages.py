"""Conditions of an acquire that ends an outage: the outage begins where the shard's owner last was."""

from __future__ import annotations

import pytest

from tests.simulation.stories.stage import takes
from tests.support.builders import HOUR, NOW
from tidegate_core.rows import keys
from tidegate_core.rows.outage import Outage, outages_of
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.fencing import acquire_shard, record_outages
from tidegate_core.writes.message_delivery import Tally, checkpoint, progress_of
from tidegate_memory.store import MemoryStore

LEASE, PROGRESS = keys.lease(0), keys.progress(0)
FIRST, SECOND, THIRD = (Outage(NOW + day * 24 * HOUR, NOW + day * 24 * HOUR + HOUR) for day in range(3))


def an_owned_store() -> MemoryStore:
    """Shard 0 of node-a."""
    store = MemoryStore(remembers_tokens=False)
    assert takes(store, acquire_shard(0, None, None, 1, 1, "node-a", "first", served=NOW))
    assert takes(store, a_checkpoint(store, NOW, "a#1"))
    return store


def an_acquire(store: MemoryStore, owner: str, *outages: Outage) -> Transaction:
    """Decided from what the store holds now, sent later."""
    lease, progress = store.peek(LEASE), store.peek(PROGRESS)
    return acquire_shard(0, lease, progress, 1, 1, owner, f"{owner} acquires", served=NOW, outages=outages)


def a_checkpoint(store: MemoryStore, slot: int, message_id: str) -> Transaction:
    progress = store.peek(PROGRESS)
    assert progress is not None
    return checkpoint(0, progress_of(progress), slot, message_id, Tally(), None, f"checkpoint {slot} {message_id}")


def test_given_an_acquire_that_ends_an_outage_when_it_arrives_after_another_one_then_it_is_refused() -> None:
    """Another node has acquired the shard since, and has found no outage."""
    store = an_owned_store()
    late = an_acquire(store, "node-b", FIRST)
    assert takes(store, an_acquire(store, "node-c"))
    assert not takes(store, late), "I5: two owners hold one epoch"


@pytest.mark.parametrize(
    ("slot", "message_id"),
    [pytest.param(NOW + HOUR, "a#1", id="later"), pytest.param(NOW, "b#1", id="within a millisecond")],
)
def test_given_an_owner_that_delivers_before_it_is_taken_for_gone_then_no_outage_is_recorded(
    slot: int, message_id: str
) -> None:
    store = an_owned_store()
    acquire = an_acquire(store, "node-b", FIRST)
    assert takes(store, a_checkpoint(store, slot, message_id))
    assert not takes(store, acquire), "I1: what was due counts as missed although its owner was there"


def test_given_an_owner_that_records_an_outage_before_it_is_taken_for_gone_then_that_outage_stays() -> None:
    store = an_owned_store()
    assert takes(store, record_outages(0, 1, (), (FIRST,), "first"))
    acquire = an_acquire(store, "node-b", FIRST, THIRD)
    assert takes(store, record_outages(0, 1, (FIRST,), (FIRST, SECOND), "second"))
    takes(store, acquire)
    assert SECOND in outages_of(store.peek(PROGRESS)), f"I1: {SECOND} was a fact, and is none any more"
