"""Clauses that keep former owners out: of leases, of delivery positions, of topic partitions."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.mutants.clauses.clause_finder import always
from tests.simulation.mutants.clauses.clause_mutant import dropped, withheld
from tests.simulation.stories.stage import Stage, a_commit, takes, writing
from tests.support.builders import SECOND, a_cancel, a_send, a_spec, an_apply, every
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key, Put, Transaction
from tidegate_core.transactions.ownership import acquire_shard, raise_topic_partition
from tidegate_memory.store import MemoryStore

TP = Key("TP#brokers#topic#000000", "TP")
FAR = "5m"


# -- a former owner writes ------------------------------------------------------------------------------------------------


def a_frozen_owner_goes_on_with_its_fire() -> Iterable[str]:
    stage = Stage()
    stage.first.request(an_apply(a_spec(trigger=every("10s"))))
    stage.first.hold_back(a_commit("fire"))
    stage.first.run(11 * SECOND)
    stage.idle_successor().run(0)
    stage.first.release()
    return stage.objections


def an_owner_admits_under_controls_that_it_has_not_seen() -> Iterable[str]:
    stage = Stage()
    stage.first.hold_back(writing("R#"))
    stage.first.request(an_apply(a_spec(trigger=every("10s"))))
    stage.first.run(11 * SECOND)
    leases = [item for item in stage.memory.items() if item["sk"] == "LEASE"]
    for item in leases:
        key = Key(str(item["pk"]), "LEASE")
        stage.memory.write([Put(key, {**item, "controls": 1})])
    stage.first.release()
    if stage.first.rows("R#"):
        yield "I7: a run was admitted under controls that its owner has not seen"


def a_frozen_owner_goes_on_with_its_checkpoint() -> Iterable[str]:
    stage = Stage()
    stage.first.hold_back(a_commit("checkpoint"))
    stage.first.request(a_send("m-1", after="1s"))
    stage.first.run(10 * SECOND)
    stage.idle_successor().run(0)
    stage.first.release()
    return stage.objections


def a_frozen_owner_goes_on_with_a_cancel() -> Iterable[str]:
    stage = Stage()
    stage.first.request(a_send("m-1", after=FAR))
    stage.first.hold_back(a_commit("guard"))
    stage.first.request(a_cancel(message_id="m-1"))
    stage.successor()
    stage.first.release()
    return stage.objections


def a_frozen_owner_goes_on_with_what_it_read() -> Iterable[str]:
    stage = Stage()
    stage.first.hold_back(a_commit("cursor"))
    stage.first.request(an_apply(a_spec(trigger=every("10s"))))
    second = stage.idle_successor()
    second.hold_back(a_commit("cursor"))
    second.run(0)
    stage.first.release()
    return stage.objections


def a_holder_with_an_older_map_goes_on_with_what_it_read() -> Iterable[str]:
    stage = Stage()
    stage.first.hold_back(a_commit("cursor"))
    stage.first.request(an_apply(a_spec(trigger=every("10s"))))
    second = stage.idle_successor(map_version=2)
    second.hold_back(a_commit("cursor"))
    second.run(0)
    held = next(item for item in stage.memory.items() if item["sk"] == "TP" and "a" * 32 in str(item["pk"]))
    stage.first.release()
    moved = stage.memory.peek(Key(str(held["pk"]), "TP"))
    if moved is not None and moved["next"] != held["next"]:
        yield "I6: a position was moved under map 1 after map 2 had come"


# -- a former owner acquires ------------------------------------------------------------------------------------------------


def an_acquire(
    store: MemoryStore, owner: str, *, map_version: int = 1, tp_epoch: int = 1, seen: bool = True
) -> Transaction:
    """Decided from what the store holds now, sent whenever."""
    lease, progress = (store.peek(key) if seen else None for key in (keys.lease(0), keys.progress(0)))
    return acquire_shard(0, lease, progress, map_version, tp_epoch, owner, f"{owner}/0.0/{map_version}{tp_epoch}")


def an_acquired_store(map_version: int = 1, tp_epoch: int = 1) -> MemoryStore:
    store = MemoryStore()
    assert takes(store, an_acquire(store, "node-b", map_version=map_version, tp_epoch=tp_epoch))
    return store


def a_first_acquire_arrives_late() -> Iterable[str]:
    store = MemoryStore()
    late = an_acquire(store, "node-a")
    assert takes(store, an_acquire(store, "node-b"))
    if takes(store, late):
        yield "I5: two owners hold one epoch"


def an_acquire_arrives_late() -> Iterable[str]:
    store = an_acquired_store()
    late = an_acquire(store, "node-a", tp_epoch=2)
    assert takes(store, an_acquire(store, "node-b", tp_epoch=2))
    if takes(store, late):
        yield "I5: two owners hold one epoch"


def an_older_holder_of_the_topic_partition_acquires() -> Iterable[str]:
    store = an_acquired_store(tp_epoch=2)
    if takes(store, an_acquire(store, "node-a", tp_epoch=1)):
        yield "I5: an older holder of the topic partition acquired its shard"


def a_holder_with_an_older_map_acquires() -> Iterable[str]:
    store = an_acquired_store(map_version=2)
    if takes(store, an_acquire(store, "node-a", map_version=1, tp_epoch=7)):
        yield "I6: a shard went back to a holder with an older map"


def a_holder_with_a_newer_map_acquires() -> Iterable[str]:
    """Topics may have been cut anew, so the epochs of its topic partition say nothing."""
    store = an_acquired_store(tp_epoch=7)
    if not takes(store, an_acquire(store, "node-c", map_version=2, tp_epoch=1)):
        yield "I6: after growth nobody acquires the shard"


def the_next_holder_of_the_topic_partition_acquires() -> Iterable[str]:
    store = an_acquired_store()
    if not takes(store, an_acquire(store, "node-c", tp_epoch=2)):
        yield "liveness: the shard stays without an owner"


# -- a former holder raises ---------------------------------------------------------------------------------------------------


def a_raise(stored: Item | None, owner: str, map_version: int = 1) -> Transaction:
    return raise_topic_partition(TP, stored, map_version, owner, f"{owner}/0.0/1")


def a_first_raise_arrives_late() -> Iterable[str]:
    store = MemoryStore()
    assert takes(store, a_raise(None, "node-b"))
    if takes(store, a_raise(None, "node-a")):
        yield "I3: the position began anew, and everything before it is read again"


def a_raise_arrives_late() -> Iterable[str]:
    store = MemoryStore()
    assert takes(store, a_raise(None, "node-a"))
    seen = store.peek(TP)
    assert takes(store, a_raise(seen, "node-b"))
    if takes(store, a_raise(seen, "node-a")):
        yield "I3: two holders move one position under one epoch"


def a_holder_with_an_older_map_raises() -> Iterable[str]:
    store = MemoryStore()
    assert takes(store, a_raise(None, "node-b", map_version=2))
    if takes(store, a_raise(store.peek(TP), "node-a", map_version=1)):
        yield "I6: a position went back to a holder with an older map"


NEWER = "(#map < :map OR (#map = :map AND #tp_epoch <= :tp_epoch))"
FIRST_LEASE = always("acquirable", "attribute_not_exists(#epoch)")
FIRST_PROGRESS = always("progress_raisable", "attribute_not_exists(#epoch)")
LEASE_SEEN = always("acquirable", "#epoch = :epoch_seen")
PROGRESS_SEEN = always("progress_raisable", "#epoch = :epoch_seen")

CLAUSES_OF_OWNERSHIP = (
    dropped(
        "holds_lease",
        "#epoch = :epoch",
        "a frozen owner's fire is accepted after another one has acquired the shard",
        breaks="I5",
        scenario=a_frozen_owner_goes_on_with_its_fire,
    ),
    dropped(
        "holds_lease",
        "#controls = :controls",
        "an owner that has not seen a wide suspend admits a run",
        breaks="I7",
        scenario=an_owner_admits_under_controls_that_it_has_not_seen,
    ),
    dropped(
        "fired_through",
        "#epoch = :epoch",
        "a frozen owner moves the delivery position after another one has taken it over",
        breaks="I5",
        scenario=a_frozen_owner_goes_on_with_its_checkpoint,
    ),
    dropped(
        "holds_progress",
        "#epoch = :epoch",
        "a frozen owner answers a cancel that the present one does not hear of",
        breaks="I5",
        scenario=a_frozen_owner_goes_on_with_a_cancel,
    ),
    dropped(
        "cursor_at",
        "#epoch = :epoch",
        "a frozen holder moves the position after another one has raised its epoch",
        breaks="I5",
        scenario=a_frozen_owner_goes_on_with_what_it_read,
    ),
    dropped(
        "cursor_at",
        "#map = :map",
        "a holder with an older map moves the position",
        breaks="I6",
        scenario=a_holder_with_an_older_map_goes_on_with_what_it_read,
        beside=(always("cursor_at", "#epoch = :epoch"),),
    ),
    dropped(
        "acquirable",
        "attribute_not_exists(#epoch)",
        "of two first owners both hold epoch 1",
        breaks="I5",
        scenario=a_first_acquire_arrives_late,
        beside=(FIRST_PROGRESS,),
    ),
    dropped(
        "progress_raisable",
        "attribute_not_exists(#epoch)",
        "of two first owners both hold epoch 1",
        breaks="I5",
        scenario=a_first_acquire_arrives_late,
        beside=(FIRST_LEASE,),
    ),
    dropped(
        "acquirable",
        "#epoch = :epoch_seen",
        "an acquire that was decided before another one took effect gives its epoch to a second owner",
        breaks="I5",
        scenario=an_acquire_arrives_late,
        beside=(PROGRESS_SEEN,),
    ),
    dropped(
        "progress_raisable",
        "#epoch = :epoch_seen",
        "an acquire that was decided before another one took effect gives its epoch to a second owner",
        breaks="I5",
        scenario=an_acquire_arrives_late,
        beside=(LEASE_SEEN,),
    ),
    dropped(
        "acquirable",
        NEWER,
        "a former holder of the topic partition takes its shards back",
        breaks="I5",
        scenario=an_older_holder_of_the_topic_partition_acquires,
    ),
    dropped(
        "acquirable",
        "#tp_epoch <= :tp_epoch",
        "a former holder of the topic partition takes its shards back",
        breaks="I5",
        scenario=an_older_holder_of_the_topic_partition_acquires,
    ),
    dropped(
        "acquirable",
        "#map = :map",
        "a holder with an older map takes a shard back that is another topic partition's now",
        breaks="I6",
        scenario=a_holder_with_an_older_map_acquires,
    ),
    withheld(
        "acquirable",
        "#map < :map",
        "a shard that moves to another topic partition is acquired by nobody",
        breaks="I6",
        scenario=a_holder_with_a_newer_map_acquires,
    ),
    withheld(
        "acquirable",
        "(#map = :map AND #tp_epoch <= :tp_epoch)",
        "no shard is ever taken over",
        breaks="liveness",
        scenario=the_next_holder_of_the_topic_partition_acquires,
    ),
    dropped(
        "topic_partition_raisable",
        "attribute_not_exists(#pk)",
        "a first raise that comes late sets the position back to the first record",
        breaks="I3",
        scenario=a_first_raise_arrives_late,
    ),
    dropped(
        "topic_partition_raisable",
        "#epoch = :epoch_seen",
        "a raise that was decided before another one took effect gives its epoch to a second holder",
        breaks="I3",
        scenario=a_raise_arrives_late,
    ),
    dropped(
        "topic_partition_raisable",
        "#map <= :map",
        "a holder with an older map takes a position back",
        breaks="I6",
        scenario=a_holder_with_an_older_map_raises,
    ),
)
