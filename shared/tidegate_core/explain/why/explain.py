"""Entry of `why`: one function for each question that users ask.

The API calls them with the rows that it has read; a missing row raises `NotAtHand`, and the API reads it and calls again.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.commands.fire_route import route_of
from tidegate_core.commands.schedule_commands import first_future_instant
from tidegate_core.explain.why.admission_dry_run import Views, line_of
from tidegate_core.explain.why.job_reasons import asks_for_a_job, first_of, of_evidence, of_job, of_schedule
from tidegate_core.explain.why.occurrence_reasons import at_instant, max_fires, not_found_yet
from tidegate_core.explain.why.query_time import QueryTime, asked
from tidegate_core.explain.why.reason import Explanation, Reason, further
from tidegate_core.explain.why.run_reasons import of_ledger, of_run, why_it_ended
from tidegate_core.explain.why.schedule_reasons import being_made, whole_schedule
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.triggers.on_time.at import AtTrigger
from tidegate_core.language.triggers.preview import zone_meant, zone_of
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.language.values.states import RunState
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run
from tidegate_core.shard.schedule_state import fires

SHOWN_MAX = 3
"""Jobs, runs and evidence of one schedule that an explanation names, each with all its reasons. It counts the others by reason."""


def why_schedule(views: Views, facts: Facts) -> Explanation:
    """Returns why no more of the schedule runs now: its state, its open runs and jobs, and the events or instants that it waits for.

    Raises:
        NotAtHand: A row is missing: read it, and call again.
    """
    reasons = whole_schedule(facts)
    said = {each.code for each in reasons}
    runs = [of_run(run, facts.now) for run in facts.runs]
    reasons += [*runs[:SHOWN_MAX], *further(runs[SHOWN_MAX:], "runs", f"tidegate run list --schedule {facts.ref}")]
    line = line_of(views, facts)
    for job in line.jobs[:SHOWN_MAX]:
        # A reason of the whole schedule is given once.
        reasons += [each for each in of_job(views, facts, job, line) if each.code not in said]
    for_all = of_schedule(facts)[:1]
    firsts = [for_all[0] if for_all else first_of(job, line) for job in line.jobs[SHOWN_MAX:]]
    reasons += further(firsts, "jobs", f"tidegate job list --schedule {facts.ref}")
    reasons += _trigger(facts)
    reasons += _lately(facts)
    return Explanation(f"schedule {facts.ref}", facts.now, tuple(reasons))


def why_schedule_at(views: Views, facts: Facts, question: QueryTime) -> Explanation:
    """Returns the outcome of an instant, or why there is none.

    Args:
        views: See `Views`.
        facts: Facts with the ledger around the instant.
        question: Result of `question_of`.

    Raises:
        NotAtHand: A row is missing: read it, and call again.
    """
    reasons = tuple(at_instant(views, facts, question))
    return Explanation(f"schedule {facts.ref}", question.instants[0], reasons, question.local)


def question_of(facts: Facts, text: str) -> QueryTime:
    """Returns the time of a question. A local time counts on the wall clock of the version that was in force then. Raises ValueError."""
    zone = "UTC"
    read = asked(text, zone)
    for spec in (facts.spec, facts.spec_at(read.instants[0])):
        if spec is not None:
            zone = _zone_of(spec.trigger, facts.ref, read) or zone
    return asked(text, zone)


def _zone_of(trigger: TimeTrigger | EventTrigger, ref: str, read: QueryTime) -> str | None:
    """Returns the zone in which users read the time of a question; None: the trigger has no clock."""
    if read.wall is None:
        return zone_of(trigger, read.instants[0], ref)
    return zone_meant(trigger, read.wall, ref) or (trigger.own_zone if isinstance(trigger, TimeTrigger) else None)


def why_job(views: Views, facts: Facts, job: Job) -> Explanation:
    """Returns what an open job waits for. Raises NotAtHand."""
    return Explanation(f"job {job.id}", facts.now, tuple(of_job(views, facts, job)))


def why_gathering(facts: Facts, evidence_id: str) -> Explanation:
    """Returns what evidence needs to become a job."""
    reasons = [of_evidence(facts, each) for each in facts.evidence if each.id == evidence_id]
    return Explanation(f"job {evidence_id}", facts.now, (*whole_schedule(facts), *reasons))


def why_moving(job_id: str, now: Instant) -> Explanation:
    """Returns that a job changed at every read, so that no answer was possible."""
    text = "it moves on faster than it can be read: ask again"
    return Explanation(f"job {job_id}", now, (Reason("being_decided", text),))


def why_run(run: Run, now: Instant) -> Explanation:
    """Returns what an open run waits for."""
    return Explanation(f"run {run.id}", now, (of_run(run, now),))


def why_ended(row: LedgerRow, run: Run | None = None) -> Explanation:
    """Returns the outcome of a job or of its run; `run` is the ended run, until it expires."""
    what = "run" if row.state is not None else "job"
    reason = of_ledger(row)
    if run is not None:
        words, values = why_it_ended(run)
        reason = replace(reason, text=f"{reason.text}{words}", values={**reason.values, **values})
    return Explanation(f"{what} {row.job_id}", row.at, (reason,))


def _lately(facts: Facts) -> list[Reason]:
    """Returns how the newest occurrences ended, back to the last success. Ended occurrences leave no open row, so the ledger is read."""
    found: list[Reason] = []
    for row in facts.latest:
        if row.incarnation != facts.state.incarnation or row.state == RunState.SUCCEEDED:
            break
        found.append(of_ledger(row))
    return found


# -- reasons of the trigger -----------------------------------------------------------------------------------------------


def _trigger(facts: Facts) -> list[Reason]:
    spec = facts.spec
    if spec is None or not fires(facts.state):
        return []
    if isinstance(spec.trigger, EventTrigger):
        return _events(facts)
    trigger, state = spec.trigger, facts.state
    assert isinstance(trigger, TimeTrigger)
    following = route_of(spec).following(trigger, facts.ref, state, facts.now)
    if facts.controls.covers(state.namespace):
        shown = state.at_next(following)
        following = first_future_instant(trigger, facts.ref, shown, facts.now, Search.of_a_decision())
    if following.is_bound:
        return [not_found_yet(following)]
    if following.at is not None and following.at <= facts.now:
        return [being_made(following.at)]
    if following.at is not None:
        text = f"its next instant is {format_instant(following.at)}"
        return [Reason("not_due", text, following.at, {"nominal": format_instant(following.at)})]
    if trigger.fires_left(state.fires) == 0:
        return [max_fires(facts, spec)]
    once = (
        f"; why --at {format_instant(trigger.instant)} says what became of it" if isinstance(trigger, AtTrigger) else ""
    )
    return [Reason("no_more_instants", f"its trigger names no further instant{once}")]


def _events(facts: Facts) -> list[Reason]:
    gathering = [each for each in facts.evidence if not each.job]
    found = [of_evidence(facts, each) for each in gathering]
    if found:
        rest = further(found[SHOWN_MAX:], "jobs", f"tidegate job list --schedule {facts.ref}")
        return [*found[:SHOWN_MAX], *rest]
    since = format_instant(facts.state.activated_at)
    reminder, tick = facts.reminder, facts.state.next_tick
    if facts.controls.covers(facts.state.namespace):
        reminder = tick = None  # Both wait for the end of the scope suspension.
    text = f"no event is counted that waits for more (it counts from {since}){_last_counted(facts)}"
    if reminder is not None:
        text += f"; {asks_for_a_job(facts, reminder)}"
    if tick is not None:
        of_time = "the next instant that a time trigger of it names is"
        if facts.state.next_tick_is_bound:
            of_time = "no instant that a time trigger of it names was found before"
        text += f"; {of_time} {format_instant(tick)}"
    until = min((each for each in (reminder, tick) if each is not None), default=None)
    return [Reason("no_events", text, until, {"activated_at": since})]


def _last_counted(facts: Facts) -> str:
    """Returns the text about the job that took the last events, if it is open or among the newest entries."""
    of_events = [(job.satisfied_at, job.id) for job in facts.jobs if job.trigger == "events"]
    of_events += [
        (row.nominal, row.job_id)
        for row in facts.latest
        if row.trigger == "events" and row.incarnation == facts.state.incarnation
    ]
    if not of_events:
        return ""
    at, job_id = max(of_events)
    return f"; those that came last are of job {job_id}, {format_instant(at)}"
