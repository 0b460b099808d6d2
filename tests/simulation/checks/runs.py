"""I2: each attempt of a run starts its body at most once, and the ledger says what the programs themselves wrote down.

Whoever listens to `tidegate.runs` hears the same of each run's end: of its last attempt, be that once or several times.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Set
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.submissions import is_explained
from tests.simulation.world.cluster import RUNS

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.world.observations import Body
    from tidegate_core.rows.ledger import LedgerRow

ENDED: Final = frozenset({"succeeded", "failed", "killed", "timed_out"})
"""States of a run that is over."""
TRIED_AGAIN: Final = frozenset({"failed", "timed_out"})
"""What a program came to that its schedule may want another attempt after."""
COSTS_NO_TRY: Final = frozenset({"preempted", "quota"})
FOR_GOOD: Final = frozenset({"config", "auth", "user_code"})
"""Errors after which no schedule here wants another attempt (docs/schedules.md, Retries)."""


def check_runs(case: Case) -> Iterator[str]:
    for run_id, started in case.bodies_by_run.items():
        yield from _check_attempts(run_id, started, case.shape_of(started[0]).tries)
        if run_id not in case.rows_by_id:
            yield f"I1: {run_id} of {started[0].schedule} started and has no entry"
    to_end = asked_to_end(case)
    for row in case.rows:
        yield from _check_row(case, row, to_end)
    for body in case.record.bodies:
        if body.was_ended and body.run_id not in to_end:
            yield f"I1: {body.run_id} of {body.schedule} was told to end at {body.end}, and nobody had asked for it"
    yield from _check_told(case)


def asked_to_end(case: Case) -> set[str]:
    """Returns the runs whose end somebody has asked for, and those of schedules that may have."""
    requests = [each.document for each in case.world.requests.asked.values()]
    found = {str(each["run_id"]) for each in requests if each["type"] == "run.cancel"}
    # What comes later ends these itself.
    ending = {life.name for life in case.lives if any(each.policy == "cancel_running" for each in case.shapes(life))}
    ending |= {str(each["name"]) for each in requests if each.get("cancel_running")}
    return found | {row.job_id for row in case.rows if row.name in ending}


def _check_attempts(run_id: str, started: list[Body], tries: int) -> Iterator[str]:
    """A further attempt starts after one that failed, and only where its schedule wants one."""
    if sum(body.error_class not in COSTS_NO_TRY for body in started) > 1 + tries:
        yield f"I2: {run_id} of {started[0].schedule} started {len(started)} times"
    for before, body in pairwise(started):
        name = f"attempt {body.attempt} of {run_id} of {body.schedule}"
        if body.attempt <= before.attempt:
            yield f"I2: {name} started after attempt {before.attempt}"
        if before.end is None or before.end > body.start:
            yield f"I2: {name} started before attempt {before.attempt} had ended"
        if before.reported and before.outcome not in TRIED_AGAIN:
            yield f"I2: {name} started, and attempt {before.attempt} has {before.outcome}"
        if before.reported and before.error_class in FOR_GOOD:
            yield f"I2: {name} started, and attempt {before.attempt} has failed for good: {before.error_class}"


def _check_row(case: Case, row: LedgerRow, to_end: Set[str]) -> Iterator[str]:
    name = f"{row.job_id} of {row.name}"
    bodies, never_ran = case.bodies_by_run.get(row.job_id, []), case.record.never_ran
    is_of_no_body = is_explained(case, row) or _has_never_begun(case, row)
    if row.disposition != "launched":
        if bodies:
            yield f"I1: {name} is {row.disposition}/{row.reason} and its program started"
        return
    if row.started_at is None and bodies:
        yield f"I2: {name} started without having passed the gate"
    if row.started_at is not None and not bodies and row.job_id not in never_ran:
        yield f"I1: {name} passed the gate and its program never started"
    if row.started_at is None and row.job_id not in never_ran and not is_explained(case, row):
        yield f"I1: {name} is launched ({row.state}, {row.detail}), never passed the gate, and nothing ended its artefact"
    if row.state == "killed" and row.job_id not in to_end:
        yield f"I1: {name} was killed, and nobody had asked for it"
    for body in [] if is_of_no_body else bodies[-1:]:
        # What was asked to end, and reported its end as a failure, was killed: the signal came first, or as well.
        cancelled = row.job_id in to_end and row.state == "killed" and body.outcome == "failed"
        if body.reported and body.outcome != row.state and not cancelled:
            yield f"I1: {name} reported {body.outcome}, its entry says {row.state}"
        if body.endless and row.state not in {"killed", "failed"}:
            yield f"I1: {name} did not end by itself, its entry says {row.state}"


def _has_never_begun(case: Case, row: LedgerRow) -> bool:
    """Whether the entry is of an attempt behind the last one that began its body, and the world ended such a one.

    It ended before the gate, by the entry, or behind it: its start was carried out, and its program never heard so (seed 38007438).
    """
    last = max((body.attempt for body in case.bodies_by_run.get(row.job_id, [])), default=0)
    further = {attempt for _, attempt in case.record.handed_over[row.job_id] if attempt > last}
    if row.job_id not in case.record.never_ran or not further:
        return False
    if any((row.job_id, attempt) in case.record.past_gate for attempt in further):
        return row.state in {"failed", "killed"}
    return row.state == "failed" and (row.detail or "").endswith("before the start gate")


def _check_told(case: Case) -> Iterator[str]:
    told: defaultdict[str, set[str]] = defaultdict(set)
    for record in (record for log in case.world.cluster.broker.topics[RUNS].logs for record in log):
        document = json.loads(record.value or b"{}")
        if document["state"] in ENDED:
            told[document["run_id"]].add(document["state"])
    for row in case.rows:
        if row.disposition != "launched":
            continue
        states = sorted(told[row.job_id])
        if states != [row.state] and (states or case.world.at_rest):
            yield f"I1: the end of {row.job_id} of {row.name} is {row.state}, and was told as {states}"
