"""I1: what ended without a run ended with a reason, and the reason is true.

Each is checked against what users asked for and when, and against what producers announced: a program that never starts and a
ledger full of reasons is no fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.constraints import Waited, may_abort, waited
from tests.simulation.checks.evidence import may_be_empty
from tests.simulation.checks.overlap import ENDED_UNDER
from tests.simulation.checks.request_history import KEEPING, SKEW_MS
from tests.simulation.users.tick_schedules import opens_instances
from tests.simulation.world.observations import UPSTREAM
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.rows import keys
from tidegate_core.shard.events.evidence_log import FORGET
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS, served_deadline

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.checks.request_history import Step
    from tests.simulation.users.schedule_users import Life
    from tidegate_core.rows.ledger import LedgerRow
    from tidegate_core.rows.outage import Outage

ENDED_BY: Final[Mapping[str, str]] = {
    "superseded": "apply",
    "suspended": "suspend",
    "schedule_deleted": "delete",
    "upstream_deleted": "delete",
}
"""Reason of a cancelled occurrence, and the kind of request that ends it so."""


def check_dispositions(case: Case) -> Iterator[str]:
    for life in case.lives:
        rows = case.rows_of.get(life.name, [])
        by_job = waited(rows)
        for row in rows:
            problem = _problem(case, life, row, by_job[row.job_id])
            if problem is not None:
                yield f"I1: {row.job_id} of {life.name} is {row.disposition}/{row.reason}, and {problem}"
            if row.job_id not in case.found_by_id:
                yield f"I1: {row.job_id} of {life.name} has an entry that its id does not lead to"


def _problem(case: Case, life: Life, row: LedgerRow, job: Waited) -> str | None:
    """Returns what contradicts the entry of a job that waited so; or None."""
    definition = case.shape(life, row.version)
    match row.disposition, row.reason:
        case "launched", _:
            return None
        case ended if ended in ENDED_UNDER:
            # Whether that is true `overlap` checks. What runs is ended by what comes later, under a later version it may be.
            of = case.shapes(life) if ended == ("cancelled", "overlap") else [definition]
            fits = any(each.policy in ENDED_UNDER[ended] for each in of)
            return None if fits else f"its policy is {definition.policy}"
        case "cancelled", "superseded" | "suspended" | "schedule_deleted":
            by_request = _was_ended(case, life, row) or (
                row.reason == "suspended"
                and (
                    _was_shed(case, life, row, ("last", "none")) or case.wide.ended(row.namespace, row.nominal, row.at)
                )
            )
            return None if by_request else f"no {ENDED_BY[row.reason]} of then ended it"
        case "coalesced", "backlog":
            return None if _was_shed(case, life, row, ("coalesce",)) else "no resume of then merged it"
        case "cancelled", "by_request":
            return None if _was_cancelled(case, row) else "nobody asked for it then"
        case "skipped", "ran_recently" | "still_running":
            return None if may_abort(definition, row.reason) else "none of its constraints aborts"
        case "skipped", "concurrency":
            return None if definition.aborts else "its limits let it wait"
        case "skipped", "unresolved_template":
            return None if definition.keys and row.correlation is None else "all that it names is there"
        case "skipped", "nothing_new":
            return None if may_be_empty(definition.trigger, row) else "nothing asked for a job then"
        case "skipped", "open_instances":
            return None if opens_instances(definition) else "its ticks open none"
        case "skipped", "outage":
            return None if row.covered is not None else "it stands for no outage"
        case "cancelled" | "expired", "upstream_deleted":
            return None if _was_ended(case, life, row) else "nothing that it waits for was deleted then"
        case "expired", "constraint_timeout":
            return _constraint_problem(case, life, row, job)
        case "expired", "trigger_timeout":
            return _trigger_problem(case, life, row)
        case "expired", "evidence_expired":
            return _latch_problem(life, row)
        case _:
            return "nothing here may end so"


def _was_ended(case: Case, life: Life, row: LedgerRow) -> bool:
    """What a request ends ends after its record and before its receipt."""
    steps = case.steps(life)
    return any(
        (step.moves or _ends_the_rest(step, steps[:number]))
        and step.kind == ENDED_BY[row.reason]
        and step.asked.id.startswith(UPSTREAM) == (row.reason == "upstream_deleted")
        and row.version <= step.version
        and step.sent - SKEW_MS <= row.at <= step.done + SKEW_MS
        and not _keeps(case, step, row)
        for number, step in enumerate(steps)
    )


def _keeps(case: Case, step: Step, row: LedgerRow) -> bool:
    """Whether the step is an update that keeps due jobs, the row is of such a job, and no wide suspend ended the job (SEMANTICS 12.4)."""
    keeps_due = step.kind == "apply" and step.asked.document.get("on_update", "keep_due") in KEEPING
    return keeps_due and row.trigger == "time" and not case.wide.ended(row.namespace, row.nominal, row.at)


def _ends_the_rest(step: Step, before: Sequence[Step]) -> bool:
    """Whether it is a delete of what ended with its upstream, and was not through: nothing of it starts behind this answer either, and what
    is left ends by it (seed 36009541).
    """
    ending = next((each for each in reversed(before) if each.moves), None)
    is_ending = ending is not None and ending.asked.id.startswith(UPSTREAM) and step.sent <= ending.done
    return step.kind == "delete" and is_ending


def _was_shed(case: Case, life: Life, row: LedgerRow, backlogs: tuple[str, ...]) -> bool:
    """Whether a resume left it out of the backlog that it let go on."""
    return any(
        step.moves
        and step.kind == "resume"
        and step.asked.document.get("backlog") in backlogs
        and step.sent - SKEW_MS <= row.at <= step.done + SKEW_MS
        for step in case.steps(life)
    )


def _was_cancelled(case: Case, row: LedgerRow) -> bool:
    return any(
        row.job_id in (asked.document.get("run_id"), asked.document.get("job_id"))
        and asked.receipt is not None
        and asked.status == "cancelled"
        and asked.appended[0] - SKEW_MS <= row.at <= asked.acked_at + SKEW_MS
        for asked in case.world.requests.asked.values()
    )


def _constraint_problem(case: Case, life: Life, row: LedgerRow, job: Waited) -> str | None:
    late, since = case.shape(life, row.version).late, job.since
    timeouts = case.pending_timeouts(life, job.versions)
    if not timeouts:
        return "its schedule waits for a day"
    if late != "abort":
        return f"its pending time-out means {late}"
    timeout = min(timeouts, key=parse_duration)
    # While nobody served its shard it did not wait. Of a fact that went on when it was found again the last word counts.
    shard = keys.shard_of_run(row.job_id)
    facts = case.record.outages.get(shard, {})
    outages = {
        fact.begin: fact for fact in facts if fact.end <= row.at and not _is_of_a_successor(case, shard, fact, row.at)
    }
    deadline = served_deadline(since, since + parse_duration(timeout), list(outages.values())) - SKEW_MS
    if row.at < deadline:
        return f"it waited {row.at - since} ms, not {timeout} beside {len(outages)} outages"
    if row.detail is None and row.at < deadline + OUTAGE_GRACE_MS:
        return "nothing kept it from running"
    return None


def _is_of_a_successor(case: Case, shard: int, fact: Outage, at: int) -> bool:
    """Whether an owner of before the fact was put out about then, and may have decided by what was known before (seed 37000009)."""
    return fact.end > at - SKEW_MS and any(
        stint.begun < fact.end - SKEW_MS and stint.ended is not None and abs(stint.ended - at) <= SKEW_MS
        for stint in case.stints_of_shard(shard)
    )


def _was_overtaken(case: Case, row: LedgerRow, deadline: int) -> bool:
    """Whether an event that came too late by the brokers' clock ended it: the node's own clock may be behind.

    One that was counted: with the same value where there is one, else by the same schedule.
    """
    return row.at >= deadline - SKEW_MS and any(
        entry["kind"] != FORGET
        and row.correlation in (None, entry.get("partition"))
        and deadline <= entry["at"] <= row.at + SKEW_MS
        for entries in case.entries_of.get(row.name, {}).values()
        for entry in entries
    )


def _ignores_the_uncounted(step: Step) -> bool:
    """Evidence is kept, and what came before and was not counted yet is ignored (docs/schedules.md, Suspended)."""
    return step.moves and step.kind == "suspend" and step.mode in {"drain", "freeze"}


def _latch_problem(life: Life, row: LedgerRow) -> str | None:
    """Among others a latch holds as long as the time-out; what is read after that stands alone."""
    if life.definition.trigger["type"] not in {"all_of", "at_least"}:
        return "its latches hold for ever"
    timeout = life.definition.trigger["timeout"]
    if row.at < row.nominal + parse_duration(timeout) - SKEW_MS:
        return f"it held for {row.at - row.nominal} ms, not {timeout}"
    return None


def _trigger_problem(case: Case, life: Life, row: LedgerRow) -> str | None:
    """Such an entry's nominal is the append time of what came first."""
    timeout = life.definition.trigger.get("timeout")
    if timeout is None:
        return "its trigger waits for ever"
    deadline = row.nominal + parse_duration(timeout)
    if row.at < deadline and not _was_overtaken(case, row, deadline):
        return f"it waited {row.at - row.nominal} ms, not {timeout}"
    if case.wide.maybe(row.namespace, row.nominal - parse_duration(timeout), row.at):
        return None  # What came meanwhile was ignored.
    if any(
        _ignores_the_uncounted(step) and row.nominal <= step.done and step.sent <= row.at for step in case.steps(life)
    ):
        return None
    timely = {
        announced.dataset
        for announced in case.world.producers.announced.values()
        # Of two records of an event the one counts that is read first.
        if announced.partition == row.correlation
        and not announced.lost
        # A time-out waits for what the brokers tell of.
        and announced.untold_until <= deadline
        and row.nominal <= announced.appended[0]
        and announced.appended[-1] < deadline
        and any(
            segment.surely(row.nominal) and segment.surely(announced.appended[0]) for segment in case.segments(life)
        )
        and not case.was_left_halfway(announced)
    }
    if timely == {leaf.get("dataset") for leaf in life.definition.trigger["triggers"]}:
        return "all that it waited for came in time"
    return None
