"""Outcome of one instant, or the reason why there is none: from the ledger, the open jobs, and the rules of the trigger.

The order matters: stored rows come before the rules, and a rule of the trigger comes before a suspension.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.commands.schedule_commands import first_future_instant
from tidegate_core.explain.target_audit import audit_of
from tidegate_core.explain.why.admission_dry_run import Views
from tidegate_core.explain.why.job_reasons import of_evidence, of_job
from tidegate_core.explain.why.query_time import QueryTime, unnamed
from tidegate_core.explain.why.reason import Reason
from tidegate_core.explain.why.run_reasons import of_ledger
from tidegate_core.explain.why.schedule_reasons import suspended_at, whole_schedule
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.search import Next, Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.shard.schedule_state import fires, parsed

COUNTED_MAX = 1_000
"""Future occurrences that are walked to find the last one that `max_fires` allows."""


def at_instant(views: Views, facts: Facts, asked: QueryTime) -> list[Reason]:
    """Returns at least one reason for the outcome of the instant. Raises NotAtHand."""
    reasons = _at(views, facts, asked, asked.instants[0])
    for instant in asked.instants[1:]:
        # The clock shows the local time twice, and each pass has its own answer.
        reasons += [each for each in _at(views, facts, asked, instant) if each not in reasons]
    return reasons


def _at(views: Views, facts: Facts, asked: QueryTime, instant: Instant) -> list[Reason]:
    spec = facts.spec_at(instant)
    told = _rows_about(views, facts, instant)
    if spec is not None and isinstance(spec.trigger, TimeTrigger):
        return _of_time(views, facts, spec, asked, instant, told)
    if told:
        return told
    if spec is None:
        return _created_later(views, facts, instant) or _before_creation(facts)
    return _of_events(facts, instant)


def _rows_about(views: Views, facts: Facts, instant: Instant) -> list[Reason]:
    """Returns the reasons from rows about exactly this instant."""
    rows = [row for row in facts.ledger if row.nominal == instant]
    jobs = [job for job in facts.jobs if job.nominal == instant]
    return _of_records(views, facts, rows, jobs)


def _rows_covering(views: Views, facts: Facts, instant: Instant) -> list[Reason]:
    """Returns the reasons from rows about a later occurrence that covers this instant."""
    rows = [row for row in facts.ledger if row.nominal != instant and _stands_for(row, instant)]
    jobs = [job for job in facts.jobs if job.nominal != instant and _stands_for(job, instant)]
    return _of_records(views, facts, rows, jobs)


def _of_records(views: Views, facts: Facts, rows: Sequence[LedgerRow], jobs: Sequence[Job]) -> list[Reason]:
    return [*map(of_ledger, rows), *(reason for job in jobs for reason in of_job(views, facts, job))]


def _stands_for(record: LedgerRow | Job, instant: Instant) -> bool:
    begins = record.nominal if record.covered_from is None else record.covered_from
    return begins <= instant <= record.nominal


def _created_later(views: Views, facts: Facts, instant: Instant) -> list[Reason]:
    """Returns the reasons from an occurrence that covers an instant before the schedule existed: `on_create` may reach back."""
    first = parsed(facts.of_incarnation[0].spec) if facts.of_incarnation else None
    if first is None or not isinstance(first.trigger, TimeTrigger) or not first.trigger.names(instant, facts.ref):
        return []
    return _rows_covering(views, facts, instant)


def _before_creation(facts: Facts) -> list[Reason]:
    made = facts.of_incarnation[0].created_at if facts.of_incarnation else facts.state.changed_at
    return [Reason("not_there_yet", f"made at {format_instant(made)}", None, {"made": format_instant(made)})]


# -- time triggers --------------------------------------------------------------------------------------------------------


def _of_time(
    views: Views, facts: Facts, spec: ScheduleSpec, asked: QueryTime, instant: Instant, told: list[Reason]
) -> list[Reason]:
    trigger = spec.trigger
    assert isinstance(trigger, TimeTrigger)
    if asked.gap is not None:
        # The outcome of the instant after the gap answers for the local time only if the trigger shifts it there.
        rule = unnamed(trigger, facts.ref, asked, instant)
        shifted = any(each.code == "dst_shift" for each in rule)
        return [*rule, *(told or _due(facts, spec, instant))] if shifted else [*rule, *_confirming(told, rule)]
    if told and all(each.code.startswith("coalesced/") for each in told):
        others = _rows_covering(views, facts, instant)
        # The last job of a chain of merged jobs is the answer.
        return [*told, *([each for each in others if not each.code.startswith("coalesced/")] or others[-1:])]
    if told:
        return told
    if not trigger.names(instant, facts.ref):
        return unnamed(trigger, facts.ref, asked, instant)
    return _rows_covering(views, facts, instant) or _due(facts, spec, instant)


def _confirming(told: list[Reason], rule: list[Reason]) -> list[Reason]:
    return [each for each in told if each.code in {f"skipped/{reason.code}" for reason in rule}]


def _due(facts: Facts, spec: ScheduleSpec, instant: Instant) -> list[Reason]:
    """Returns why an instant that the trigger names has neither an entry nor a job."""
    state = facts.state
    if state.status == "deleted" and instant >= state.changed_at:
        return whole_schedule(facts)
    suspended = suspended_at(facts, instant)
    if suspended:
        return suspended
    if instant > state.fired_through and _has_fired_enough(facts, spec):
        return [max_fires(facts, spec)]
    if instant > facts.now:
        last = _last_before(facts, spec, instant)
        if last is not None:
            return [_max_fires_then(spec, last)]
        return [Reason("not_due", f"due at {format_instant(instant)}", instant, {"nominal": format_instant(instant)})]
    return audit_of(spec).why_no_trace(facts, instant)


def _has_fired_enough(facts: Facts, spec: ScheduleSpec) -> bool:
    trigger = spec.trigger
    return (
        isinstance(trigger, TimeTrigger)
        and facts.state.next_nominal is None
        and fires(facts.state)
        and trigger.fires_left(facts.state.fires) == 0
    )


def _last_before(facts: Facts, spec: ScheduleSpec, instant: Instant) -> Instant | None:
    """Returns the last occurrence that `max_fires` allows, if it is before the instant; None: it is not, or is too far away to count."""
    trigger, search = spec.trigger, Search.of_a_decision()
    assert isinstance(trigger, TimeTrigger)
    following = first_future_instant(trigger, facts.ref, facts.state, facts.now, search)
    left = trigger.fires_left(facts.state.fires)
    if left is None or left > COUNTED_MAX:
        return None
    for _ in range(left - 1):
        nominal = following.found
        if nominal is None or nominal >= instant:
            return None
        following = trigger.seek(nominal, facts.ref, search)
    nominal = following.found
    return nominal if nominal is not None and nominal < instant else None


def _max_fires_then(spec: ScheduleSpec, last: Instant) -> Reason:
    assert isinstance(spec.trigger, TimeTrigger)
    most, at = spec.trigger.max_fires or 0, format_instant(last)
    text = f"{most} occurrences will have been, the last one of {at}; an update counts anew"
    return Reason("max_fires_reached", text, None, {"max_fires": most, "last": at})


def max_fires(facts: Facts, spec: ScheduleSpec) -> Reason:
    assert isinstance(spec.trigger, TimeTrigger)
    most = spec.trigger.max_fires or 0
    last = format_instant(facts.state.fired_through)
    text = f"{most} occurrences have been, the last one of {last}; an update counts anew"
    return Reason("max_fires_reached", text, None, {"max_fires": most, "last": last})


def not_found_yet(following: Next) -> Reason:
    assert following.at is not None
    through = format_instant(following.at)
    text = f"it leaves out so much that no instant was found before {through}; then it is searched on"
    return Reason("not_found_yet", text, following.at, {"none_before": through})


# -- event triggers -------------------------------------------------------------------------------------------------------


def _of_events(facts: Facts, instant: Instant) -> list[Reason]:
    suspended = suspended_at(facts, instant)
    if suspended:
        return suspended
    gathering = [each for each in facts.evidence if not each.job and each.first_at <= instant]
    if gathering:
        return [of_evidence(facts, each) for each in gathering]
    values: dict[str, Compared] = {}
    nominals = sorted({row.nominal for row in facts.ledger} | {job.nominal for job in facts.jobs})
    for name, found in (
        ("previous", max((each for each in nominals if each < instant), default=None)),
        ("next", min((each for each in nominals if each > instant), default=None)),
    ):
        if found is not None:
            values[name] = format_instant(found)
    beside = "; ".join(f"{name} occurrence: {value}" for name, value in values.items())
    text = f"its trigger counts events and was not satisfied then{f'; {beside}' if beside else ''}"
    return [Reason("not_satisfied", text, None, values)]
