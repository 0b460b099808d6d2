"""Limit coordinator: offers the free permits of shared limits to the jobs of all shards, in queue order.

Called by the owner of the limit's owner shard. Waiting jobs have sorted queue entries there (`limit_queue_entry.py`).
The coordinator offers free permits in that order, and sends wake-ups to the jobs' shards. It grants nothing: the
admission takes the permit on `in_use < max`. So a wrong offer costs only time. All state comes from the limit's item
and the queue entries, so a successor continues from them.

- An offer to a job that is gone lapses at once, because its queue entry is gone. An offer that no job takes lapses
  after `OFFER_MS`, together with the queue entry. A job that still waits joins again at its old place.
- A job that waits for several limits yields here while another limit is full (`aside`). The first such job keeps its
  offer, so that later jobs cannot pass it for ever. The others return their offers to the jobs after them. The first
  job also returns its offer if a job earlier in the order waits for this limit only.
- A lost wake-up costs one second while an offer is open. Before an offer it costs up to 10 s, until the shard's sweep.
- The coordinator does not know limits without a queue, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from tidegate_core.admission.limit_upkeep import PermitAudit
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.rows import keys
from tidegate_core.rows.effects import WakeUp
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.shared_limit import EXPIRED_MAX, QueueEntry, SharedLimit
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.limits.limit_queue_entry import schedule_idle_check
from tidegate_core.writes.limit_permits import close_queue, lapse_offers, mark_queue, offer_slots, take_out
from tidegate_core.writes.unit_of_work import UnitOfWork

SERVE_MS: Final = 1_000
"""Time between two passes over a queue. It bounds how long a returned permit stays idle after a lost wake-up."""
OFFER_MS: Final = 10_000
"""Time until an unused offer lapses: longer than a short store failure, about as long as a take-over."""
OFFERS_MAX: Final = 16
"""Open offers at a time. With 16 of them the limit's item stays near 1 KB. More offers follow as these are taken."""


@dataclass(frozen=True, slots=True)
class SeenOffer:
    """An offer, as this owner has seen it.

    Attributes:
        asked_at: Time of the job's queue entry; an entry that the job has rewritten renews the offer.
        since: Time at which this owner first saw the offer. A successor starts again, so an offer may last longer,
            never shorter.
    """

    asked_at: int
    since: int


def lapsed_offers(
    state: SharedLimit, waiters: Mapping[str, QueueEntry], standing: Mapping[str, SeenOffer], now: int
) -> list[str]:
    """Returns the jobs whose offer has lapsed: the job is gone, or did not take the offer in time."""

    def has_lapsed(job_id: str) -> bool:
        waiter, seen = waiters.get(job_id), standing.get(job_id)
        if waiter is None:
            return True
        return seen is not None and seen.asked_at == waiter.asked_at and seen.since + OFFER_MS <= now

    return sorted(job_id for job_id in state.offered if has_lapsed(job_id))


def in_line(state: SharedLimit, waiters: Sequence[QueueEntry]) -> list[QueueEntry]:
    """Returns the queue entries that compete for free permits.

    Of the entries that yield only the first competes, and only while no entry before it lacks a permit. That first
    entry may be of class `low` and wait for hours for its other limit. Without this rule a job of class `highest` would
    wait as long.
    """
    first = next((number for number, waiter in enumerate(waiters) if waiter.aside), None)
    if first is None:
        return list(waiters)
    taken = state.in_use + len(state.offered)
    passes = state.offered | state.holders
    is_passed = any(taken >= waiter.most for waiter in waiters[:first] if waiter.job_id not in passes)
    keeps = () if is_passed else (waiters[first],)
    return [*waiters[:first], *keeps, *(waiter for waiter in waiters[first:] if not waiter.aside)]


def returned_grants(state: SharedLimit, waiters: Sequence[QueueEntry]) -> list[str]:
    """Returns the jobs that must return their offer because they yield. Their queue entries keep their places."""
    line = {waiter.job_id for waiter in in_line(state, waiters)}
    return sorted(waiter.job_id for waiter in waiters if waiter.job_id in state.offered - line)


def grantable_entries(state: SharedLimit, waiters: Sequence[QueueEntry]) -> Iterator[str]:
    """Yields the jobs that free permits are for, in queue order.

    Schedules of one program may set different bounds. If the first job needs more room, the jobs after it wait too.
    Otherwise a stream of jobs with higher bounds could keep the first job waiting for ever.
    """
    taken = state.in_use + len(state.offered)
    for waiter in waiters:
        if waiter.job_id in state.offered or waiter.job_id in state.holders:
            continue
        if taken >= waiter.most:
            return
        yield waiter.job_id
        taken += 1


def next_offers(state: SharedLimit, waiters: Sequence[QueueEntry]) -> list[str]:
    """Returns the jobs that get an offer next, in queue order."""
    return list(islice(grantable_entries(state, waiters), max(0, OFFERS_MAX - len(state.offered))))


def full_until_of(state: SharedLimit, waiters: Sequence[QueueEntry]) -> int:
    """Returns the instant before which a rate has no room for its first queue entry; 0 if time alone does not decide."""
    if not waiters or state.in_use < waiters[0].most:
        return 0
    return state.falls_below(waiters[0].most) or 0


@dataclass(slots=True)
class Queue:
    """State of a limit's queue between two passes.

    Attributes:
        standing: Open offers, by job.
        under_way: Whether a pass is in the shard writer.
        again: Whether a change has arrived since that pass began.
        full_until: Instant before which a rate can offer nothing, unless a wake-up reports a change; 0 otherwise.
        alarm_at: Instant of the last alarm that was set.
    """

    standing: dict[str, SeenOffer] = field(default_factory=dict)
    under_way: bool = False
    again: bool = False
    full_until: int = 0
    alarm_at: int = 0


@dataclass(frozen=True, slots=True)
class ServeLimit:
    """One pass over a limit and its queue: offers lapse, or free permits are offered, or the queue is closed.

    The item is read before the queue entries. So each job that joined before the queue mark read here has an entry that
    is read here.

    Attributes:
        reminds: Whether wake-ups go to all open offers, and not only to new ones.
        served: Callback after the commit: whether more can be done now, and whether any job waits.
    """

    limit: Key
    shard: int
    queue: Queue
    reminds: bool
    served: Callable[[bool, bool], None]
    name: str = "offer"

    @property
    def about(self) -> str:
        return self.limit.pk

    @property
    def stale(self) -> tuple[Key, ...]:
        """Keys that owners of other shards write. The second key stands for the range of the queue entries."""
        return (self.limit, Key(keys.shard_pk(self.shard), keys.queue_entries_of(self.limit)[0]))

    def decide(self, unit: UnitOfWork, now: int) -> None:
        state = SharedLimit.of(unit.item(self.limit))
        rows = [from_item(QueueEntry, item) for item in unit.range(*keys.queue_entries_of(self.limit))]
        waiters = {row.job_id: row for row in rows}
        back, line = returned_grants(state.at(now), rows), in_line(state.at(now), rows)
        lapsed = [each for each in lapsed_offers(state, waiters, self.queue.standing, now) if each not in back]
        offers: list[str] = []
        if lapsed or back:
            unit.apply(lapse_offers(self.limit, [*lapsed, *back]))
            for job_id in lapsed:
                if job_id in waiters:
                    unit.forget_row(waiters[job_id].key(self.shard))
        else:
            offers = next_offers(state.at(now), line)
            self._move_queue(unit, state, rows, offers, now)
        offered = [*sorted(state.offered.difference(lapsed, back)), *offers]
        for job_id in offered if self.reminds else offers:
            unit.after(WakeUp(shard_of_run(job_id), job_id))
        full_until = full_until_of(state.at(now), line) if not offered else 0
        unit.after(partial(self._keep, {each: waiters[each].asked_at for each in offered}, full_until, now))
        unit.after(partial(self.served, bool(lapsed or back), bool(rows or offered)))

    def _move_queue(
        self, unit: UnitOfWork, state: SharedLimit, rows: Sequence[QueueEntry], offers: Sequence[str], now: int
    ) -> None:
        """Writes one action on the limit's item; the next pass does the rest.

        Expired counts of a rate are taken out even if nothing can be offered. Otherwise they would grow beyond the
        number that one write can take out.
        """
        expired = state.expired(now)
        if rows and state.queued is None:
            unit.apply(mark_queue(self.limit, f"{rows[-1].job_id}@home@{now}"))
            schedule_idle_check(unit, self.limit, now, self.shard)
        elif offers:
            unit.apply(offer_slots(self.limit, offers, expired))
        elif rows and len(expired) >= EXPIRED_MAX:
            unit.apply(take_out(self.limit, expired))
        elif not rows and not state.offered and state.queued is not None:
            unit.apply(close_queue(self.limit, state.queued))

    def _keep(self, offered: Mapping[str, int], full_until: int, now: int) -> None:
        known = self.queue.standing
        self.queue.full_until = full_until
        self.queue.standing = {
            job_id: known[job_id]
            if job_id in known and known[job_id].asked_at == asked_at
            else SeenOffer(asked_at, now)
            for job_id, asked_at in offered.items()
        }


class LimitCoordinator:
    """One per shard: coordinates the shared limits that this shard owns and that have a queue."""

    def __init__(self, writer: ShardWriter) -> None:
        self._writer = writer
        self._host = writer.host
        self._audit = PermitAudit(writer)
        self._queues: dict[Key, Queue] = {}
        self._is_ticking = False
        self._is_sweeping = False
        self._closed = False

    def wake(self, limit_pk: str) -> None:
        """A job has joined the limit's queue, or a run has returned a permit."""
        self._look(keys.limit_of(limit_pk))

    def sweep(self) -> Operation[None]:
        """Finds all queues at recovery, and repairs lost wake-ups. It does nothing while an earlier sweep still waits
        for the store.
        """
        if self._is_sweeping:
            return
        self._is_sweeping = True
        try:
            rows = yield from self._writer.read_range(*keys.prefix_range(keys.QUEUE_ENTRY_PREFIX))
        finally:
            self._is_sweeping = False
        for limit_pk in sorted({str(row["limit"]) for row in rows}):
            self.wake(limit_pk)

    def close(self) -> None:
        """Stops new offers, because the successor makes them."""
        self._closed = True

    def _look(self, limit: Key, *, reminds: bool = False) -> None:
        if self._closed:
            return
        queue = self._queues.setdefault(limit, Queue())
        if queue.under_way:
            # The pass under way may have read the limit before the change that the wake-up reports.
            queue.again = queue.again or not reminds
            return
        queue.under_way, queue.again = True, False
        served = partial(self._served, limit)
        self._writer.add(ServeLimit(limit, self._writer.shard, queue, reminds, served))

    def _served(self, limit: Key, goes_on: bool, is_waited_for: bool) -> None:
        queue = self._queues[limit]
        queue.under_way = False
        if goes_on or queue.again:
            self._look(limit)
        elif is_waited_for:
            if queue.full_until > self._host.now and queue.full_until != queue.alarm_at:
                queue.alarm_at = queue.full_until
                self._host.call_at(queue.full_until, partial(self._has_room, limit))
            self._tick_later()
        else:
            del self._queues[limit]
            self._audit.forget(limit)

    def _has_room(self, limit: Key) -> None:
        """Enough time has passed for counted admissions of a rate to expire."""
        if limit in self._queues and self._queues[limit].full_until <= self._host.now:
            self._look(limit)

    def _tick_later(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self._host.call_at(self._host.now + SERVE_MS, self._tick, routine=True)

    def _tick(self) -> None:
        self._is_ticking = False
        for limit, queue in list(self._queues.items()):
            if queue.full_until <= self._host.now:
                self._look(limit, reminds=True)
            self._audit.look_now_and_then(limit)
        if self._queues and not self._closed:
            self._tick_later()
