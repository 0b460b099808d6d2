"""Facts of outages are written once: with the acquire that ends one, or by an owner that was there all along (I1, I5)."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, NOW
from tidegate_core.messages.wire.due_queue import NOTHING
from tidegate_core.rows import keys
from tidegate_core.rows.outage import Outage, outages_of
from tidegate_core.rows.store_operations import Applied, Item, Transaction
from tidegate_core.writes.fencing import acquire_shard, record_outages
from tidegate_core.writes.message_delivery import checkpoint, progress_of
from tidegate_memory.store import MemoryStore

LEASE, PROGRESS = keys.lease(0), keys.progress(0)
ONE, TWO = Outage(NOW, NOW + HOUR), Outage(NOW + 2 * HOUR, NOW + 3 * HOUR)


@pytest.fixture
def store() -> MemoryStore:
    """Shard 0, acquired once."""
    store = MemoryStore()
    store.transact(acquire_shard(0, None, None, 1, 1, "node-1", "first", served=NOW))
    return store


def takes(store: MemoryStore, transaction: Transaction) -> bool:
    return isinstance(store.transact(transaction), Applied)


def progress(store: MemoryStore) -> Item:
    found = store.peek(PROGRESS)
    assert found is not None
    return found


def an_acquire(store: MemoryStore, *outages: Outage, token: str = "next") -> Transaction:
    return acquire_shard(0, store.peek(LEASE), progress(store), 1, 1, "node-2", token, served=NOW, outages=outages)


def a_checkpoint(store: MemoryStore, slot: int) -> Transaction:
    return checkpoint(0, progress_of(progress(store)), slot, "~#", NOTHING, None, f"checkpoint {slot}")


# -- with the acquire --------------------------------------------------------------------------------------------------


def test_given_an_acquire_that_ends_an_outage_then_fence_and_fact_are_one(store: MemoryStore) -> None:
    assert takes(store, an_acquire(store, ONE))
    assert (progress(store)["epoch"], outages_of(progress(store))) == (2, (ONE,))
    lease = store.peek(LEASE)
    assert lease is not None
    assert (lease["epoch"], lease["served"]) == (2, NOW)


def test_given_a_position_that_moved_meanwhile_then_the_outage_was_none(store: MemoryStore) -> None:
    acquire = an_acquire(store, ONE)
    assert takes(store, a_checkpoint(store, NOW + HOUR))
    assert not takes(store, acquire)
    assert outages_of(progress(store)) == ()


def test_given_a_fact_that_was_written_meanwhile_then_an_acquire_does_not_shorten_it(store: MemoryStore) -> None:
    acquire = an_acquire(store, ONE)
    assert takes(store, record_outages(0, 1, (), (TWO,), "owner"))
    assert not takes(store, acquire)
    assert outages_of(progress(store)) == (TWO,)


def test_given_no_new_fact_then_an_acquire_leaves_those_there_are_alone(store: MemoryStore) -> None:
    takes(store, an_acquire(store, ONE))
    assert takes(store, an_acquire(store, ONE, token="third"))
    assert outages_of(progress(store)) == (ONE,)


def test_given_facts_that_nobody_needs_any_more_then_an_acquire_removes_them(store: MemoryStore) -> None:
    takes(store, an_acquire(store, ONE))
    assert takes(store, an_acquire(store, token="third"))
    assert "outages" not in progress(store)


# -- by an owner that was there all along ------------------------------------------------------------------------------


def test_given_an_owner_that_was_away_then_it_adds_its_fact(store: MemoryStore) -> None:
    assert takes(store, record_outages(0, 1, (), (ONE,), "a"))
    assert takes(store, record_outages(0, 1, (ONE,), (ONE, TWO), "b"))
    assert outages_of(progress(store)) == (ONE, TWO)


@pytest.mark.parametrize(
    ("epoch", "before"),
    [pytest.param(0, (), id="a former owner"), pytest.param(1, (TWO,), id="it consumed other facts")],
)
def test_given_what_it_consumed_is_not_there_then_it_is_refused(
    store: MemoryStore, epoch: int, before: tuple[Outage, ...]
) -> None:
    assert not takes(store, record_outages(0, epoch, before, (ONE,), "a"))


def test_given_a_fact_that_arrives_again_then_it_is_refused(store: MemoryStore) -> None:
    first = record_outages(0, 1, (), (ONE,), "a")
    assert takes(store, first)
    assert takes(store, record_outages(0, 1, (ONE,), (ONE, TWO), "b"))
    assert not takes(store, first)
    assert outages_of(progress(store)) == (ONE, TWO)


def test_given_facts_then_a_checkpoint_leaves_them_alone_and_they_it(store: MemoryStore) -> None:
    under_way = a_checkpoint(store, NOW)
    assert takes(store, record_outages(0, 1, (), (ONE,), "a"))
    assert takes(store, under_way)
    assert (progress(store)["fired_slot"], progress_of(progress(store)).outages) == (NOW, (ONE,))


def test_given_facts_that_nobody_needs_any_more_then_the_attribute_goes(store: MemoryStore) -> None:
    takes(store, record_outages(0, 1, (), (ONE,), "a"))
    assert takes(store, record_outages(0, 1, (ONE,), (), "b"))
    assert "outages" not in progress(store)
