"""Cuts what lies in a schedule's inbox into decisions, in the order in which it was appended (SEMANTICS 6.2).

A row holds what one batch of one topic partition brought, so after an outage rows of several topic partitions span the same
days. Where they do, decisions take of each row what is before an instant: counted row by row, what came first would meet what
came days later, and what it would have met would come behind it and expire.
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
"""One that comes behind the time-out of what waits: that evidence with its ledger row, the row's place, time-out and clean-up, then the new
evidence's chunk and time-out."""
ACTIONS_PER_DECISION = 85
"""Below DynamoDB's 100 actions with the lease and the state."""

Row: TypeAlias = tuple[list[int], Key]
"""The append times of a row's events, in their order."""


class _Piece(NamedTuple):
    """What one decision counts of a row together: so many events, the first of which was appended at `at`."""

    at: int
    key: Key
    events: int


def batch_decisions(
    ref: str, rows: Iterable[tuple[Key, InboxRow]], memory: ShardCache | None = None
) -> list[MatchEvents]:
    """Returns the decisions that count a schedule's inbox rows, in their order.

    Args:
        ref: The schedule.
        rows: All of them that are there: what is left out would be counted behind it.
        memory: As of `MatchEvents`.
    """
    ordered = sorted((append_times(row), key) for key, row in rows)
    left = [piece for together in _overlapping(ordered) for piece in _pieces(together)]
    decisions: list[MatchEvents] = []
    while left:
        number = _fitting(left)
        taken, left = left[:number], left[number:]
        rows_taken = tuple(dict.fromkeys(piece.key for piece in taken))
        # Of one instant some rows may be left: then all of it that is here is counted, whichever comes first.
        before = max(taken[-1].at + 1, left[0].at) if left else None
        decisions.append(MatchEvents(ref, rows_taken, before, memory))
    return decisions


def _fitting(pieces: list[_Piece]) -> int:
    """Returns how many of the pieces one decision counts: of one instant all, unless that alone is too much."""
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
    """Returns the rows, those together whose spans touch."""
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
    """Returns what may be counted apart: a row that is alone as a whole, others instant by instant."""
    if len(together) == 1:
        ((times, key),) = together
        return [_Piece(times[0] if times else 0, key, len(times))]
    found = ((at, key, number) for times, key in together for at, number in Counter(times or [0]).items())
    return sorted(_Piece(*each) for each in found)
