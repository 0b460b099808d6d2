"""Reads all messages of one shard for the audit. Payloads are dropped as soon as they are read."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tidegate_core.explain.audit.message_tallies import ClosedTally, MessageFacts, MessageRow, Named
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.recurring.wake_rows import is_wake_row
from tidegate_core.messages.wire.due_queue import NOWHERE
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import HeldMessage, Message, MessageFence, MessageTimer
from tidegate_core.rows.receipt import StoredReceipt
from tidegate_core.rows.recurring_message import Interval, Recurring
from tidegate_core.rows.schedule import PastGeneration
from tidegate_core.rows.store_operations import Item
from tidegate_core.shard.map_transition import Positions, positions_of
from tidegate_core.writes.fencing import cursor_of, whole
from tidegate_core.writes.message_delivery import Progress, Tally, coalesced_of, progress_of
from tidegate_core.writes.partition_map import map_of
from tidegate_node.commands.audit.shard_reader import Reader

CANCELLED, TOO_LATE = ReceiptStatus.CANCELLED.value, ReceiptStatus.TOO_LATE.value
"""Answers to a cancel of an existing message."""


def read_messages(reader: Reader, shard: int, namespace: str | None) -> MessageFacts | None:
    """Returns the messages of a shard; None if the shard was never served. Raises StoreUnavailable.

    The position is read first, so that the rows of all earlier deliveries are present in later reads.
    """
    progress = reader.item(keys.progress(shard))
    if progress is None:
        return None
    present = progress_of(progress)
    held = frozenset((row.id, row.version) for row in reader.records(HeldMessage, shard, keys.HELD_MESSAGE_PREFIX))
    timers: dict[Named, list[MessageTimer]] = {}
    for item in reader.rows(shard, *keys.prefix_range(keys.MESSAGE_TIMER_PREFIX)):
        if not is_wake_row(item):
            timer = from_item(MessageTimer, item)
            timers.setdefault((timer.id, timer.version), []).append(timer)
    rows = {(str(item["id"]), str(item["version"])): item for item in _messages(reader, shard, namespace)}
    if namespace is not None:
        timers = {named: each for named, each in timers.items() if named in rows}
    origins = {timer.origin for each in timers.values() for timer in each} | {
        str(item["origin"]) for item in rows.values()
    }
    return MessageFacts(
        shard=shard,
        position=place_of(present),
        namespace=namespace,
        rows={named: _row(item) for named, item in rows.items()},
        timers=timers,
        guards={guard.id: guard for guard in reader.records(MessageFence, shard, keys.MESSAGE_FENCE_PREFIX)},
        held=held,
        tallies=_tallies(reader, shard, present),
        answers=_answers(reader, shard),
        intervals=_intervals(reader, shard, namespace),
        gone_from=_gone_from(reader, origins),
    )


def place_of(progress: Progress) -> tuple[int, str, str]:
    """Returns the slot and id up to which all deliveries are complete."""
    message_id, _, version = progress.id.partition("#")
    return (progress.slot, message_id, version)


def _gone_from(reader: Reader, origins: Iterable[str]) -> Positions:
    """Returns the last read positions in requests topics that were recreated later, for the topic partitions of these
    create requests.

    They are read after the rows: such a position never moves again once it carries the map that followed.
    """
    item = reader.item(keys.MAP_KEY)
    if item is None:
        return {}
    cluster_map = map_of(item)
    former_ids = {cut.topic_id for cut in cluster_map.former} - {cluster_map.topic_id}
    if not former_ids:
        return {}
    named = {(create.topic_id, create.topic_partition) for create in map(Position.parse, origins)}
    found = {}
    for key, former in positions_of(cluster_map.cluster_id, cluster_map.former).items():
        if former.place[0] in former_ids and former.place in named:
            position = reader.item(key)
            if position is not None and whole(position, "map") >= former.carries:
                found[former.place] = cursor_of(key, position).next
    return found


def _tallies(reader: Reader, shard: int, present: Progress) -> list[ClosedTally]:
    """Returns the closed tallies in the order of their places, then the open one. The clocks that named them may give
    another order.
    """
    closed = [_closed(item) for item in reader.rows(shard, *keys.prefix_range(keys.TALLY_PREFIX), "history")]
    # A tally that was closed after the position was read belongs to a later audit.
    placed = [each for each in closed if each.through is not None and each.through <= place_of(present)]
    placed.sort(key=lambda each: each.through or NOWHERE)
    return [*placed, ClosedTally(through=place_of(present), tally=present.tally)]


def _answers(reader: Reader, shard: int) -> dict[tuple[str, str], str]:
    """Returns the answers to cancels whose receipts are still stored."""
    stored = (from_item(StoredReceipt, item) for item in reader.rows(shard, *keys.prefix_range(keys.RECEIPT_PREFIX)))
    found = {(each.namespace or "", each.request_id): str(json.loads(each.body)["status"]) for each in stored}
    return {named: status for named, status in found.items() if status in (CANCELLED, TOO_LATE)}


def _intervals(reader: Reader, shard: int, namespace: str | None) -> list[tuple[str, Interval]]:
    """Returns intervals of records, then of past generations. One that was closed during the read is in both, and the
    later one holds.
    """
    of = "" if namespace is None else f"{namespace}/"
    records = [
        record
        for kind in (keys.RECURRING_PREFIX, keys.RECURRING_FAR_PREFIX)
        for record in reader.records(Recurring, shard, f"{kind}{of}")
    ]
    found = {(record.ref, span.generation): span for record in records for span in record.spans()}
    for past in reader.records(PastGeneration, shard, f"{keys.PAST_GENERATION_PREFIX}{of}", "history"):
        if past.interval is not None:
            ref = keys.schedule_ref(past.namespace, past.name)
            found[(ref, past.generation)] = Interval(**json.loads(past.interval))
    return [(ref, interval) for (ref, _), interval in sorted(found.items(), key=lambda each: each[0])]


def _messages(reader: Reader, shard: int, namespace: str | None) -> list[Item]:
    wanted = ("id", "version", "origin", "namespace", "nominal", "slot", "topic", "keyed", "expires")
    return [
        {name: value for name, value in {**Message.implied(item), **item}.items() if name in wanted}
        for item in reader.rows(shard, *keys.prefix_range(keys.MESSAGE_PREFIX))
        if namespace in (None, item["namespace"])
    ]


def _row(item: Item) -> MessageRow:
    expires = item.get("expires")
    return MessageRow(
        origin=str(item["origin"]),
        namespace=str(item["namespace"]),
        nominal=whole(item, "nominal"),
        slot=whole(item, "slot"),
        topic=str(item["topic"]),
        keyed=bool(item.get("keyed")),
        expires=expires if isinstance(expires, int) else None,
    )


def _closed(item: Item) -> ClosedTally:
    delivered, expired, cancelled, dead, digest = (
        whole(item, name) for name in ("delivered", "expired", "cancelled", "dead", "digest")
    )
    tally = Tally(delivered, expired, cancelled, dead, digest, coalesced_of(item))
    if "slot" not in item:
        return ClosedTally(through=None, tally=tally)
    message_id, _, version = str(item["id"]).partition("#")
    return ClosedTally(through=(whole(item, "slot"), message_id, version), tally=tally)
