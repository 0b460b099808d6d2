"""Raising epochs: of a topic partition's cursor first, then of the shards that follow from it (DESIGN 3).

That order is the protocol: any other one loses creates (modelled). Epochs only grow, nothing expires.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key, Transaction, Update, Value
from tidegate_core.transactions import conditions


@dataclass(frozen=True, slots=True)
class Cursor:
    """Position of a topic partition, as its item says.

    Attributes:
        next: Offset of the next record to be dealt with.
        page: Sort key of the last listener that has its inbox row of the record at `next`; `-` between records.
        last_append_time: Largest append time so far: versions are monotone within the topic partition.
        open: Offsets below `next` whose dead letter is not acknowledged yet: a successor copies them again.
    """

    key: Key
    epoch: int
    map_version: int
    next: int
    page: str
    last_append_time: int
    open: tuple[int, ...] = ()


def raise_topic_partition(key: Key, stored: Item | None, map_version: int, owner: str, token: str) -> Transaction:
    """Raises the epoch of a topic partition's item, or makes the item at offset 0; nothing else of it changes."""
    seen = None if stored is None else whole(stored, "epoch")
    if seen is None:
        expression = "SET #epoch = :epoch, #map = :map_mine, #owner = :owner, #w = :w, #next = :zero, #page = :none, #last = :zero"
    else:
        expression = "SET #epoch = :epoch, #map = :map_mine, #owner = :owner, #w = :w"
    names = {"#epoch": "epoch", "#map": "map", "#owner": "owner", "#w": "w"}
    values: dict[str, str | int] = {
        ":epoch": (seen or 0) + 1,
        ":map_mine": map_version,
        ":owner": owner,
        ":w": token,
    }
    if seen is None:
        names |= {"#next": "next", "#page": "page", "#last": "last_append_time"}
        values |= {":zero": 0, ":none": "-"}
    update = Update(key, expression, names, values, conditions.topic_partition_raisable(seen, map_version))
    return Transaction("raise", (update,), token, key)


def cursor_of(key: Key, stored: Item) -> Cursor:
    """Returns the position that an item holds."""
    dead = stored.get("open", [])
    assert isinstance(dead, list)
    return Cursor(
        key,
        whole(stored, "epoch"),
        whole(stored, "map"),
        whole(stored, "next"),
        str(stored["page"]),
        whole(stored, "last_append_time"),
        tuple(offset for offset in dead if isinstance(offset, int)),
    )


def acquire_shard(
    shard: int, lease: Item | None, progress: Item | None, map_version: int, tp_epoch: int, owner: str, token: str
) -> Transaction:
    """Fences the shard: the lease's epoch and the delivery position's epoch are raised together."""
    lease_epoch = None if lease is None else whole(lease, "epoch")
    progress_epoch = None if progress is None else whole(progress, "epoch")
    epoch = (lease_epoch or 0) + 1
    lease_names = {"#epoch": "epoch", "#map": "map", "#tp_epoch": "tp_epoch", "#owner": "owner", "#w": "w"}
    lease_values: dict[str, Value] = {
        ":epoch": epoch,
        ":map_mine": map_version,
        ":tp_mine": tp_epoch,
        ":owner": owner,
        ":w": token,
    }
    lease_set = "#epoch = :epoch, #map = :map_mine, #tp_epoch = :tp_mine, #owner = :owner, #w = :w"
    if lease is None:
        lease_names["#controls"], lease_values[":zero"] = "controls", 0
        lease_set += ", #controls = :zero"
    update_lease = Update(
        keys.lease(shard),
        f"SET {lease_set}",
        lease_names,
        lease_values,
        conditions.acquirable(lease_epoch, map_version, tp_epoch),
    )
    names = {"#epoch": "epoch"}
    values: dict[str, Value] = {":epoch": epoch}
    assignments = "#epoch = :epoch"
    if progress is None:
        tallies = ("delivered", "expired", "cancelled", "dead", "digest")
        names |= {"#slot": "fired_slot", "#id": "fired_id"} | {f"#{name}": name for name in tallies}
        assignments += ", #slot = :zero, #id = :none, " + ", ".join(f"#{name} = :zero" for name in tallies)
    begin: dict[str, Value] = {} if progress is not None else {":zero": 0, ":none": "-"}
    update_progress = Update(
        keys.progress(shard),
        f"SET {assignments}",
        names,
        {**values, **begin},
        conditions.progress_raisable(progress_epoch),
    )
    return Transaction("acquire", (update_lease, update_progress), token, keys.lease(shard))


class Carried(NamedTuple):
    """Versions of the wide controls in a lease.

    Attributes:
        seen: Each transaction of the shard's run plane demands it.
        done: All that these ask of the shard is done.
    """

    seen: int
    done: int


def carried_by(lease: Item) -> Carried:
    done = lease.get("controls_done", 0)  # Leases of earlier versions do not have it.
    assert isinstance(done, int)
    return Carried(whole(lease, "controls"), done)


def outranked(lease: Item | None, map_version: int, tp_epoch: int) -> bool:
    """Whether a later holder of the topic partition, or one with a newer map, has acquired the shard."""
    if lease is None:
        return False
    return (whole(lease, "map"), whole(lease, "tp_epoch")) > (map_version, tp_epoch)


def whole(item: Item, name: str) -> int:
    """Returns an attribute that is a whole number."""
    value = item[name]
    assert isinstance(value, int)
    return value
