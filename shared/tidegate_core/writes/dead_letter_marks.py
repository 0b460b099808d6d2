"""What became of a dead letter: one item for each that somebody dealt with, beside the topic, which can delete none.

A replay is two steps, because the log and the store share no transaction: the mark says `replaying`, the record is produced,
the mark says `replayed`. Who falls in between leaves `replaying`, and nobody knows whether the record is there: the letter is listed
again, and a later replay produces it once more. It is at least once, and never twice by two who ask at the same time.
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
"""Above any retention of a dead-letter topic that is a retention; a letter that outlives its mark is listed again."""
REPLAYING_MS_MAX: Final = 60_000
"""A produce is answered within seconds: a mark that says `replaying` for so long was left behind by a process that fell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """`DLQ#<origin>`: what somebody did about a letter, and all copies of it.

    Attributes:
        letter: Id of the copy that was named.
        at: When.
        replays: How often its record was produced again, or may have been.
    """

    state: MarkState
    letter: str
    at: int
    actor: str | None = None
    reason: str | None = None
    replays: int = 0

    def is_settled(self, now: int) -> bool:
        """Whether nothing is left to do; a replay counts as under way for a while."""
        return self.state != "replaying" or now - self.at < REPLAYING_MS_MAX


def next_mark(seen: Mark | None, wanted: Mark, *, again: bool = False) -> Mark | None:
    """Returns the mark to set before anything is done, or None when nothing is to be done.

    Args:
        seen: As it stands.
        wanted: `replaying` or `dropped`, at the time of asking.
        again: Act on a letter that was dealt with already.
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
    """Replaces the mark as it was seen: of two who act at the same time one is refused."""
    key = key_of(origin)
    revision = 0 if seen is None else _revision(seen)
    item = {**to_item(mark, key), "rev": revision + 1, "w": token, "expires_at": expiry(mark.at, MARK_DAYS)}
    condition = conditions.absent() if seen is None else conditions.unchanged(revision)
    return Transaction("mark_letter", (Put(key, item, condition),), token, key)


def unset_mark(origin: str, before: Item | None, claimed: Item, token: str) -> Transaction:
    """Takes a mark back that was set and had no consequence; `claimed` is the one that was set."""
    key, condition = key_of(origin), conditions.unchanged(_revision(claimed))
    if before is None:
        return Transaction("unmark_letter", (Delete(key, condition),), token, None)
    item = {**before, "rev": _revision(claimed) + 1, "w": token}
    return Transaction("unmark_letter", (Put(key, item, condition),), token, key)


def _revision(item: Item) -> int:
    revision = item["rev"]
    assert isinstance(revision, int)
    return revision
