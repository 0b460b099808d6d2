"""Conditions that keep former owners out: a frozen owner's writes, and acquires that were decided too early."""

from __future__ import annotations

from tests.simulation.stories.stage import Stage, a_commit, takes, writing
from tests.support.builders import SECOND, a_spec, an_apply, every
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key, Put, Transaction
from tidegate_core.writes.fencing import acquire_shard
from tidegate_memory.store import MemoryStore


def test_given_a_frozen_owner_when_its_fire_arrives_after_a_take_over_then_the_fire_is_refused() -> None:
    stage = Stage()
    stage.first.request(an_apply(a_spec(trigger=every("10s"))))
    stage.first.hold_back(a_commit("fire"))
    stage.first.run(11 * SECOND)
    stage.idle_successor().run(0)
    stage.first.release()
    assert stage.objections == []


def test_given_controls_that_an_owner_has_not_seen_then_it_admits_nothing() -> None:
    stage = Stage()
    stage.first.hold_back(writing("R#"))
    stage.first.request(an_apply(a_spec(trigger=every("10s"))))
    stage.first.run(11 * SECOND)
    for item in [item for item in stage.memory.items() if item["sk"] == "LEASE"]:
        stage.memory.write([Put(Key(str(item["pk"]), "LEASE"), {**item, "controls": 1})])
    stage.first.release()
    assert not stage.first.rows("R#"), "I7: a run was admitted under controls that its owner has not seen"


def an_acquire(store: MemoryStore, owner: str) -> Transaction:
    """Decided from what the store holds now, sent later."""
    lease, progress = store.peek(keys.lease(0)), store.peek(keys.progress(0))
    return acquire_shard(0, lease, progress, 1, 2, owner, f"{owner}/0.0/12")


def test_given_two_acquires_of_one_epoch_then_the_second_is_refused() -> None:
    store = MemoryStore()
    assert takes(store, an_acquire(store, "node-c"))
    late = an_acquire(store, "node-a")
    assert takes(store, an_acquire(store, "node-b"))
    assert not takes(store, late), "I5: two owners hold one epoch"
