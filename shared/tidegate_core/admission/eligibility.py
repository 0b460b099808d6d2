"""Eligibility: all blockers of a waiting job, judged at one instant, and the text that reports them.

Called by `admit.py`, `permits.py` and `pending_timeout.py`. It reads through the unit of work and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegate_core.language.constraints import Constraint, LoadConstraint
from tidegate_core.language.constraints.constraint import Compared, Hold, LimitRef
from tidegate_core.language.constraints.facts import Facts, LoadKey, LoadSeen, Span
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.job_order import flexible_hold
from tidegate_core.shard.run_history import past_of
from tidegate_core.writes.limit_permits import key_text
from tidegate_core.writes.unit_of_work import UnitOfWork


class Blocker(NamedTuple):
    """One reason why a job may not start. The job waits for it, or is aborted by it, as the constraint says."""

    hold: Hold
    aborts: bool
    own: str | None = None
    """Key of the schedule's own limit, if that limit is the blocker."""
    shared: Key | None = None
    """Key of the shared limit, if that limit is the blocker. A shared limit has a queue."""
    is_rate: bool = False
    """Whether the blocker is a shared rate, whose permits come back by time."""
    load: LoadKey | None = None
    """Key of the load, if a load is the blocker."""
    behind: Key | None = None
    """Key of the shared limit, if the limit has room but other jobs have waited longer for it."""
    is_first_look: bool = False
    """Whether the job must be decided on at the blocker's instant, also with other blockers left. A constraint can
    abort the job from then on."""

    @property
    def is_shared(self) -> bool:
        return self.shared is not None

    @property
    def is_limit(self) -> bool:
        """Whether a run has to end before the blocker goes away. Such a blocker holds even after the pending time-out."""
        return (self.is_shared and not self.is_rate) or self.own is not None


def constraint_blockers(
    unit: UnitOfWork, spec: ScheduleSpec, job: Job, now: int, loads: Mapping[LoadKey, LoadSeen]
) -> list[Blocker]:
    """Returns the constraints that block the job, without the limits. A place in a flexible window counts as a
    constraint.
    """
    in_window = flexible_hold(spec, job, now)
    unmet: list[Blocker] = []
    if in_window is not None:
        may_abort = any(each.on_unmet == "abort" for each in spec.constraints)
        unmet.append(Blocker(in_window, aborts=False, is_first_look=may_abort))
    if not spec.constraints:
        return unmet
    facts = Facts(now, job.satisfied_at, past_of(unit, spec, job), loads)
    verdicts = [(each, each.check(facts)) for each in spec.constraints]
    return [*unmet, *(_unmet(constraint, verdict) for constraint, verdict in verdicts if isinstance(verdict, Hold))]


def _unmet(constraint: Constraint, hold: Hold) -> Blocker:
    load = constraint.key if isinstance(constraint, LoadConstraint) else None
    # A load is sampled only after a job waits for it. So an unknown load is no reason to end the job.
    aborts = constraint.on_unmet == "abort" and hold.reason_code != "load_unknown"
    return Blocker(hold, aborts, load=load)


def only_loads(unmet: Sequence[Blocker]) -> list[LoadKey]:
    """Returns the loads to sample, if loads and shared limits are the only blockers. With other blockers the sample
    would be old when needed.

    A job enters the queue of a shared limit only when no other blocker is left. So a load is sampled although the limit
    is full.
    """
    others = [each for each in unmet if each.load is None and not each.is_shared]
    return [] if others else [each.load for each in unmet if each.load is not None]


def unmet_own(unit: UnitOfWork, limit: LimitRef, key: Key, ahead: int, others: Sequence[str] = ()) -> list[Blocker]:
    """Returns the blocker if the schedule's own limit has no permit for the job. The `ahead` jobs before it get theirs
    first.

    Args:
        unit: Unit of work of this decision.
        limit: The schedule's own limit.
        key: Key of the limit's item.
        ahead: Number of jobs before this one.
        others: Open runs of the schedule that hold no permit of the limit.
    """
    own = unit.record(OwnLimit, key)
    holders = tuple(others) if own is None else (*others, *own.holders)
    if len(holders) + ahead < limit.max:
        return []
    return [Blocker(_full(limit, len(holders), holders, ahead=ahead), limit.on_unmet == "abort", own=key_text(key))]


def unmet_shared(state: SharedLimit, limit: LimitRef, key: Key, job: Job) -> list[Blocker]:
    """Returns the blocker if a limit that other shards also use has no permit for the job."""
    if state.lets_pass(job.id, limit.max):
        return []
    aborts, others_wait = limit.on_unmet == "abort", state.in_use < limit.max
    behind = key if others_wait else None
    if limit.span is not None:
        reached = _reached(limit, limit.span, state, others_wait)
        return [Blocker(reached, aborts, shared=key, is_rate=True, behind=behind)]
    full = _full(limit, state.in_use, state.holders, others_wait=others_wait)
    return [Blocker(full, aborts, shared=key, behind=behind)]


def _full(limit: LimitRef, in_use: int, holders: Iterable[str], *, ahead: int = 0, others_wait: bool = False) -> Hold:
    reason = f"{in_use} of {limit.max} runs of {limit.words()} are open"
    if in_use:
        reason += f": {', '.join(sorted(holders))}"
    if ahead and in_use < limit.max:
        jobs = "a job that waits goes" if ahead == 1 else f"{ahead} jobs that wait go"
        reason = f"{jobs} before it; {reason}"
    if others_wait:
        reason = f"others wait for {limit.words()} since longer; {reason}"
    values: dict[str, Compared] = {"scope": limit.scope, "name": limit.name, "max": limit.max, "in_use": in_use}
    return Hold(None, "concurrency", reason, values)


def _reached(limit: LimitRef, span: Span, state: SharedLimit, others_wait: bool) -> Hold:
    until = None if others_wait else state.falls_below(limit.max)
    reason = (
        f"{state.in_use} runs of {limit.words()} were admitted within {span.words()}, {limit.max} are allowed"
        f"{'' if until is None else f'; the next may start at {format_instant(until)}'}"
    )
    if others_wait:
        reason = f"others wait for the rate of {limit.words()} since longer; {reason}"
    values: dict[str, Compared] = {
        "scope": limit.scope,
        "name": limit.name,
        "max": limit.max,
        "per": span.per,
        "window": span.window,
        "admitted": state.in_use,
    }
    if until is not None:
        values["frees_at"] = format_instant(until)
    return Hold(until, "rate_reached", reason, values)


# -- reports -----------------------------------------------------------------------------------------------------------


def is_already_reported(text: str | None, unmet: Sequence[Blocker], now: int) -> bool:
    """Whether a stored text already names these blockers and the instant at which they can change.

    Numbers such as the holders of permits may differ: a write for each change would help no reader. The instant of a
    rate moves with each admission of other jobs. So the text of a rate is renewed only after the reported instant has
    passed.
    """
    if text is None:
        return False
    told: dict[str, object] = json.loads(text)
    if told.get("codes") != _codes(unmet):
        return False
    until = told.get("until")
    still_to_come = any(each.is_rate for each in unmet) and isinstance(until, int) and until > now
    return still_to_come or until == next_check_at(unmet)


def next_check_at(unmet: Sequence[Blocker]) -> int | None:
    """Returns the instant before which at least one blocker certainly remains. A blocker with `is_first_look` overrides
    the others.
    """
    counting = [each for each in unmet if each.is_first_look] or unmet
    return max((each.hold.until for each in counting if each.hold.until is not None), default=None)


def unmet_text(unmet: Sequence[Blocker], now: int) -> str:
    """Returns all blockers as JSON. `code` is the code of the first blocker, for readers that show only one.

    The text stays while the codes stay (`is_already_reported`), so its numbers grow old. `at` says when it was written.
    """
    codes = _codes(unmet)
    told = {
        "at": now,
        "code": codes[0],
        "codes": codes,
        "reason": "; ".join(each.hold.reason for each in unmet),
        "until": next_check_at(unmet),
        "verdicts": [_verdict(each.hold) for each in unmet],
    }
    return json.dumps(told, sort_keys=True)


def _verdict(hold: Hold) -> dict[str, object]:
    return {"code": hold.reason_code, "reason": hold.reason, "until": hold.until, "values": dict(hold.values)}


def _codes(unmet: Sequence[Blocker]) -> list[str]:
    return [each.hold.reason_code for each in unmet]
