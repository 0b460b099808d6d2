"""All condition expressions, each with the invariant that it keeps (`docs/internals/guarantees.md`).

No other module spells one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate_core.rows.shared_limit import count_name
from tidegate_core.rows.store_operations import Condition, Value


def holds_lease(epoch: int, controls: int) -> Condition:
    """I5: a node that lost the shard changes nothing.

    I7: no admission follows from an older version of the scope suspensions.
    """
    return Condition(
        "#epoch = :epoch AND #controls = :controls",
        {"#epoch": "epoch", "#controls": "controls"},
        {":epoch": epoch, ":controls": controls},
    )


def unchanged(revision: int) -> Condition:
    """I1, I2, I3: the write consumes exactly the revision from which it was decided."""
    return Condition("#rev = :rev_seen", {"#rev": "rev"}, {":rev_seen": revision})


def absent() -> Condition:
    """I2: an occurrence becomes a job once, and a job becomes a run once."""
    return Condition("attribute_not_exists(#pk)", {"#pk": "pk"})


def schedule_is(status: str, generation: int) -> Condition:
    """I7: an admission excludes suspend, delete and update, in either order of commits."""
    return Condition(
        "#status = :status AND #generation = :generation",
        {"#status": "status", "#generation": "generation"},
        {":status": status, ":generation": generation},
    )


def permit_free(run_id: str, most: int) -> Condition:
    """I4: a limit is never exceeded, not for an instant, by runs of any shard. No job passes a waiting one."""
    return Condition(
        "(attribute_not_exists(#in_use) OR #in_use < :most) AND NOT contains(#holders, :run) AND "
        "attribute_not_exists(#queued)",
        {"#in_use": "in_use", "#holders": "holders", "#queued": "queued"},
        {":most": most, ":run": run_id},
    )


def permit_offered(run_id: str, most: int) -> Condition:
    """I4: an offer gives a turn and no permit, so the maximum also holds for a job with an offer."""
    return Condition(
        "(attribute_not_exists(#in_use) OR #in_use < :most) AND NOT contains(#holders, :run) AND contains(#offered, :run)",
        {"#in_use": "in_use", "#holders": "holders", "#offered": "offered"},
        {":most": most, ":run": run_id},
    )


def queue_marked(mark: str) -> Condition:
    """No job passes a waiting one: a queue closes only if no job has joined since it was read as empty."""
    return Condition("#queued = :mark_seen", {"#queued": "queued"}, {":mark_seen": mark})


def idle() -> Condition:
    """I4: a limit in use is not removed. No job passes a waiting one."""
    return Condition(
        "(attribute_not_exists(#in_use) OR #in_use = :none) AND attribute_not_exists(#queued)",
        {"#in_use": "in_use", "#queued": "queued"},
        {":none": 0},
    )


def present() -> Condition:
    """I4: a permit with its own item is returned once."""
    return Condition("attribute_exists(#pk)", {"#pk": "pk"})


def permits_held(run_ids: Sequence[str]) -> Condition:
    """I4: a permit is returned once."""
    held = " AND ".join(f"contains(#holders, :run{number})" for number in range(len(run_ids)))
    return Condition(held, {"#holders": "holders"}, {f":run{number}": run for number, run in enumerate(run_ids)})


def counted_as_seen(counts: Mapping[int, int]) -> Condition:
    """I4: an admission leaves a rate once, after its span or because its run did not start, and removes no other."""
    seen = " AND ".join(f"#count{number} = :count{number}" for number in range(len(counts)))
    names = {f"#count{number}": count_name(until) for number, until in enumerate(counts)}
    return Condition(seen, names, {f":count{number}": count for number, count in enumerate(counts.values())})


def acquirable(epoch_seen: int | None, map_version: int, tp_epoch: int) -> Condition:
    """I5, I6: epochs grow one step at a time, never under an older map or by an older owner of the topic partition."""
    newer = "(#map < :map OR (#map = :map AND #tp_epoch <= :tp_epoch))"
    if epoch_seen is None:
        return Condition("attribute_not_exists(#epoch)", {"#epoch": "epoch"})
    return Condition(
        f"#epoch = :epoch_seen AND {newer}",
        {"#epoch": "epoch", "#map": "map", "#tp_epoch": "tp_epoch"},
        {":epoch_seen": epoch_seen, ":map": map_version, ":tp_epoch": tp_epoch},
    )


def topic_partition_raisable(epoch_seen: int | None, map_version: int) -> Condition:
    """I3, I6: of two owners the later one wins, and never one with an older map."""
    if epoch_seen is None:
        return absent()
    return Condition(
        "#epoch = :epoch_seen AND #map <= :map",
        {"#epoch": "epoch", "#map": "map"},
        {":epoch_seen": epoch_seen, ":map": map_version},
    )


def map_is(version: int) -> Condition:
    """I6: maps follow one another without gaps; of two concurrent writers one is refused."""
    return Condition("#version = :version_seen", {"#version": "version"}, {":version_seen": version})


def cursor_at(epoch: int, map_version: int, next_offset: int, page: str) -> Condition:
    """I3: each page of each record is written once, also when a former owner, a retry or a successor repeats it."""
    return Condition(
        "#epoch = :epoch AND #map = :map AND #next = :next_seen AND #page = :page_seen",
        {"#epoch": "epoch", "#map": "map", "#next": "next", "#page": "page"},
        {":epoch": epoch, ":map": map_version, ":next_seen": next_offset, ":page_seen": page},
    )


def not_counted_before(until_seen: int) -> Condition:
    """I3: an event id counts once within its horizon.

    For a reader of a row of an older release, which states one use only.

    That row may be gone by the time of the write.
    """
    return Condition(
        "attribute_not_exists(#pk) OR (#until = :until_seen AND attribute_not_exists(#uses))",
        {"#pk": "pk", "#until": "until", "#uses": "uses"},
        {":until_seen": until_seen},
    )


def used_as_seen(uses_seen: Sequence[int]) -> Condition:
    """I3: an event id counts once within its horizon.

    The id was counted at no other time since the read, by older nodes either.
    """
    return Condition(
        "attribute_not_exists(#pk) OR #uses = :uses_seen",
        {"#pk": "pk", "#uses": "uses"},
        {":uses_seen": list(uses_seen)},
    )


def fired_through(epoch: int, slot: int, message_id: str) -> Condition:
    """I1, I8: only the owner moves the delivery position, and only from where it last stored it."""
    return Condition(
        "#epoch = :epoch AND #slot = :slot_seen AND #id = :id_seen",
        {"#epoch": "epoch", "#slot": "fired_slot", "#id": "fired_id"},
        {":epoch": epoch, ":slot_seen": slot, ":id_seen": message_id},
    )


def progress_raisable(epoch_seen: int | None) -> Condition:
    """I5: raised together with the lease, so that a checkpoint of an older owner is refused."""
    if epoch_seen is None:
        return Condition("attribute_not_exists(#epoch)", {"#epoch": "epoch"})
    return Condition("#epoch = :epoch_seen", {"#epoch": "epoch"}, {":epoch_seen": epoch_seen})


def outage_ends(epoch_seen: int, slot: int, message_id: str, outages: list[Value]) -> Condition:
    """I1: an outage that ends with an acquisition begins at an unmoved position.

    No recorded outage is doubled or shortened.
    """
    facts = _facts_are(outages)
    return Condition(
        f"#epoch = :epoch_seen AND #slot = :slot_seen AND #id = :id_seen AND {facts.expression}",
        {"#epoch": "epoch", "#slot": "fired_slot", "#id": "fired_id", **facts.names},
        {":epoch_seen": epoch_seen, ":slot_seen": slot, ":id_seen": message_id, **facts.values},
    )


def outages_recordable(epoch: int, outages: list[Value]) -> Condition:
    """I1, I5: an owner that was absent records it once, and only while it is the owner."""
    facts = _facts_are(outages)
    return Condition(
        f"#epoch = :epoch AND {facts.expression}",
        {"#epoch": "epoch", **facts.names},
        {":epoch": epoch, **facts.values},
    )


def _facts_are(outages: list[Value]) -> Condition:
    if not outages:
        return Condition("attribute_not_exists(#outages)", {"#outages": "outages"})
    return Condition("#outages = :outages_seen", {"#outages": "outages"}, {":outages_seen": outages})


def holds_progress(epoch: int) -> Condition:
    """I5, I7: only the present owner answers for messages. The condition leaves the lease to the shard writer."""
    return Condition("#epoch = :epoch", {"#epoch": "epoch"}, {":epoch": epoch})


def moves_seen(moves: int) -> Condition:
    """I8: each move of held messages happens once, in order. A late repeat restores nothing."""
    if not moves:
        return Condition("attribute_not_exists(#moves)", {"#moves": "moves"})
    return Condition("#moves = :moves_seen", {"#moves": "moves"}, {":moves_seen": moves})


def fence_older(version: str) -> Condition:
    """I7: a fence only rises; a late, older cancel or replacement changes nothing."""
    return Condition(
        "attribute_not_exists(#live_from) OR #live_from < :version", {"#live_from": "live_from"}, {":version": version}
    )


def of_an_older_version(attribute: str) -> Condition:
    """I6: `tidegate migrate` adds to existing rows, and changes none that its owner has rewritten since."""
    return Condition("attribute_exists(#pk) AND attribute_not_exists(#added)", {"#pk": "pk", "#added": attribute})


def may_start(attempt: int, driver: str) -> Condition:
    """I2, I7: the start gate. One driver of the current attempt passes; a repeat of the same driver passes again."""
    return Condition(
        "#attempt = :attempt AND attribute_not_exists(#ended_at) AND "
        "((#state IN (:submitting, :submitted) AND attribute_not_exists(#driver)) OR #driver = :driver)",
        {"#attempt": "attempt", "#ended_at": "ended_at", "#state": "state", "#driver": "driver"},
        {":attempt": attempt, ":driver": driver, ":submitting": "submitting", ":submitted": "submitted"},
    )


def runs_under(attempt: int, driver: str, seq: int | None) -> Condition:
    """I2: only the driver that passed the gate reports, and only until an end is recorded. The latest outputs stay."""
    condition = Condition(
        "#attempt = :attempt AND #driver = :driver AND attribute_not_exists(#ended_at)",
        {"#attempt": "attempt", "#driver": "driver", "#ended_at": "ended_at"},
        {":attempt": attempt, ":driver": driver},
    )
    if seq is None:
        return condition
    return Condition(
        f"{condition.expression} AND (attribute_not_exists(#outputs_seq) OR #outputs_seq < :seq)",
        {**condition.names, "#outputs_seq": "outputs_seq"},
        {**condition.values, ":seq": seq},
    )
