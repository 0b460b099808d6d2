"""Marks on dead letters: one item for each letter that a user replayed or dropped.

The topic itself can delete no record.

A replay takes three steps, because log and store share no transaction: mark `replaying`, produce the record, mark
`replayed`. After a crash in between, the mark says `replaying` and the record may be in the log or not. So the letter
is listed again, and a later replay produces the record once more. A replay is at least once, and two concurrent
requests never both produce it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.store_operations import Delete, Item, Key, Put, Transaction
from tidegate_core.writes import conditions

MarkState: TypeAlias = Literal["replaying", "replayed", "dropped"]
MARK_DAYS: Final = 400
"""Above any practical retention of a dead-letter topic. A letter that outlives its mark is listed again."""
REPLAYING_MS_MAX: Final = 60_000
"""A produce is answered within seconds, so an older `replaying` belongs to a crashed process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a user did about a dead letter and all its copies (`DLQ#<origin>`).

    Attributes:
        letter: Id of the copy that the user named.
        at: Time of the action.
        replays: Number of times its record was or may have been produced again.
    """

    state: MarkState
    letter: str
    at: int
    actor: str | None = None
    reason: str | None = None
    replays: int = 0

    def is_settled(self, now: int) -> bool:
        """Returns whether nothing is left to do; a recent replay counts as under way."""
        return self.state != "replaying" or now - self.at < REPLAYING_MS_MAX


def next_mark(seen: Mark | None, wanted: Mark, *, again: bool = False) -> Mark | None:
    """Returns the mark to set before the action, or None when there is nothing to do.

    Args:
        seen: Present mark.
        wanted: Mark `replaying` or `dropped`, with the time of the request.
        again: True to act on a letter that was already handled.
    """
    if seen is not None and seen.is_settled(wanted.at) and (not again or seen.state == "replaying"):
        return None
    return replace(wanted, replays=0 if seen is None else seen.replays)


def replayed(mark: Mark) -> Mark:
    """Returns the mark once the record is in its log."""
    return replace(mark, state="replayed", replays=mark.replays + 1)


def key_of(origin: str) -> Key:
    return keys.dead_letter_mark(origin)


def set_mark(origin: str, seen: Item | None, mark: Mark, token: str) -> Transaction:
    """Replaces the mark that was read; of two concurrent requests one is refused."""
    key = key_of(origin)
    revision = 0 if seen is None else _revision(seen)
    item = {**to_item(mark, key), "rev": revision + 1, "w": token, "expires_at": expiry(mark.at, MARK_DAYS)}
    condition = conditions.absent() if seen is None else conditions.unchanged(revision)
    return Transaction("mark_letter", (Put(key, item, condition),), token, key)


def unset_mark(origin: str, before: Item | None, claimed: Item, token: str) -> Transaction:
    """Withdraws a mark that had no consequence; `claimed` is the mark that was set."""
    key, condition = key_of(origin), conditions.unchanged(_revision(claimed))
    if before is None:
        return Transaction("unmark_letter", (Delete(key, condition),), token, None)
    item = {**before, "rev": _revision(claimed) + 1, "w": token}
    return Transaction("unmark_letter", (Put(key, item, condition),), token, key)


def _revision(item: Item) -> int:
    revision = item["rev"]
    assert isinstance(revision, int)
    return revision
