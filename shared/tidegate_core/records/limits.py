"""Records of limits that several shards share: the limit's item as its readers see it, and the rows of its queue (DESIGN 6)."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimit:
    """The item of a shared limit. It has no single writer: every change of it is an increment with its own condition.

    Attributes:
        in_use: Permits out, those with items of their own included.
        holders: Runs whose permit is named here.
        offered: Jobs that have the word for a free slot.
        queued: Mark of whoever joined the queue last; None while nobody waits, and then a free permit is there for anybody.
    """

    in_use: int = 0
    holders: frozenset[str] = frozenset()
    offered: frozenset[str] = frozenset()
    queued: str | None = None

    @classmethod
    def of(cls, item: Item | None) -> SharedLimit:
        """Returns what a read has found; a limit that nobody ever used has no item."""
        known = {} if item is None else item
        in_use, queued = known.get("in_use", 0), known.get("queued")
        assert isinstance(in_use, int)
        assert queued is None or isinstance(queued, str)
        return cls(in_use=in_use, holders=_texts(known, "holders"), offered=_texts(known, "offered"), queued=queued)

    def lets_pass(self, job_id: str, most: int) -> bool:
        """Whether the job may have a permit now: there is one, and nobody waits for it with an older right."""
        return self.in_use < most and (self.queued is None or job_id in self.offered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """A job's place in a limit's queue: put by the owner of the job, removed by it, or by the limit's home when an offer
    was not taken up.

    Attributes:
        limit: Partition key of the limit's item.
        satisfied_at: Since when it waits.
        order: Its place, by its priority; None in rows of older versions: first come, first served.
        most: Runs that the job's own version of its schedule allows.
        asked_at: When the row was written; a later one says that the job is still there, and keeps its offer.
    """

    limit: str
    job_id: str
    satisfied_at: int
    most: int
    asked_at: int
    order: int | None = None

    def key(self, home: int) -> Key:
        order = self.satisfied_at if self.order is None else self.order
        return keys.waiter(home, Key(self.limit, "LIMIT"), order, self.job_id)


def _texts(item: Item, name: str) -> frozenset[str]:
    found = item.get(name, frozenset())
    assert isinstance(found, frozenset)
    return frozenset(str(each) for each in found)
