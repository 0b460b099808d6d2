"""Permits of a job: which limits it needs, whether they have room, and the actions that take the permits (I4).

Called by `admit.py` and `overlap_enforcement.py`. Permits are taken only in the transaction that admits the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tidegate_core.admission import overlap_rules
from tidegate_core.admission.eligibility import Blocker, unmet_own, unmet_shared
from tidegate_core.language.constraints.constraint import Claim, LimitRef
from tidegate_core.language.constraints.facts import Span
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.launch_values import values_of
from tidegate_core.shard.limits.limit_queue_entry import LimitRequest, count_in_rate, schedule_idle_check
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.limit_permits import Permit, key_text, owner_shard_of, take_permit
from tidegate_core.writes.unit_of_work import NotAtHand, UnitOfWork


class RequiredLimit(NamedTuple):
    """A limit that a job needs a permit of, with the key of its item."""

    limit: LimitRef
    key: Key


class GrantedPermits(NamedTuple):
    """Permits that a run holds from its admission on.

    Attributes:
        limits: Permits, as the run's row names them.
        queued: True if a permit was offered to the job, so other jobs may wait in that queue.
    """

    limits: tuple[str, ...]
    queued: bool | None


def limits_of(spec: ScheduleSpec, job: Job) -> tuple[LimitRef, ...]:
    """Returns the limits that a run of this job needs.

    Overlap uses `concurrency.max` of the schedule's scope, or 1 without that constraint. Under `allow` only the
    constraints bound the runs.

    Raises:
        Unresolved: The key of a constraint names a value that this occurrence does not have.
    """
    claim = Claim(spec.namespace, spec.name, spec.program, values_of(job))
    asked = [limit for each in spec.constraints if (limit := each.limit(claim)) is not None]
    if spec.overlap != "allow" and not any(not limit.is_shared for limit in asked):
        asked.append(_of_overlap(spec))
    return overlap_rules.limits_for(job, spec, _each_once(asked))


def own_limit(spec: ScheduleSpec) -> LimitRef:
    """Returns the limit on the schedule's own runs that the overlap policy uses; not called under `allow`."""
    named = [each.max for each in spec.constraints if each.type == "concurrency" and each.scope == "schedule"]
    return replace(_of_overlap(spec), max=named[0]) if named else _of_overlap(spec)


def _of_overlap(spec: ScheduleSpec) -> LimitRef:
    return LimitRef(scope="schedule", namespace=spec.namespace, name=spec.name, max=1)


def _each_once(asked: Sequence[LimitRef]) -> list[LimitRef]:
    """Returns each limit once. Two keys may resolve to the same text; a run then holds one permit, and the narrower
    bound counts.
    """
    narrowest: dict[tuple[str, str, Span | None], LimitRef] = {}
    for limit in asked:
        known = narrowest.get((limit.scope, limit.name, limit.span))
        if known is None or limit.max < known.max:
            narrowest[(limit.scope, limit.name, limit.span)] = limit
    return list(narrowest.values())


def limit_key(shard: int, limit: LimitRef) -> Key:
    if limit.span is not None:
        return keys.shared_rate(limit.namespace, limit.scope, limit.name, limit.span.per, limit.span.zone)
    if limit.is_shared:
        return keys.shared_limit(limit.namespace, limit.scope, limit.name)
    return keys.own_limit(shard, limit.namespace, limit.name)


def required_limits(unit: UnitOfWork, memory: ShardCache, spec: ScheduleSpec, job: Job) -> list[RequiredLimit]:
    """Returns the limits that the job needs permits of, each with an item that is no older than this decision.

    Raises:
        Unresolved: As `limits_of`.
        NotAtHand: The schedule's last decision did not use a shared limit. The cached item may be old, read for another
            schedule.
    """
    wanted = [RequiredLimit(limit, limit_key(unit.shard, limit)) for limit in limits_of(spec, job)]
    unread = memory.check_limits(job.ref, [each.key for each in wanted if each.limit.is_shared])
    if unread:
        raise NotAtHand(keys=unread)
    return wanted


def unmet_permits(
    unit: UnitOfWork, memory: ShardCache, wanted: Sequence[RequiredLimit], job: Job, ahead: int, now: int
) -> list[Blocker]:
    """Returns the limits that have no permit for the job now.

    The `ahead` earlier jobs of the schedule wait for shared limits only. So they have first claim on the schedule's own
    permits.

    Raises:
        TooLarge: This transaction ends or writes a run that blocks the job.
    """
    unmet: list[Blocker] = []
    for limit, key in wanted:
        if not limit.is_shared:
            unmet += unmet_own(unit, limit, key, ahead, open_without_permit(unit, memory, job.ref))
        elif unmet_here := unmet_shared(_shared(unit, key).at(now), limit, key, job):
            unit.require_untouched([key])
            unmet += unmet_here
    return unmet


def open_without_permit(unit: UnitOfWork, memory: ShardCache, ref: str) -> tuple[str, ...]:
    """Returns the schedule's open runs that hold no permit of its own limit. Raises TooLarge if this transaction may
    end one of them.
    """
    runs = memory.without_permit(ref)
    unit.require_untouched(keys.run(unit.shard, run_id) for run_id in runs)
    return runs


def needs_of(unit: UnitOfWork, wanted: Sequence[RequiredLimit], job: Job, now: int) -> list[LimitRequest]:
    """Returns the shared limits, as requests for the job's places in their queues."""
    found: list[LimitRequest] = []
    for limit, key in wanted:
        if limit.is_shared:
            state = _shared(unit, key).at(now)
            turn = 0 if limit.span is None else -limit.span.per
            found.append(LimitRequest(turn, key, limit.max, job.id in state.offered, state.in_use < limit.max))
    return found


def take(unit: UnitOfWork, wanted: Sequence[RequiredLimit], job: Job, now: int, shards: int) -> GrantedPermits:
    """Takes all permits, in the transaction that admits the job."""
    held: list[str] = []
    queued: bool | None = None
    for limit, key in wanted:
        if not limit.is_shared:
            own = unit.record(OwnLimit, key) or OwnLimit(namespace=job.namespace, name=job.name)
            unit.put(replace(own, holders=(*own.holders, job.id)), key)
            held.append(key_text(key))
            continue
        offered = job.id in _shared(unit, key).offered
        queued = queued or offered or None
        if limit.span is not None:
            counted = count_in_rate(unit, limit, key, job, now)
            schedule_idle_check(unit, key, counted.until, owner_shard_of(key, shards))
            held.append(counted.text())
            continue
        schedule_idle_check(unit, key, now, owner_shard_of(key, shards))
        permit = Permit.of(key, job.id, limit.max)
        for action in take_permit(permit, limit.max, offered=offered):
            unit.apply(action)
        held.append(permit.text())
    return GrantedPermits(tuple(held), queued)


def _shared(unit: UnitOfWork, key: Key) -> SharedLimit:
    return SharedLimit.of(unit.item(key))
