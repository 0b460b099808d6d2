"""The transaction that moves a cursor together with everything that the records become (I3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Action, Item, Put, Transaction, Update
from tidegate_core.writes import conditions
from tidegate_core.writes.fencing import Cursor

BETWEEN_RECORDS = "-"
"""Page of a cursor between two records; sort keys of subscribers sort after it."""

NEVER = 0
"""Stands for the end of a horizon when the id has no row."""
USES_MAX = 16
"""Uses of an event id in its row. They are a horizon (one day) apart, and topics keep a week."""


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
    """Moves the cursor and writes what the records before it become.

    Args:
        seen: Present position.
        next_offset: New position.
        page: Last subscriber served of the record at `next_offset`, or `BETWEEN_RECORDS`.
        last_append_time: Largest append time so far.
        inbox: (shard, row), for shards of any owner, because a transaction may span partition keys.
        dedupe: Rows of the event ids that are counted here, each with its condition.
        token: Unique; written as `w`.
        dead: Offsets below `next_offset` whose dead letter has no acknowledgement.
    """
    update = Update(
        seen.key,
        "SET #next = :next, #page = :page, #last = :last, #open = :open, #w = :w",
        {"#last": "last_append_time", "#open": "open", "#w": "w"},
        {":next": next_offset, ":page": page, ":last": last_append_time, ":open": list(dead), ":w": token},
        conditions.cursor_at(seen.epoch, seen.map_version, seen.next, seen.page),
    )
    actions: list[Action] = [update]
    actions.extend(inbox_put(shard, row) for shard, row in inbox)
    actions.extend(dedupe)
    return Transaction("cursor", tuple(actions), token, seen.key)


def inbox_put(shard: int, row: InboxRow) -> Put:
    """Writes an inbox row of a shard, without a condition: the same row again changes nothing."""
    key = row.key(shard)
    return Put(key, {**to_item(row, key), "rev": 1})


@dataclass(frozen=True, slots=True)
class Uses:
    """The append times at which an event id was counted.

    A record that is read late is neither counted twice nor lost.

    Attributes:
        at: Append times, ascending; the latest `USES_MAX`. Empty in the oldest rows, which state only `until`.
        until: End of the last use's horizon.
        is_of_before: True when an older release wrote the row with one use only.
    """

    at: tuple[int, ...]
    until: int
    is_of_before: bool = False

    @classmethod
    def of(cls, item: Item) -> Uses:
        uses, latest, until = item.get("uses"), item.get("at"), item["until"]
        assert isinstance(until, int)
        if isinstance(uses, list):
            return cls(tuple(each for each in uses if isinstance(each, int)), until)
        return cls((latest,) if isinstance(latest, int) else (), until, is_of_before=True)

    def covers(self, at: int) -> bool:
        """Returns whether an event of that instant is a repeat. It may be the earlier of two and be read second."""
        if not self.at:
            return at < self.until
        horizon = self.until - self.at[-1]
        return any(each - horizon < at < each + horizon for each in self.at)

    def and_at(self, at: int, until: int) -> Uses:
        """Returns the uses with one more; beyond `USES_MAX` the oldest is dropped."""
        return Uses(tuple(sorted({*self.at, at})[-USES_MAX:]), max(self.until, until))

    def without(self, at: int) -> Uses | None:
        """Returns the uses without one; None when no other is known."""
        others = tuple(each for each in self.at if each != at)
        return replace(self, at=others) if others else None


def dedupe_row(namespace: str, dedupe_id: str, uses: Uses, kept_until: int, seen: Uses | None = None) -> Put:
    """Returns the put that makes an event id count once within its horizon. Its TTL only cleans up.

    Args:
        namespace: Namespace of the event.
        dedupe_id: Id of the event.
        uses: Present and earlier uses.
        kept_until: Time after which no repeat within the horizon can be read.
        seen: Earlier uses, as the row was read.
    """
    key = keys.dedupe(namespace, dedupe_id)
    item: Item = {"pk": key.pk, "sk": key.sk, "until": uses.until, "expires_at": kept_until // 1000}
    if uses.at:
        item["at"] = uses.at[-1]  # Older releases read this attribute.
        item["uses"] = list(uses.at)
    if seen is None:
        return Put(key, item, conditions.not_counted_before(NEVER))
    if seen.is_of_before:
        return Put(key, item, conditions.not_counted_before(seen.until))
    return Put(key, item, conditions.used_as_seen(seen.at))
