"""Records of limits that several shards share: the limit's item as its readers see it, and the rows of its queue (DESIGN 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item, Key

COUNT: Final = "@"
"""Before the instant in the names of attributes that hold how many admissions of a rate count until then."""
EXPIRED_MAX: Final = 16
"""Counts of passed spans that may lie in the item: taking them out at each admission would have shards refuse one another."""
GONE_MAX: Final = 117
"""Counts that one write takes out: it names each in its condition, and a store takes 4 KB and 300 operators of that. The item of
a rate has no more, unless many owners have counted at one moment, each without those of the others; what is left goes next."""


def count_name(until: int) -> str:
    return f"{COUNT}{keys.instant_text(until)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimit:
    """The item of a shared limit. It has no single writer: every change of it is an increment with its own condition.

    Attributes:
        in_use: Permits out, those with items of their own included. Of a rate: admissions that nobody has taken out of it yet.
        holders: Runs whose permit is named here.
        offered: Jobs that have the word for a free slot.
        queued: Mark of whoever joined the queue last; None while nobody waits, and then a free permit is there for anybody.
        counts: Of a rate: how many admissions count until which instant; together they are `in_use`.
    """

    in_use: int = 0
    holders: frozenset[str] = frozenset()
    offered: frozenset[str] = frozenset()
    queued: str | None = None
    counts: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, item: Item | None) -> SharedLimit:
        """Returns what a read has found; a limit that nobody ever used has no item."""
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
        """Returns the limit as of an instant: admissions whose span has passed count no more, as far as one write can see to it."""
        expired = self.expired(now)
        if not expired:
            return self
        live = {until: count for until, count in self.counts.items() if until not in expired}
        return replace(self, in_use=self.in_use - sum(expired.values()), counts=live)

    def expired(self, now: int) -> dict[int, int]:
        """Returns the counts of a rate that are in its item still, and count no more: the oldest `GONE_MAX`."""
        passed = sorted(until for until in self.counts if until <= now)
        return {until: self.counts[until] for until in passed[:GONE_MAX]}

    def falls_below(self, most: int) -> int | None:
        """Returns when fewer than `most` count, if nothing else happens; None: by itself never."""
        left = self.in_use
        for until in sorted(self.counts):
            left -= self.counts[until]
            if left < most:
                return until
        return None

    def lets_pass(self, job_id: str, most: int) -> bool:
        """Whether the job may have a permit now: there is one, and nobody waits for it with an older right."""
        return self.in_use < most and (self.queued is None or job_id in self.offered)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A job's place in a limit's queue: put by the owner of the job, removed by it, or by the limit's home when an offer
    was not taken up.

    Attributes:
        limit: Partition key of the limit's item.
        satisfied_at: Since when it waits.
        order: Its place, by its priority; None in rows of older versions: first come, first served.
        most: Runs that the job's own version of its schedule allows.
        asked_at: When the row was written; a later one says that the job is still there, and keeps its offer.
        aside: It has had the word for this limit and waits for another one: the slot is for those behind it meanwhile.
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
