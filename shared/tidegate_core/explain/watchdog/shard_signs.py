"""From items of the store to what is judged (`watchdog`): what to read of a shard, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tidegate_core.explain.watchdog.watchdog import ShardSigns
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.node_status import owner_of
from tidegate_core.rows.outage import outages_of
from tidegate_core.rows.run import Run
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, ScopeSuspensions, StoredSuspensions
from tidegate_core.rows.store_operations import Item, RangeRead
from tidegate_core.runs.run_lifecycle import BEFORE_GATE
from tidegate_core.shard.outages.outage_recorder import SERVED, sign_name
from tidegate_core.writes.fencing import whole
from tidegate_core.writes.partition_map import FIRST_VERSION

HEADS_MAX: Final = 50
"""Rows that are looked at: the earliest of a kind is among the first, but for other kinds and ended runs before it."""


def suspensions_of(item: Item | None) -> ScopeSuspensions:
    return NO_SUSPENSIONS if item is None else from_item(StoredSuspensions, item).controls


def heads(shard: int, progress: Item | None, now: int) -> tuple[RangeRead, RangeRead, RangeRead]:
    """What is due first: messages behind the delivery position, timer rows, and runs."""
    pk = keys.shard_pk(shard)
    until = f"{keys.instant_text(now)}#{keys.LAST}"
    slot, last = (0, "-") if progress is None else (whole(progress, "fired_slot"), str(progress["fired_id"]))
    behind = f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(slot)}#{last}#{keys.LAST}"
    return (
        RangeRead(pk, behind, max(behind, f"{keys.MESSAGE_TIMER_PREFIX}{until}"), limit=1),
        RangeRead(pk, keys.TIMER_PREFIX, f"{keys.TIMER_PREFIX}{until}", limit=HEADS_MAX),
        RangeRead(pk, *keys.prefix_range(keys.RUN_PREFIX), limit=HEADS_MAX),
    )


def shard_signs(
    shard: int,
    lease: Item | None,
    progress: Item | None,
    sign: Item | None,
    *,
    topic_partition: int,
    controls: ScopeSuspensions,
    messages: Sequence[Item] = (),
    timers: Sequence[Item] = (),
    runs: Sequence[Item] = (),
    unread_since: int | None = None,
) -> ShardSigns:
    """Returns what the items say of a shard.

    Args:
        shard: 0 to S-1.
        lease: Of the shard.
        progress: Likewise.
        sign: The item `NODE#` of the owner that the lease names.
        topic_partition: That the shard followed from under the lease's map.
        controls: All of them, of which it may not have heard yet.
        messages: As `heads` asks for them; none where they were not read.
        timers: Likewise.
        runs: Likewise.
        unread_since: See `ShardSigns`.
    """
    return ShardSigns(
        shard=shard,
        owner=owner_of(lease),
        epoch=0 if lease is None else whole(lease, "epoch"),
        served=served_until(lease, sign, topic_partition),
        message_due=next((int(str(row["sk"]).split("#")[1]) for row in messages), None),
        timer_due=_first_fire(timers, controls.last_resumed_at),
        start_by=_first_start(runs, progress),
        unread_since=unread_since,
        is_stopped=controls.suspend_anything,
    )


def served_until(lease: Item | None, sign: Item | None, topic_partition: int) -> int | None:
    """Returns the last sign of life for a topic partition: the owner's, or the one with which it took over.

    The newer of both: a process that comes back has one of its own from before, and gives the next within 10 s.
    """
    if lease is None:
        return None
    signs = None if sign is None else sign.get(SERVED)
    version = lease.get("map", FIRST_VERSION)
    assert isinstance(version, int)
    own = signs.get(sign_name(version, topic_partition)) if isinstance(signs, dict) else None
    before = lease.get("served", 0)  # 0: nobody has ever served it. Leases of earlier versions do not say.
    newest = max((each for each in (own, before) if isinstance(each, int)), default=0)
    return newest if newest > 0 else None


def _first_fire(timers: Iterable[Item], resumed_at: int) -> int | None:
    """Deadlines of evidence (`E`) are left out: they wait for what is still to be read, and stand still with their schedule.

    What came due in a wide suspend stays where it is until its owner has heard of the end.
    """
    fires = (str(row["sk"]).split("#") for row in timers)
    return next((max(int(parts[1]), resumed_at) for parts in fires if parts[2] == keys.NOMINAL_TIMER), None)


def _first_start(runs: Iterable[Item], progress: Item | None) -> int | None:
    """Time-outs of runs stand still in outages, so these come on top."""
    outages = outages_of(progress)
    due = [
        run.start_by + sum(max(0, outage.end - max(outage.begin, run.admitted_at)) for outage in outages)
        for run in (from_item(Run, item) for item in runs)
        if run.state in BEFORE_GATE and run.ended_at is None
    ]
    return min(due, default=None)
