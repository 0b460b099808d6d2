"""Writes on lease, cursor and PROGRESS that concern ownership: epochs, outages, and the suspension version.

An owner raises the epoch of the topic partition's cursor first, then the epochs of its shards. Any other order loses
creates, as a model of the protocol shows. Epochs only grow; nothing expires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidegate_core.rows import keys
from tidegate_core.rows.outage import ATTRIBUTE, GAPS, Outage, gaps_of, outages_of, outages_value, with_gap
from tidegate_core.rows.store_operations import Item, Key, Transaction, Update, Value
from tidegate_core.writes import conditions


@dataclass(frozen=True, slots=True)
class Cursor:
    """The cursor of a topic partition, as its item states it.

    Attributes:
        next: Offset of the next record to process.
        page: Last subscriber with an inbox row of the record at `next`, and its event; `-` between records.
        last_append_time: Largest append time so far, which keeps versions monotone within the topic partition.
        open: Offsets below `next` whose dead letter has no acknowledgement; a successor copies them again.
    """

    key: Key
    epoch: int
    map_version: int
    next: int
    page: str
    last_append_time: int
    open: tuple[int, ...] = ()


def raise_topic_partition(key: Key, stored: Item | None, map_version: int, owner: str, token: str) -> Transaction:
    """Raises the epoch of a topic partition's item, or creates the item at offset 0. Its other attributes do not change."""
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
    """Returns the cursor in an item."""
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
    shard: int,
    lease: Item | None,
    progress: Item | None,
    map_version: int,
    tp_epoch: int,
    owner: str,
    token: str,
    *,
    served: int = 0,
    outages: Sequence[Outage] = (),
) -> Transaction:
    """Fences a shard: raises the epochs of lease and delivery position together.

    Args:
        shard: 0 to S-1.
        lease: Lease as read; None when there is none.
        progress: PROGRESS item as read; None when there is none.
        map_version: Version of the acquirer's partition map.
        tp_epoch: Epoch under which the acquirer owns the topic partition.
        owner: UUID of its process.
        token: Unique; written as `w`.
        served: Time up to which the shard was served, or an outage is recorded. It is not the time of the
            acquisition: an owner that crashes before it serves gives no heartbeat.
        outages: Outages from now on. An outage that ends here is recorded here, so that no crash can come between.
    """
    lease_epoch = None if lease is None else whole(lease, "epoch")
    epoch = (lease_epoch or 0) + 1
    lease_names = {
        "#epoch": "epoch",
        "#map": "map",
        "#tp_epoch": "tp_epoch",
        "#owner": "owner",
        "#served": "served",
        "#w": "w",
    }
    lease_values: dict[str, Value] = {
        ":epoch": epoch,
        ":map_mine": map_version,
        ":tp_mine": tp_epoch,
        ":owner": owner,
        ":served": served,
        ":w": token,
    }
    lease_set = "#epoch = :epoch, #map = :map_mine, #tp_epoch = :tp_mine, #owner = :owner, #served = :served, #w = :w"
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
    update_progress = _raise_progress(shard, progress, epoch, outages)
    return Transaction("acquire", (update_lease, update_progress), token, keys.lease(shard))


def _raise_progress(shard: int, progress: Item | None, epoch: int, outages: Sequence[Outage]) -> Update:
    names = {"#epoch": "epoch"}
    values: dict[str, Value] = {":epoch": epoch}
    expression = "SET #epoch = :epoch"
    if progress is None:
        tallies = ("delivered", "expired", "cancelled", "dead", "digest", "coalesced")
        names |= {"#slot": "fired_slot", "#id": "fired_id"} | {f"#{name}": name for name in tallies}
        values |= {":zero": 0, ":none": "-"}
        expression += ", #slot = :zero, #id = :none, " + ", ".join(f"#{name} = :zero" for name in tallies)
        return Update(keys.progress(shard), expression, names, values, conditions.progress_raisable(None))
    seen, before = whole(progress, "epoch"), outages_of(progress)
    if before == tuple(outages):
        return Update(keys.progress(shard), expression, names, values, conditions.progress_raisable(seen))
    names["#outages"] = ATTRIBUTE
    expression += ", #outages = :outages" if outages else " REMOVE #outages"
    values |= {":outages": outages_value(outages)} if outages else {}
    gaps = with_gap(gaps_of(progress), whole(progress, "fired_slot"), before, outages)
    names["#gaps"], values[":gaps"] = GAPS, outages_value(gaps)
    expression = expression.replace("SET ", "SET #gaps = :gaps, ")
    condition = conditions.outage_ends(
        seen, whole(progress, "fired_slot"), str(progress["fired_id"]), outages_value(before)
    )
    return Update(keys.progress(shard), expression, names, values, condition)


class Carried(NamedTuple):
    """Versions of the scope suspensions in a lease.

    Attributes:
        seen: Version that each transaction of the shard writer demands.
        done: Version whose suspensions the shard has carried out completely.
    """

    seen: int
    done: int


def carried_by(lease: Item) -> Carried:
    done = lease.get("controls_done", 0)  # Absent in leases of earlier versions.
    assert isinstance(done, int)
    return Carried(whole(lease, "controls"), done)


def outranked(lease: Item | None, map_version: int, tp_epoch: int) -> bool:
    """Returns whether a later owner of the topic partition, or one with a newer map, has acquired the shard."""
    if lease is None:
        return False
    return (whole(lease, "map"), whole(lease, "tp_epoch")) > (map_version, tp_epoch)


def whole(item: Item, name: str) -> int:
    """Returns an attribute that is an integer."""
    value = item[name]
    assert isinstance(value, int)
    return value


def record_outages(
    shard: int,
    epoch: int,
    before: Sequence[Outage],
    outages: Sequence[Outage],
    token: str,
    *,
    gaps: Sequence[Outage] = (),
) -> Transaction:
    """Replaces a shard's outages and the gaps of recurring messages (`with_gap`).

    Position and tally stay, so a concurrent checkpoint loses nothing.

    A late or repeated send is refused, because the condition demands the outages from which it was made. It leaves
    `w` alone: that is the witness of a concurrent checkpoint. If a checkpoint's answer is lost, a changed `w` would
    make its owner believe that it is fenced. The author of a write without an answer reads the outages.
    """
    names = {"#outages": ATTRIBUTE, "#gaps": GAPS}
    values: Item = {":gaps": outages_value(gaps)}
    expression = "SET #gaps = :gaps"
    if outages:
        values[":outages"] = outages_value(outages)
        expression += ", #outages = :outages"
    else:
        expression += " REMOVE #outages"
    condition = conditions.outages_recordable(epoch, outages_value(before))
    update = Update(keys.progress(shard), expression, names, values, condition)
    return Transaction("outage", (update,), token, None)


def adopt_suspensions(shard: int, epoch: int, seen: int, version: int, token: str) -> Transaction:
    """Raises the suspension version that each transaction of the shard writer demands (I7).

    From then on no admission succeeds that any owner decided from an older version.
    """
    return _move_lease("controls", shard, epoch, seen, version, token)


def finish_suspensions(shard: int, epoch: int, version: int, token: str) -> Transaction:
    """Records that the shard has carried out the scope suspensions of the version in its lease."""
    return _move_lease("controls_done", shard, epoch, version, version, token)


def _move_lease(attribute: str, shard: int, epoch: int, carried: int, version: int, token: str) -> Transaction:
    update = Update(
        keys.lease(shard),
        f"SET #{attribute} = :to, #w = :w",
        {f"#{attribute}": attribute, "#w": "w"},
        {":to": version, ":w": token},
        conditions.holds_lease(epoch, carried),
    )
    return Transaction(attribute, (update,), token, keys.lease(shard))
