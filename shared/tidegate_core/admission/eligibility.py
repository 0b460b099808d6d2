"""What stands in a job's way: all of it, judged at one instant (SEMANTICS 7.1), and how that is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegate_core.language.constraints import Constraint, LoadConstraint
from tidegate_core.language.constraints.constraint import Compared, Facts, Hold, LimitRef
from tidegate_core.language.constraints.load_samples import LoadKey, LoadSeen
from tidegate_core.language.constraints.rate_window import Span
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
    """One thing that stands in the way: by its own constraint's word the job waits for it, or is aborted by it."""

    hold: Hold
    aborts: bool
    own: str | None = None
    """Key of the schedule's own limit, if it is that."""
    shared: Key | None = None
    """Key of the shared limit, if it is that: there is a queue before it."""
    is_rate: bool = False
    """It is a shared limit whose permits come back by time."""
    load: LoadKey | None = None
    """The load, if it is that."""
    behind: Key | None = None
    """Key of the shared limit, if that has room and others wait for it since longer."""
    is_first_look: bool = False
    """At its instant the job is looked at, whatever else stands in its way: from then on a constraint can abort it."""

    @property
    def is_shared(self) -> bool:
        return self.shared is not None

    @property
    def is_limit(self) -> bool:
        """Whether a run has to end for it: that is never ignored, whatever a pending time-out says."""
        return (self.is_shared and not self.is_rate) or self.own is not None


def constraint_blockers(
    unit: UnitOfWork, spec: ScheduleSpec, job: Job, now: int, loads: Mapping[LoadKey, LoadSeen]
) -> list[Blocker]:
    """Returns the constraints beside the limits that do not hold; a place in a flexible window is one of them."""
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
    # Nobody asks for a load before a job waits for it: that it is not known is no reason to end the job.
    aborts = constraint.on_unmet == "abort" and hold.reason_code != "load_unknown"
    return Blocker(hold, aborts, load=load)


def only_loads(unmet: Sequence[Blocker]) -> list[LoadKey]:
    """Returns the loads that are waited for, when nothing else but shared limits is: else a sample would be old when needed.

    Beside a shared limit a load has to be known: a job stands in its queue only when nothing else is in its way.
    """
    others = [each for each in unmet if each.load is None and not each.is_shared]
    return [] if others else [each.load for each in unmet if each.load is not None]


def unmet_own(unit: UnitOfWork, limit: LimitRef, key: Key, ahead: int, others: Sequence[str] = ()) -> list[Blocker]:
    """Asks for a permit of the schedule's own; those of the `ahead` jobs before this one are theirs.

    Args:
        unit: Of this decision.
        limit: The schedule's own.
        key: Of its item.
        ahead: Jobs.
        others: Open runs of the schedule that hold no permit of it.
    """
    own = unit.record(OwnLimit, key)
    holders = tuple(others) if own is None else (*others, *own.holders)
    if len(holders) + ahead < limit.max:
        return []
    return [Blocker(_full(limit, len(holders), holders, ahead=ahead), limit.on_unmet == "abort", own=key_text(key))]


def unmet_shared(state: SharedLimit, limit: LimitRef, key: Key, job: Job) -> list[Blocker]:
    """Asks for a permit of a limit that other shards take permits of as well."""
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
        f"{'' if until is None else f'; the next may go at {format_instant(until)}'}"
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


# -- how it is told -------------------------------------------------------------------------------------------------------


def is_already_reported(text: str | None, unmet: Sequence[Blocker], now: int) -> bool:
    """Whether a text says already what stands in the way, and when that can change.

    Numbers may have changed since, such as who holds the permits: a write for each of these would buy nobody anything. Before a
    rate the instant moves with each admission of others: it is told anew when the one that was told has passed.
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
    """Before the last of these instants one of them certainly still stands in the way; what has to be looked at earlier says so."""
    counting = [each for each in unmet if each.is_first_look] or unmet
    return max((each.hold.until for each in counting if each.hold.until is not None), default=None)


def unmet_text(unmet: Sequence[Blocker], now: int) -> str:
    """Returns all that stands in the way; `code` is the first one's, for readers who show one.

    It stays as it is while the codes do (`is_already_reported`), and its numbers grow old: `at` says since when it stands.
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
