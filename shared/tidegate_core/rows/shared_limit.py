"""Rows of limits that several shards share: the limit's item as readers see it, and its queue entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item, Key

COUNT: Final = "@"
"""Prefix of attributes with the number of admissions that a rate counts; the instant at which they stop counting
follows.
"""
EXPIRED_MAX: Final = 16
"""Counts of passed spans that may stay in the item.

If each admission removed them, shards would refuse one another's writes.
"""
GONE_MAX: Final = 117
"""Counts that one write removes: its condition names each, and DynamoDB takes 4 KB and 300 operators of condition.

A rate's item normally has no more. It has more when many owners count at one moment, each without the counts of the
others. The next write then removes the rest.
"""


def count_name(until: int) -> str:
    return f"{COUNT}{keys.instant_text(until)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimit:
    """The item of a shared limit. It has no single writer: every change is an increment with its own condition.

    Attributes:
        in_use: Permits held, those with own items included. For a rate: admissions that were not removed from it.
        holders: Runs whose permit is named in this item.
        offered: Jobs with an offer.
        queued: Mark of the last queue entry; None while no job waits, and then any job may take a free permit.
        counts: Number of a rate's admissions by the instant at which they stop counting; together they equal
            `in_use`.
    """

    in_use: int = 0
    holders: frozenset[str] = frozenset()
    offered: frozenset[str] = frozenset()
    queued: str | None = None
    counts: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, item: Item | None) -> SharedLimit:
        """Returns the limit in an item; a limit that was never used has no item."""
        known = {} if item is None else item
        in_use, queued = known.get("in_use", 0), known.get("queued")
        assert isinstance(in_use, int)
        assert queued is None or isinstance(queued, str)
        return cls(
            in_use=in_use,
            holders=_texts(known, "holders"),
            offered=_texts(known, "offered"),
            queued=queued,
            counts=_counts(known),
        )

    def at(self, now: int) -> SharedLimit:
        """Returns the limit at an instant, without the passed admissions that one write can remove."""
        expired = self.expired(now)
        if not expired:
            return self
        live = {until: count for until, count in self.counts.items() if until not in expired}
        return replace(self, in_use=self.in_use - sum(expired.values()), counts=live)

    def expired(self, now: int) -> dict[int, int]:
        """Returns the passed counts in a rate's item: the oldest `GONE_MAX`."""
        passed = sorted(until for until in self.counts if until <= now)
        return {until: self.counts[until] for until in passed[:GONE_MAX]}

    def falls_below(self, most: int) -> int | None:
        """Returns the instant from which fewer than `most` count if nothing else happens; None when time alone frees
        nothing.
        """
        left = self.in_use
        for until in sorted(self.counts):
            left -= self.counts[until]
            if left < most:
                return until
        return None

    def lets_pass(self, job_id: str, most: int) -> bool:
        """Returns whether the job may have a permit now: one is free, and no other job has an older right to it."""
        return self.in_use < most and (self.queued is None or job_id in self.offered)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A job's entry in a limit's queue.

    The job's owner writes and removes it; the coordinator removes it after a lapsed offer.

    Attributes:
        limit: Partition key of the limit's item.
        satisfied_at: Time from which the job waits.
        order: Position by priority; None in rows of older versions, which queue in order of arrival.
        most: Limit according to the job's version of its schedule.
        asked_at: Time of the write. A later one proves that the job still waits, and keeps its offer.
        aside: True when the job had an offer here and waits for another limit, so that jobs after it may have the
            permit.
    """

    limit: str
    job_id: str
    satisfied_at: int
    most: int
    asked_at: int
    order: int | None = None
    aside: bool | None = None

    def key(self, home: int) -> Key:
        order = self.satisfied_at if self.order is None else self.order
        return keys.queue_entry(home, keys.limit_of(self.limit), order, self.job_id)


def _texts(item: Item, name: str) -> frozenset[str]:
    found = item.get(name, frozenset())
    assert isinstance(found, frozenset)
    return frozenset(str(each) for each in found)


def _counts(item: Item) -> dict[int, int]:
    found = {name: count for name, count in item.items() if name.startswith(COUNT)}
    return {int(name[len(COUNT) :]): count for name, count in found.items() if isinstance(count, int)}
