"""Reads of a shard for the watchdog, and the signs that it judges, computed from the items read."""

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
"""Rows that one read returns. The earliest row of a kind is among them, unless that many rows of other kinds or ended runs come first."""


def suspensions_of(item: Item | None) -> ScopeSuspensions:
    return NO_SUSPENSIONS if item is None else from_item(StoredSuspensions, item).controls


def heads(shard: int, progress: Item | None, now: int) -> tuple[RangeRead, RangeRead, RangeRead]:
    """Returns the reads of the first due rows: a message after the delivery position, timer rows, and runs."""
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
    """Returns the signs of a shard from its items.

    Args:
        shard: Number of the shard, 0 to S-1.
        lease: Lease of the shard.
        progress: Progress row of the shard.
        sign: Item `NODE#` of the owner that the lease names.
        topic_partition: Topic partition of the shard under the lease's partition map.
        controls: Present scope suspensions; they may not have reached the shard.
        messages: Rows of the first read of `heads`; empty: not read.
        timers: Rows of the second read.
        runs: Rows of the third read.
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
    """Returns the last instant at which a topic partition was served, by the owner's status row or by its take-over.

    The newer one counts. A process that comes back has an old status row, and writes the next within 10 s.
    """
    if lease is None:
        return None
    signs = None if sign is None else sign.get(SERVED)
    version = lease.get("map", FIRST_VERSION)
    assert isinstance(version, int)
    own = signs.get(sign_name(version, topic_partition)) if isinstance(signs, dict) else None
    before = lease.get("served", 0)  # 0: no node has served it yet. Leases of earlier versions do not say it.
    newest = max((each for each in (own, before) if isinstance(each, int)), default=0)
    return newest if newest > 0 else None


def _first_fire(timers: Iterable[Item], resumed_at: int) -> int | None:
    """Returns when the first timer row of a schedule was due.

    Deadlines of evidence (`E`) do not count: they wait for unread events, and stop while their schedule is suspended. Rows that came due in a
    scope suspension count from its end, because they stay until the owner knows that end.
    """
    fires = (str(row["sk"]).split("#") for row in timers)
    return next((max(int(parts[1]), resumed_at) for parts in fires if parts[2] == keys.NOMINAL_TIMER), None)


def _first_start(runs: Iterable[Item], progress: Item | None) -> int | None:
    """Returns the earliest instant by which a run had to pass the start gate. Time-outs stop during outages, so outages are added."""
    outages = outages_of(progress)
    due = [
        run.start_by + sum(max(0, outage.end - max(outage.begin, run.admitted_at)) for outage in outages)
        for run in (from_item(Run, item) for item in runs)
        if run.state in BEFORE_GATE and run.ended_at is None
    ]
    return min(due, default=None)
