"""How late: percentiles, a histogram for people, the first on-time fire after a crash, and the gap of a hand-over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tests.support.checkers.messages import Crash, Delivery

EDGES_MS = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
ON_TIME_MS = 500
"""A fire within half a second of its nominal instant is on time; a backlog that is being worked off is not."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """A node was told to end.

    Attributes:
        at: ms since the epoch.
        shards: That it served.
        served_at: When others served all of them, ms since the epoch.
    """

    at: int
    shards: frozenset[int]
    served_at: int


def percentile(values: Sequence[int], share: float) -> int:
    """Returns the smallest value that at least `share` (0 to 1) of the values do not exceed.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 1_000) // 1_000) - 1)]


def histogram(lateness_ms: Iterable[int]) -> str:
    """Returns the counts by upper bound, on one line."""
    values = list(lateness_ms)
    counts = [
        (f"<={edge}", sum(low < value <= edge for value in values))
        for low, edge in zip((-1, *EDGES_MS), EDGES_MS, strict=False)
    ]
    counts.append((f">{EDGES_MS[-1]}", sum(value > EDGES_MS[-1] for value in values)))
    return "  ".join(f"{name} ms: {count}" for name, count in counts if count)


def first_on_time(crash: Crash, deliveries: Iterable[Delivery]) -> int | None:
    """Returns how many ms after a crash one of its shards first delivered on time a message that was due after it.

    None where that never happened.
    """
    after = [
        delivery.appended_at - crash.at
        for delivery in deliveries
        if delivery.shard in crash.shards
        and delivery.nominal > crash.at
        and delivery.appended_at - delivery.nominal <= ON_TIME_MS
    ]
    return min(after, default=None)


def all_on_time(crash: Crash, groups: Iterable[frozenset[int]], deliveries: Sequence[Delivery]) -> int | None:
    """Returns when the last of the groups of shards (a topic partition's each) was on time again, in ms after the crash."""
    firsts = [first_on_time(replace(crash, shards=group), deliveries) for group in groups]
    known = [first for first in firsts if first is not None]
    return max(known, default=None) if len(known) == len(firsts) else None


def gap_of(hand_over: HandOver, deliveries: Iterable[Delivery]) -> int | None:
    """Returns how late, in ms, the latest message first came that was due in these shards while they changed hands.

    None where none was due.
    """
    first: dict[tuple[str, int], int] = {}
    for each in deliveries:
        if each.shard in hand_over.shards and hand_over.at <= each.nominal <= hand_over.served_at:
            message = (each.id, each.nominal)
            first[message] = min(each.appended_at, first.get(message, each.appended_at))
    return max((came - nominal for (_, nominal), came in first.items()), default=None)
