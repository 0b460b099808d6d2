"""The permits that a job's admission takes: of which limits, whether they are free, and the taking itself (I4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tidegate_core.admission import overlap_rules
from tidegate_core.admission.eligibility import Blocker, unmet_own, unmet_shared
from tidegate_core.language.constraints.constraint import Claim, LimitRef
from tidegate_core.language.constraints.rate_window import Span
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
    """A limit that a job needs a permit of, and where its item lies."""

    limit: LimitRef
    key: Key


class GrantedPermits(NamedTuple):
    """What a run holds from its admission on.

    Attributes:
        limits: Its permits, as the run names them.
        queued: True when one of them was offered to it: somebody may wait behind it.
    """

    limits: tuple[str, ...]
    queued: bool | None


def limits_of(spec: ScheduleSpec, job: Job) -> tuple[LimitRef, ...]:
    """Returns the limits that a run of this job needs.

    Overlap acts at `concurrency.max` of the schedule's scope, 1 where there is none (SEMANTICS 4); `allow` knows no
    bound but the constraints.

    Raises:
        Unresolved: The key of a constraint names something that this occurrence does not have.
    """
    claim = Claim(spec.namespace, spec.name, spec.program, values_of(job))
    asked = [limit for each in spec.constraints if (limit := each.limit(claim)) is not None]
    if spec.overlap != "allow" and not any(not limit.is_shared for limit in asked):
        asked.append(_of_overlap(spec))
    return overlap_rules.limits_for(job, spec, _each_once(asked))


def own_limit(spec: ScheduleSpec) -> LimitRef:
    """Returns the limit on the schedule's own runs that its overlap judges by; not asked under `allow`."""
    named = [each.max for each in spec.constraints if each.type == "concurrency" and each.scope == "schedule"]
    return replace(_of_overlap(spec), max=named[0]) if named else _of_overlap(spec)


def _of_overlap(spec: ScheduleSpec) -> LimitRef:
    return LimitRef(scope="schedule", namespace=spec.namespace, name=spec.name, max=1)


def _each_once(asked: Sequence[LimitRef]) -> list[LimitRef]:
    """Two keys may come to the same text: of one limit a run holds one permit, and the narrower bound counts."""
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
    """Returns the limits that the job needs permits of, each with its item at hand and no older than this decision.

    Raises:
        Unresolved: As `limits_of`.
        NotAtHand: A shared limit is one that the schedule's last look did not ask for: what is known of it here another
            schedule may have read long ago.
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

    The `ahead` jobs of the schedule before this one wait for shared limits only: the schedule's own permits are theirs.

    Raises:
        TooLarge: A run that stands in the way ends, or is written, in this transaction.
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
    """Returns the open runs of a schedule that take no permit of its own. Raises TooLarge when one of them may end in this transaction."""
    runs = memory.without_permit(ref)
    unit.require_untouched(keys.run(unit.shard, run_id) for run_id in runs)
    return runs


def needs_of(unit: UnitOfWork, wanted: Sequence[RequiredLimit], job: Job, now: int) -> list[LimitRequest]:
    """Returns the shared ones, for the job's place in their queues."""
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
