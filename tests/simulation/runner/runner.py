"""Runs a world: through its troubles until it is at rest, and on until the last delayed write has arrived."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.simulation.checks.case import ledger_rows
from tests.simulation.checks.quiescence import open_work
from tests.simulation.faults.small_limits import ALWAYS_TURNED, turned
from tests.simulation.runner.swarm import Swarm
from tests.simulation.users.source_users import RAREST
from tests.simulation.world.fault_schedule import HEAL_AFTER_MS
from tests.simulation.world.timeline import START
from tests.simulation.world.world import World

REST_MS_MAX: Final = 300_000
"""A healed world comes to rest within this, or something is stuck."""
CATCH_UP_MS_MAX: Final = 1_260_000
"""After hours without a node thousands of instants are walked, two at a time where that knob is turned, in a store that is slow.
So long it may also take until a thousand messages for one shard have gone through its inbox, where they go one at a time; and a run
before the gate is given up after ten minutes when its owner cannot see the host that has it."""
ONE_AT_A_TIME_MS_MAX: Final = 480_000
"""A source with many records may leave a schedule a hundred runs that go one at a time, of some 4 s each (379 s with seed 43001018)."""
LOOK_MS: Final = 1_000
QUIET_MS: Final = 8_000
"""Nothing to do for this long is rest: what was lost is looked for again within it, or with the next sweep."""
LATE_MS: Final = 2_000
"""After the last delayed write: whatever it would set off has happened by then."""


def run(world: World) -> World:
    """Runs a world until nothing can happen any more, or the hard cap is reached."""
    with freed_by_counts(), turned((*ALWAYS_TURNED, *world.cluster.swarm.knobs)):
        _run_until_rest(world)
        if world.at_rest:
            _run_until_nothing_is_late(world)
    return world


@contextmanager
def freed_by_counts() -> Iterator[None]:
    """Nobody looks for cycles while this is entered, at best for the whole life of a world: it has hardly any, and looking through
    all of it costs a sixth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def rest_ms_max(swarm: Swarm) -> int:
    """How long such a world may take to come to rest once it is healed, ms."""
    floods = any(burst.in_shard is not None for burst in swarm.bursts)
    if swarm.node.black_outs or floods or swarm.launcher.hosts:
        return CATCH_UP_MS_MAX
    return ONE_AT_A_TIME_MS_MAX if RAREST in swarm.traps else REST_MS_MAX


def _run_until_rest(world: World) -> None:
    timeline, swarm = world.cluster.timeline, world.cluster.swarm
    timeline.run(START + swarm.busy_ms + HEAL_AFTER_MS)
    last = timeline.now + rest_ms_max(swarm)
    quiet_since: int | None = None
    while timeline.now < last and not world.at_rest:
        timeline.run(timeline.now + LOOK_MS)
        if open_work(world):
            quiet_since = None
            continue
        quiet_since = timeline.now if quiet_since is None else quiet_since
        world.at_rest = timeline.now - quiet_since >= QUIET_MS
    world.ended_at = timeline.now


def _run_until_nothing_is_late(world: World) -> None:
    """Late and duplicated writes are still to come, up to a minute later: they must find nothing to change."""
    timeline, store = world.cluster.timeline, world.cluster.store
    if store.late_until <= timeline.now:
        return
    before = _figures(world)
    timeline.run(store.late_until + LATE_MS)
    changed = [f"{what}: {number:+d}" for what, number in sorted((_figures(world) - before).items())]
    world.came_late = (*changed, *open_work(world))


def _figures(world: World) -> Counter[str]:
    record = world.cluster.record
    return Counter(
        bodies=len(record.bodies),
        deliveries=len(record.deliveries),
        # What waits for its other half runs out of time whether or not anything comes late.
        ledger_rows=sum(1 for row in ledger_rows(world) if row.reason != "trigger_timeout"),
        receipts=sum(len(receipts) for receipts in record.receipts.values()),
    )
