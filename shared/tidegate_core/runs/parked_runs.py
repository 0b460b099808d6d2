"""A run that has not passed the gate becomes a waiting job again: a suspend parks it, or an update binds it to the new version.

Its item is deleted, so that the gate refuses the attempt. Its next attempt has a number of its own, which costs no try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate_core.rows import keys
from tidegate_core.rows.effects import Cancel
from tidegate_core.rows.job import Job
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.run import Run
from tidegate_core.runs.run_completion import give_permit_back
from tidegate_core.shard.outages.outage_time import served_between
from tidegate_core.shard.run_history import reverse_admission
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT
from tidegate_core.writes.unit_of_work import UnitOfWork


def park_run(unit: UnitOfWork, run: Run, now: int, outages: Sequence[Outage] = ()) -> None:
    """Makes a run that has not passed the gate a waiting job again, with its permits given back.

    Args:
        unit: Of this decision.
        run: As it is stored.
        now: The present.
        outages: Facts of the shard: their time stands still for who waits anyhow (`pending_timeout`).
    """
    key = keys.job(unit.shard, run.id)
    job = unit.record(Job, key)
    assert job is not None
    for limit in run.limits:
        give_permit_back(unit, limit, run, now)
    reverse_admission(unit, run)
    unit.delete(run.key(unit.shard))
    parked = replace(
        job,
        state=PENDING_CONSTRAINT,
        attempt=run.attempt + 1,
        free_attempts=run.free_attempts + 1,
        # The time in which it was being launched is none in which it waited.
        deadline=job.deadline + served_between(run.admitted_at, now, outages),
        unmet=None,
    )
    unit.put(parked, key)
    unit.after(Cancel(run.id, run.attempt))
