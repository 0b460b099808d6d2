"""Splits a schedule's inbox into decisions in the order of append times.

A row holds one batch of one topic partition. After an outage, rows of several topic partitions cover the same days.
Then decisions take the entries before an instant from each row. If they were counted row by row, early entries would
meet much later ones, and their real partners would come after them and expire.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from tidegate_core.evidence.match import MatchEvents, append_times
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.shard_cache import ShardCache

ACTIONS_PER_EVENT = 7
"""Actions of an event after the time-out of present evidence.

That evidence with ledger row, place, timer row and cleanup, then chunk and timer row of the new evidence.
"""
ACTIONS_PER_DECISION = 85
"""Below DynamoDB's 100 actions with lease and state."""

Row: TypeAlias = tuple[list[int], Key]
"""The append times of a row's events, ascending, and its key."""


class _Piece(NamedTuple):
    """Entries of a row that one decision counts together, the first of which was appended at `at`."""

    at: int
    key: Key
    events: int


def batch_decisions(
    ref: str, rows: Iterable[tuple[Key, InboxRow]], memory: ShardCache | None = None
) -> list[MatchEvents]:
    """Returns the decisions that count a schedule's inbox rows, in order.

    Args:
        ref: Schedule.
        rows: All its inbox rows; a missing row would count after the others.
        memory: As in `MatchEvents`.
    """
    ordered = sorted((append_times(row), key) for key, row in rows)
    left = [piece for together in _overlapping(ordered) for piece in _pieces(together)]
    decisions: list[MatchEvents] = []
    while left:
        number = _fitting(left)
        taken, left = left[:number], left[number:]
        rows_taken = tuple(dict.fromkeys(piece.key for piece in taken))
        # If rows of the same instant remain, all present entries of that instant count, whichever comes first.
        before = max(taken[-1].at + 1, left[0].at) if left else None
        decisions.append(MatchEvents(ref, rows_taken, before, memory))
    return decisions


def _fitting(pieces: list[_Piece]) -> int:
    """Returns how many pieces one decision counts: all of an instant, unless that alone is too much."""
    cost = 0
    keys = set[Key]()
    for number, piece in enumerate(pieces):
        cost += ACTIONS_PER_EVENT * piece.events + (piece.key not in keys)
        if cost > ACTIONS_PER_DECISION and number:
            earlier = sum(each.at < piece.at for each in pieces[:number])
            return earlier or number
        keys.add(piece.key)
    return len(pieces)


def _overlapping(ordered: list[Row]) -> Iterator[list[Row]]:
    """Yields the rows, those with overlapping spans together."""
    together: list[Row] = []
    end = 0
    for times, key in ordered:
        first, last = (times[0], times[-1]) if times else (0, 0)
        if together and first > end:
            yield together
            together = []
        end = max(end, last) if together else last
        together.append((times, key))
    if together:
        yield together


def _pieces(together: list[Row]) -> list[_Piece]:
    """Returns the separately countable pieces: a single row as a whole, overlapping rows by instant."""
    if len(together) == 1:
        ((times, key),) = together
        return [_Piece(times[0] if times else 0, key, len(times))]
    found = ((at, key, number) for times, key in together for at, number in Counter(times or [0]).items())
    return sorted(_Piece(*each) for each in found)
