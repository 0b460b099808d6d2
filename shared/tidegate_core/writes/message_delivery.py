"""Fenced writes of the message scheduler: checkpoint, fence, retries of refused messages, held messages, removal of
inbox rows.

All other writes of the message scheduler are unconditional.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.message import HeldMessage, Message, MessageFence, MessageTimer
from tidegate_core.rows.outage import Outage, gaps_of, outages_of
from tidegate_core.rows.store_operations import Action, Check, Delete, Item, Key, Put, Transaction, Update
from tidegate_core.writes import conditions

DIGEST_MODULUS = 1 << 63


class Tally(NamedTuple):
    """Outcomes of messages since the last closed tally.

    It is a tuple because each delivery makes one, at a fifth of the cost.

    Attributes:
        digest: Hash of the delivered ids, independent of their order.
        coalesced: Fires of recurring messages that another fire, delivered after an outage, stands for.
    """

    delivered: int = 0
    expired: int = 0
    cancelled: int = 0
    dead: int = 0
    digest: int = 0
    coalesced: int = 0

    def plus(self, other: Tally) -> Tally:
        return Tally(
            self.delivered + other.delivered,
            self.expired + other.expired,
            self.cancelled + other.cancelled,
            self.dead + other.dead,
            (self.digest + other.digest) % DIGEST_MODULUS,
            self.coalesced + other.coalesced,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """A shard's delivery position: everything up to and including (slot, id) is complete.

    Attributes:
        outages: Outages of the shard, oldest first; checkpoints keep them.
        gaps: Parts of them that recurring messages treat as missed (`with_gap`).
    """

    epoch: int
    slot: int
    id: str
    tally: Tally
    outages: tuple[Outage, ...] = ()
    gaps: tuple[Outage, ...] = ()

    @property
    def place(self) -> tuple[int, str, str]:
        """Slot, id and version: the order of the timer rows' sort keys."""
        message_id, _, version = self.id.partition("#")
        return (self.slot, message_id, version)


def progress_of(item: Item) -> Progress:
    """Returns the delivery position in a PROGRESS item."""

    def number(name: str) -> int:
        value = item[name]
        assert isinstance(value, int)
        return value

    delivered, expired, cancelled, dead, digest = map(number, ("delivered", "expired", "cancelled", "dead", "digest"))
    tally = Tally(delivered, expired, cancelled, dead, digest, coalesced_of(item))
    return Progress(
        number("epoch"), number("fired_slot"), str(item["fired_id"]), tally, outages_of(item), gaps_of(item)
    )


def coalesced_of(item: Item) -> int:
    """Returns a count that is absent in items of older releases."""
    value = item.get("coalesced", 0)
    assert isinstance(value, int)
    return value


def checkpoint(
    shard: int, seen: Progress, slot: int, message_id: str, tally: Tally, closed: Put | None, token: str
) -> Transaction:
    """Moves the delivery position, with absolute values.

    Args:
        shard: Shard of the position.
        seen: Position as this owner last stored it.
        slot: New slot; with `message_id` the place up to which everything is complete.
        message_id: `<id>#<version>` of the last row, or `~#` for all of that slot.
        tally: Tally after this checkpoint.
        closed: Ledger row of a tally that this checkpoint closes; the stored tally then starts from zero.
        token: Unique; written as `w`.
    """
    update = Update(
        keys.progress(shard),
        "SET #slot = :slot, #id = :id, #delivered = :delivered, #expired = :expired, #cancelled = :cancelled, "
        "#dead = :dead, #digest = :digest, #coalesced = :coalesced, #w = :w",
        {
            "#delivered": "delivered",
            "#expired": "expired",
            "#cancelled": "cancelled",
            "#dead": "dead",
            "#digest": "digest",
            "#coalesced": "coalesced",
            "#w": "w",
        },
        {
            ":slot": slot,
            ":id": message_id,
            ":delivered": tally.delivered,
            ":expired": tally.expired,
            ":cancelled": tally.cancelled,
            ":dead": tally.dead,
            ":digest": tally.digest,
            ":coalesced": tally.coalesced,
            ":w": token,
        },
        conditions.fired_through(seen.epoch, seen.slot, seen.id),
    )
    actions: tuple[Action, ...] = (update,) if closed is None else (update, closed)
    return Transaction("checkpoint", actions, token, keys.progress(shard))


def raise_fence(shard: int, epoch: int, guard: MessageFence, token: str) -> Transaction:
    """Raises a message fence; refused when it is as high already, or when the shard has another owner.

    A former owner must not answer a cancel or a replacement. The present owner may have loaded the message, and would
    not learn of the fence.
    """
    written = (
        "SET #live_from = :version, #id = :id, #expires = :expires, #request = :request, #before = :before, #through = :through, "
        "#w = :w"
    )
    values = {
        ":id": guard.id,
        ":expires": guard.expires_at,
        ":request": guard.request_id,
        ":before": guard.before,
        ":through": guard.through,
        ":w": token,
    }
    update = Update(
        guard.key(shard),
        # The store has no empty set.
        f"{written}, #late = :late" if guard.late else f"{written} REMOVE #late",
        {
            "#id": "id",
            "#expires": "expires_at",
            "#request": "request_id",
            "#before": "before",
            "#through": "through",
            "#late": "late",
            "#w": "w",
        },
        {**values, ":late": guard.late} if guard.late else values,
        conditions.fence_older(guard.live_from),
    )
    actions = (update, Check(keys.progress(shard), conditions.holds_progress(epoch)))
    return Transaction("guard", actions, token, guard.key(shard))


def refuse_version(shard: int, epoch: int, message_id: str, version: str, token: str) -> Transaction:
    """Adds a version to the ones that a fence refuses individually. That fence has no TTL.

    A late or repeated write adds a version that is there already. The write of a former owner is refused, because the
    present owner may reject its reasons.
    """
    key = keys.message_fence(shard, message_id)
    update = Update(
        key,
        "SET #id = :id, #w = :w ADD #refused :version REMOVE #expires",
        {"#id": "id", "#w": "w", "#refused": "refused", "#expires": "expires_at"},
        {":id": message_id, ":w": token, ":version": frozenset({version})},
    )
    return Transaction("guard", (update, Check(keys.progress(shard), conditions.holds_progress(epoch))), token, key)


def remove_inboxed(shard: int, epoch: int, inbox_rows: Sequence[Key], token: str) -> Transaction:
    """Removes inbox rows whose messages are written.

    A former owner's removal would hide them from the present owner (I8).
    """
    deletes = [Delete(row) for row in inbox_rows]
    actions: tuple[Action, ...] = (*deletes, Check(keys.progress(shard), conditions.holds_progress(epoch)))
    return Transaction("inboxed", actions, token, None)


def retry(
    shard: int, epoch: int, gone: Sequence[Key], rows: Sequence[MessageTimer | Message], token: str
) -> Transaction:
    """Replaces the rows of refused messages by the rows of their retries, all or none (I8).

    The write of a former owner is refused. The present owner may have read the earlier rows, or none, and sent the
    messages from their former slots. A repeat by the same owner writes the same rows.

    Args:
        shard: Shard of the messages.
        epoch: Epoch of the owner.
        gone: Timer rows of the refused attempts; a fire of a recurring message has none.
        rows: Timer row of each retry, and for a fire also its message row; with `gone` 99 at most.
        token: Unique.
    """
    puts = [Put(row.key(shard), to_item(row, row.key(shard))) for row in rows]
    deletes = [Delete(row) for row in gone]
    actions: tuple[Action, ...] = (*puts, *deletes, Check(keys.progress(shard), conditions.holds_progress(epoch)))
    return Transaction("retry", actions, token, None)


def hold_messages(shard: int, epoch: int, moves: int, held: Sequence[HeldMessage], token: str) -> Transaction:
    """Moves due messages out of the checkpoint's way: each timer row becomes a row without a time.

    Unlike other rows of messages this is conditional. A late repeat would restore a message that was released and
    delivered since. The presence of the timer row is no sufficient condition: that row is written unconditionally and
    may return as well.

    Args:
        shard: Shard of the messages.
        epoch: Epoch of the owner.
        moves: Number of earlier moves of this shard's held messages.
        held: Row of each held message.
        token: Unique; written as `w`.
    """
    puts = [Put(row.key(shard), to_item(row, row.key(shard))) for row in held]
    deletes = [Delete(keys.message_timer(shard, row.slot, row.id, row.version)) for row in held]
    return _move_held("hold", shard, epoch, moves, (*puts, *deletes), token)


def release_messages(shard: int, epoch: int, moves: int, timers: Sequence[MessageTimer], token: str) -> Transaction:
    """Gives held messages a slot again."""
    puts = [Put(row.key(shard), to_item(row, row.key(shard))) for row in timers]
    deletes = [Delete(keys.held_message(shard, row.id, row.version)) for row in timers]
    return _move_held("let_go", shard, epoch, moves, (*puts, *deletes), token)


def _move_held(
    name: str, shard: int, epoch: int, moves: int, rows: tuple[Put | Delete, ...], token: str
) -> Transaction:
    counter = keys.held_moves(shard)
    update = Update(
        counter,
        "SET #moves = :moves, #w = :w",
        {"#moves": "moves", "#w": "w"},
        {":moves": moves + 1, ":w": token},
        conditions.moves_seen(moves),
    )
    check = Check(keys.progress(shard), conditions.holds_progress(epoch))
    return Transaction(name, (update, *rows, check), token, counter)
