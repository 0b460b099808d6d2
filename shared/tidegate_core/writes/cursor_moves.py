"""The cursor's transaction: the position moves together with everything that the records become (I3)."""

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
"""Page of a cursor that stands between two records; sort keys of listeners sort after it."""

NEVER = 0
"""In place of the end of a horizon: no row of the id was seen."""
USES_MAX = 16
"""Uses of an event id that its row knows. They lie a horizon (a day) apart, and topics keep a week."""


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
        page: Of the last listener served of the record at `next_offset`, or `BETWEEN_RECORDS`.
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
    actions.extend(inbox_put(shard, row) for shard, row in inbox)
    actions.extend(dedupe)
    return Transaction("cursor", tuple(actions), token, seen.key)


def inbox_put(shard: int, row: InboxRow) -> Put:
    """Writes an inbox row of a shard, without a condition: the same row again changes nothing."""
    key = row.key(shard)
    return Put(key, {**to_item(row, key), "rev": 1})


@dataclass(frozen=True, slots=True)
class Uses:
    """When an event id was counted, by append times: what reads a record late is no reason to count it twice, or not at all.

    Attributes:
        at: Of its events, rising; the latest `USES_MAX`. Empty in the oldest rows: they say only until when they hold.
        until: End of the last one's horizon.
        is_of_before: The row names one use only, as nodes write it that know of no others.
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
        """Whether an event of that instant is a repeat. It may be the earlier one of the two, read behind the other."""
        if not self.at:
            return at < self.until
        horizon = self.until - self.at[-1]
        return any(each - horizon < at < each + horizon for each in self.at)

    def and_at(self, at: int, until: int) -> Uses:
        """Returns them with one more; beyond `USES_MAX` the oldest is dropped."""
        return Uses(tuple(sorted({*self.at, at})[-USES_MAX:]), max(self.until, until))

    def without(self, at: int) -> Uses | None:
        """Returns them without that one; None: nothing says that there was another."""
        others = tuple(each for each in self.at if each != at)
        return replace(self, at=others) if others else None


def dedupe_row(namespace: str, dedupe_id: str, uses: Uses, kept_until: int, seen: Uses | None = None) -> Put:
    """The row that makes an event id count once within its horizon; TTL only cleans up.

    Args:
        namespace: The event's.
        dedupe_id: Likewise.
        uses: When it is counted, and was before.
        kept_until: No repeat within the horizon is read later than that.
        seen: When it was counted before, as the row was read.
    """
    key = keys.dedupe(namespace, dedupe_id)
    item: Item = {"pk": key.pk, "sk": key.sk, "until": uses.until, "expires_at": kept_until // 1000}
    if uses.at:
        item["at"] = uses.at[-1]  # What nodes of before read.
        item["uses"] = list(uses.at)
    if seen is None:
        return Put(key, item, conditions.not_counted_before(NEVER))
    if seen.is_of_before:
        return Put(key, item, conditions.not_counted_before(seen.until))
    return Put(key, item, conditions.used_as_seen(seen.at))
