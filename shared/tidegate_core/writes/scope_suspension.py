"""Wide controls' conditional writes on a shard: its lease carries their version, and its messages are held back and let go."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.message import HeldMessage, MessageTimer
from tidegate_core.rows.store_operations import Check, Delete, Put, Transaction, Update
from tidegate_core.writes import conditions


def adopt_suspensions(shard: int, epoch: int, seen: int, version: int, token: str) -> Transaction:
    """Raises the version that each transaction of the lane demands: from now on nothing is admitted that was decided from
    an older one, by whomever (I7).
    """
    return _move_lease("controls", shard, epoch, seen, version, token)


def finish_suspensions(shard: int, epoch: int, version: int, token: str) -> Transaction:
    """Says that the shard has done all that the wide controls which its lease carries ask of it."""
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


def hold_messages(shard: int, epoch: int, moves: int, held: Sequence[HeldMessage], token: str) -> Transaction:
    """Takes due messages out of the way of the checkpoint: each timer row becomes a row without a time.

    Conditional, unlike other rows of messages: a repeat of it that came late would bring a message back that was let go
    and delivered since. The timer row's presence would not do as its condition: that one is written unconditionally, and
    may come again too.

    Args:
        shard: Whose messages they are.
        epoch: Of the owner.
        moves: Moves of this shard's held messages before this one.
        held: What is kept of each.
        token: Unique; written as `w`.
    """
    puts = [Put(row.key(shard), to_item(row, row.key(shard))) for row in held]
    deletes = [Delete(keys.message_timer(shard, row.slot, row.id, row.version)) for row in held]
    return _move("hold", shard, epoch, moves, (*puts, *deletes), token)


def release_messages(shard: int, epoch: int, moves: int, timers: Sequence[MessageTimer], token: str) -> Transaction:
    """Gives messages that were held back a slot again."""
    puts = [Put(row.key(shard), to_item(row, row.key(shard))) for row in timers]
    deletes = [Delete(keys.held_message(shard, row.id, row.version)) for row in timers]
    return _move("let_go", shard, epoch, moves, (*puts, *deletes), token)


def _move(name: str, shard: int, epoch: int, moves: int, rows: tuple[Put | Delete, ...], token: str) -> Transaction:
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
