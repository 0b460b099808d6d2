"""Raising epochs: of topic partitions first, then of shards; who may acquire, who is outranked, who is fenced."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Applied, Cancelled, Item, Put
from tidegate_core.writes.fencing import Cursor, acquire_shard, cursor_of, outranked, raise_topic_partition
from tidegate_memory.store import MemoryStore

TP = keys.topic_position("brokers", "a" * 32, 0)
LEASE, PROGRESS = keys.lease(0), keys.progress(0)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def raised(store: MemoryStore, token: str, map_version: int = 1, seen: Item | None = None) -> bool:
    outcome = store.transact(raise_topic_partition(TP, seen or store.peek(TP), map_version, f"node {token}", token))
    return isinstance(outcome, Applied)


def acquired(store: MemoryStore, token: str, map_version: int = 1, tp_epoch: int = 1, stale: bool = False) -> bool:
    lease, progress = (None, None) if stale else (store.peek(LEASE), store.peek(PROGRESS))
    outcome = store.transact(acquire_shard(0, lease, progress, map_version, tp_epoch, f"node {token}", token))
    assert isinstance(outcome, Applied | Cancelled)
    return isinstance(outcome, Applied)


# -- topic partitions -----------------------------------------------------------------------------------------------------


def test_given_no_position_then_the_first_raise_makes_it_at_the_beginning(store: MemoryStore) -> None:
    assert raised(store, "one")
    item = store.peek(TP)
    assert item is not None
    assert cursor_of(TP, item) == Cursor(TP, 1, 1, 0, "-", 0)
    assert (item["epoch"], item["next"], item["page"], item["last_append_time"], item["map"]) == (1, 0, "-", 0, 1)


def test_given_a_position_then_a_raise_leaves_it_where_it_is(store: MemoryStore) -> None:
    raised(store, "one")
    before = store.peek(TP) or {}
    store.write([Put(TP, {**before, "next": 17, "page": "p", "last_append_time": 99})])
    assert raised(store, "two", map_version=2)
    item = store.peek(TP)
    assert item is not None
    assert cursor_of(TP, item) == Cursor(TP, 2, 2, 17, "p", 99)
    assert (item["epoch"], item["map"], item["owner"]) == (2, 2, "node two")


def test_given_two_who_raise_at_once_then_one_is_refused_and_has_to_look_again(store: MemoryStore) -> None:
    raised(store, "one")
    seen = store.peek(TP)
    assert raised(store, "two", seen=seen)
    assert not raised(store, "three", seen=seen)


def test_given_two_who_make_the_position_at_once_then_one_is_refused(store: MemoryStore) -> None:
    first = raise_topic_partition(TP, None, 1, "a", "one")
    second = raise_topic_partition(TP, None, 1, "b", "two")
    assert store.transact(first) == Applied()
    assert isinstance(store.transact(second), Cancelled)


def test_given_a_newer_map_on_the_position_then_an_older_holder_cannot_raise_it(store: MemoryStore) -> None:
    raised(store, "one", map_version=2)
    assert not raised(store, "two", map_version=1)
    assert raised(store, "three", map_version=2)


# -- shards -----------------------------------------------------------------------------------------------------------------


def test_given_a_shard_that_nobody_had_then_acquiring_it_makes_lease_and_progress(store: MemoryStore) -> None:
    assert acquired(store, "one", map_version=3, tp_epoch=5)
    lease, progress = store.peek(LEASE), store.peek(PROGRESS)
    assert lease is not None
    assert progress is not None
    assert {name: lease[name] for name in ("epoch", "map", "tp_epoch", "controls", "owner")} == {
        "epoch": 1,
        "map": 3,
        "tp_epoch": 5,
        "controls": 0,
        "owner": "node one",
    }
    assert (progress["epoch"], progress["fired_slot"], progress["fired_id"]) == (1, 0, "-")


def test_given_a_shard_with_an_owner_then_both_epochs_grow_together_and_the_rest_stays(store: MemoryStore) -> None:
    acquired(store, "one")
    store.write([Put(LEASE, {**(store.peek(LEASE) or {}), "controls": 4})])
    store.write([Put(PROGRESS, {**(store.peek(PROGRESS) or {}), "fired_slot": 77, "delivered": 5})])
    assert acquired(store, "two", tp_epoch=2)
    lease, progress = store.peek(LEASE) or {}, store.peek(PROGRESS) or {}
    assert (lease["epoch"], progress["epoch"]) == (2, 2)
    assert (lease["controls"], progress["fired_slot"], progress["delivered"]) == (4, 77, 5)


def test_given_two_who_acquire_at_once_then_one_is_refused_whole(store: MemoryStore) -> None:
    assert acquired(store, "one", stale=True)
    assert not acquired(store, "two", stale=True)
    assert (store.peek(PROGRESS) or {})["epoch"] == 1


RANKS = [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize("mine", RANKS)
@pytest.mark.parametrize("recorded", RANKS)
def test_given_recorded_map_and_tp_epoch_then_only_who_is_not_older_acquires(
    store: MemoryStore, recorded: tuple[int, int], mine: tuple[int, int]
) -> None:
    """(map, epoch of the topic partition) in that order: under a newer map the epoch of another topic partition counts."""
    acquired(store, "one", *recorded)
    assert outranked(store.peek(LEASE), *mine) == (recorded > mine)
    assert acquired(store, "two", *mine) == (recorded <= mine)


def test_given_no_lease_then_nobody_is_outranked() -> None:
    assert not outranked(None, 1, 1)


@given(attempts=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=12))
def test_given_any_attempts_then_the_epoch_counts_the_acquisitions_and_ranks_never_fall(
    attempts: list[tuple[int, int]],
) -> None:
    store, epoch, rank = MemoryStore(), 0, (0, 0)
    for number, mine in enumerate(attempts):
        done = acquired(store, f"t{number}", *mine)
        assert done == (mine >= rank)
        if done:
            epoch, rank = epoch + 1, mine
        lease = store.peek(LEASE)
        assert (0 if lease is None else lease["epoch"]) == epoch
