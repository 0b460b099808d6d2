"""The cursor's transaction: the position moves together with everything that the records become (I3)."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.records.codec import to_item
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store import keys
from tidegate_core.store.values import Action, Item, Put, Transaction, Update
from tidegate_core.transactions import conditions
from tidegate_core.transactions.ownership import Cursor

BETWEEN_RECORDS = "-"
"""Page of a cursor that stands between two records; sort keys of listeners sort after it."""


def move_cursor(
    seen: Cursor,
    next_offset: int,
    page: str,
    last_append_time: int,
    inbox: Sequence[tuple[int, InboxRow]],
    dedupe: Sequence[Put],
    token: str,
    dead: Sequence[int] = (),
) -> Transaction:
    """Moves the cursor and materialises the records in between.

    Args:
        seen: The position that is moved.
        next_offset: Where the cursor stands afterwards.
        page: Sort key of the last listener served of the record at `next_offset`, or `BETWEEN_RECORDS`.
        last_append_time: Largest append time so far.
        token: Unique; written as `w`.
        inbox: (shard, row); shards of any holder, because transactions span partition keys.
        dedupe: Rows of the event ids that are counted here, each with its condition.
        dead: Offsets below `next_offset` whose dead letter is not acknowledged yet.
    """
    update = Update(
        seen.key,
        "SET #next = :next, #page = :page, #last = :last, #open = :open, #w = :w",
        {"#last": "last_append_time", "#open": "open", "#w": "w"},
        {":next": next_offset, ":page": page, ":last": last_append_time, ":open": list(dead), ":w": token},
        conditions.cursor_at(seen.epoch, seen.map_version, seen.next, seen.page),
    )
    actions: list[Action] = [update]
    for shard, row in inbox:
        key = row.key(shard)
        actions.append(Put(key, {**to_item(row, key), "rev": 1}))
    actions.extend(dedupe)
    return Transaction("cursor", tuple(actions), token, seen.key)


def dedupe_row(namespace: str, dedupe_id: str, now: int, horizon_ms: int) -> Put:
    """The row that makes an event id count once within its horizon; expiry is checked on the row."""
    key = keys.dedupe(namespace, dedupe_id)
    until = now + horizon_ms
    item: Item = {"pk": key.pk, "sk": key.sk, "until": until, "expires_at": until // 1000}
    return Put(key, item, conditions.not_counted_before(now))
