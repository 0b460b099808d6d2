"""The home of shared limits: their free slots go to the jobs of all shards, first come, first served (DESIGN 6).

A limit's home is one shard. Waiting jobs have sorted rows there (`limit_queue_entry.py`); its owner offers free slots in their order
and pokes the jobs' shards. Nothing here gives a permit: the admission does, on `in_use < max`, so whatever is wrong with an
offer costs time only. All is derived from the limit's item and the rows: who takes over the shard goes on from there.

- An offer to a job that is gone lapses at once, because its row went with it; one that is not taken up lapses after
  `OFFER_MS`, together with the row. A job that is still there joins again, at its old place.
- A job that needs several limits stands aside here while it waits for another one. Of those that do, the first keeps its word, so
  that it has its turn one day whatever stream passes it; the others give theirs back, and those behind have the slots. A job that
  stands before it in the order waits for nothing else: for that one the first gives its word back too.
- A lost poke costs a second while an offer stands, and the shard's sweep (10 s) before that.
- A limit without queue costs its home nothing: it is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from tidegate_core.admission.permit_audit import PermitAudit
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
"""Each queue is looked at so often, whatever pokes are lost: a slot that comes back stands idle no longer."""
OFFER_MS: Final = 10_000
"""An offer that nobody takes up goes to the next: longer than a store's bad moment, about as long as a take-over."""
OFFERS_MAX: Final = 16
"""Offers that stand at a time: with 16 holders the limit's item stays near 1 KB. The next follow as these are taken up."""


@dataclass(frozen=True, slots=True)
class SeenOffer:
    """An offer, as this owner has seen it.

    Attributes:
        asked_at: Of the job's row; one that the job has written anew renews the offer.
        since: When this owner saw it first. A successor begins anew: an offer may stand longer, never shorter.
    """

    asked_at: int
    since: int


def lapsed_offers(
    state: SharedLimit, waiters: Mapping[str, QueueEntry], standing: Mapping[str, SeenOffer], now: int
) -> list[str]:
    """Returns the jobs whose offer has lapsed: they are gone, or have not taken it up in time."""

    def has_lapsed(job_id: str) -> bool:
        waiter, seen = waiters.get(job_id), standing.get(job_id)
        if waiter is None:
            return True
        return seen is not None and seen.asked_at == waiter.asked_at and seen.since + OFFER_MS <= now

    return sorted(job_id for job_id in state.offered if has_lapsed(job_id))


def in_line(state: SharedLimit, waiters: Sequence[QueueEntry]) -> list[QueueEntry]:
    """Returns those that free slots are for: of those that stand aside only the first, and that one while nobody before it lacks a slot.

    The first may be of class `low`, and its other limit busy for hours: a job of class `highest` would wait as long.
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
    """Returns the jobs that have the word and stand aside for others. Their rows stay: their places are theirs."""
    line = {waiter.job_id for waiter in in_line(state, waiters)}
    return sorted(waiter.job_id for waiter in waiters if waiter.job_id in state.offered - line)


def grantable_entries(state: SharedLimit, waiters: Sequence[QueueEntry]) -> Iterator[str]:
    """Yields those for whom there is a slot, in the order of the queue.

    Schedules of one program may allow different numbers of runs. Whoever stands first is waited for, also when those behind
    would be content with less room: else a stream of them could keep it waiting for ever.
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
    """Returns who has the word next, in the order of the queue."""
    return list(islice(grantable_entries(state, waiters), max(0, OFFERS_MAX - len(state.offered))))


def full_until_of(state: SharedLimit, waiters: Sequence[QueueEntry]) -> int:
    """Returns before when a rate has no room for the first of its queue; 0 where time alone does not tell."""
    if not waiters or state.in_use < waiters[0].most:
        return 0
    return state.falls_below(waiters[0].most) or 0


@dataclass(slots=True)
class Queue:
    """What is kept of a limit's queue between two looks.

    Attributes:
        standing: Offers, by job.
        under_way: A look is in the lane.
        again: Something has changed since.
        full_until: Of a rate: nothing can be offered before, unless somebody says that something has changed. 0 elsewhere.
        alarm_at: For when the latest look was asked for.
    """

    standing: dict[str, SeenOffer] = field(default_factory=dict)
    under_way: bool = False
    again: bool = False
    full_until: int = 0
    alarm_at: int = 0


@dataclass(frozen=True, slots=True)
class ServeLimit:
    """One look at a limit and its queue: offers lapse, or free slots are offered, or the queue is closed.

    The item is read before the rows: whoever has joined before the mark that is read here has a row that is read here.

    Attributes:
        reminds: Pokes go to all offers, also to those that stand already.
        served: Called when it is in the store, with whether there is more to do now and whether anybody waits.
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
        """All of it is written by other shards' owners; the second key stands for the range of the rows."""
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
        """One action on the limit's item a transaction: what is left is done at the next look.

        What has gathered in a rate goes also where nothing can be offered: more than one write takes out would be there for ever.
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
    """One per shard: all shared limits whose home it is and before which somebody waits."""

    def __init__(self, lane: ShardWriter) -> None:
        self._lane = lane
        self._host = lane.host
        self._audit = PermitAudit(lane)
        self._queues: dict[Key, Queue] = {}
        self._is_ticking = False
        self._is_sweeping = False
        self._closed = False

    def wake(self, limit_pk: str) -> None:
        """Somebody has joined the limit's queue, or given a permit back."""
        self._look(keys.limit_of(limit_pk))

    def sweep(self) -> Operation[None]:
        """Finds all queues: at recovery, and what lost pokes would have said. With one under way, which the store keeps waiting, none."""
        if self._is_sweeping:
            return
        self._is_sweeping = True
        try:
            rows = yield from self._lane.read_range(*keys.prefix_range(keys.QUEUE_ENTRY_PREFIX))
        finally:
            self._is_sweeping = False
        for limit_pk in sorted({str(row["limit"]) for row in rows}):
            self.wake(limit_pk)

    def close(self) -> None:
        """No further offers: they are the successor's."""
        self._closed = True

    def _look(self, limit: Key, *, reminds: bool = False) -> None:
        if self._closed:
            return
        queue = self._queues.setdefault(limit, Queue())
        if queue.under_way:
            queue.again = queue.again or not reminds  # It may have been read before what it was poked for.
            return
        queue.under_way, queue.again = True, False
        served = partial(self._served, limit)
        self._lane.add(ServeLimit(limit, self._lane.shard, queue, reminds, served))

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
        """Time has passed for admissions that a rate counted."""
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
