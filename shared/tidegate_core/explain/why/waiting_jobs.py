"""What a waiting job of a list waits for, from rows alone: its stored verdict, what stops its schedule, or the jobs before it.

Called by the job list, which shows up to 1,000 jobs and repeats no decision for them. `why` of one job repeats the decision and says more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile

from tidegate_core.explain.why.job_reasons import of_schedule
from tidegate_core.explain.why.reason import Reason, earliest
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.rows.job import Job
from tidegate_core.shard.schedule_state import oldest_kept_generation


def waits_for(facts: Facts, job: Job, line: Sequence[Job], *, has_all: bool) -> str:
    """Returns what a job in `pending_constraint` waits for, in the form of `Job.unmet`; there is always something.

    Args:
        facts: Of its schedule; jobs, definitions and runs are not needed.
        job: The job.
        line: Jobs of the schedule that wait, in the order of `in_line`, the job among them.
        has_all: Whether these are all open jobs of the shard.
    """
    reasons = of_schedule(facts)
    if job.unmet is None:
        before = _before(facts, job, line, has_all)
        return _text([*reasons, *before] or [_undecided(job)], facts.now)
    return job.unmet if not reasons else _with_verdict(reasons, job.unmet, facts.now)


def _undecided(job: Job) -> Reason:
    since = format_instant(job.satisfied_at)
    text = f"it waits since {since}, and no verdict of it is written yet"
    return Reason("being_decided", text, None, {"satisfied_at": since})


def _before(facts: Facts, job: Job, line: Sequence[Job], has_all: bool) -> list[Reason]:
    first_kept = oldest_kept_generation(facts.state)
    ahead = [each for each in takewhile(lambda each: each.id != job.id, line) if each.generation >= first_kept]
    if not ahead:
        return []
    number = f"{len(ahead)}" if has_all else f"at least {len(ahead)}"
    first = f"the first is {ahead[0].id}, since {format_instant(ahead[0].satisfied_at)}"
    values: dict[str, Compared] = {"ahead": len(ahead), "first": ahead[0].id}
    return [Reason("behind", f"{number} of the schedule's jobs are before it; {first}", None, values)]


def _text(reasons: list[Reason], now: Instant) -> str:
    told = {
        "at": now,
        "code": reasons[0].code,
        "codes": [each.code for each in reasons],
        "reason": "; ".join(each.text for each in reasons),
        "until": earliest(reasons),
        "verdicts": [
            {"code": each.code, "reason": each.text, "until": each.until, "values": dict(each.values)}
            for each in reasons
        ],
    }
    return json.dumps(told, sort_keys=True)


def _with_verdict(reasons: list[Reason], unmet: str, now: Instant) -> str:
    """What stops the schedule comes first: while it does nobody decides on the job, and its verdict grows old."""
    told, verdict = json.loads(_text(reasons, now)), json.loads(unmet)
    at = verdict.get("at")
    when = "" if at is None else f" at {format_instant(at)}"
    told["reason"] += f"; when it was decided on last{when}: {verdict['reason']}"
    told["codes"] += verdict.get("codes", [])
    told["verdicts"] += verdict.get("verdicts", [])
    return json.dumps(told, sort_keys=True)
