"""I1 for what has not come to the gate: its entry says why, and that was so.

What the platform will never take is not handed to it again, and what it may take is asked for as long as a run has. Who is given up is
told to end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.request_history import SKEW_MS
from tests.support.ended_runs import ended_row
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import PASSING_ERRORS, Run
from tidegate_core.runs import run_lifecycle
from tidegate_core.shard.launch_values import SUBMIT_WITHIN_MS

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.world.observations import PlatformVerdict
    from tidegate_core.rows.ledger import LedgerRow

SUBMIT_TIMEOUT: Final = "submit_timeout"
START_TIMEOUT: Final = "start_timeout"
SUBMIT_WITHIN: Final = "shard.launch_values:SUBMIT_WITHIN_MS"
START_WITHIN: Final = "runs.run_lifecycle:START_WITHIN_MS"
SUBMIT_TRIES: Final = "runs.run_lifecycle:SUBMIT_TRIES_MAX"
SETTLED_MS: Final = 5_000
"""What is decided is written by then, where nothing is in its way; and what it was decided by was known that long before."""


def check_submissions(case: Case) -> Iterator[str]:
    for row in case.rows:
        problem = _problem(case, row) if is_explained(case, row) else None
        if problem is not None:
            yield f"I1: {row.job_id} of {row.name} is launched ({row.state}, {row.detail}), and {problem}"
    for run_id, verdicts in case.record.verdicts.items():
        for words, verdict in verdicts.items():
            if not verdict.is_rejected and verdict.error_class not in PASSING_ERRORS:
                yield from _check_ended_for_good(case, run_id, words, verdict)
            elif verdict.is_rejected and (run_id, verdict.attempt) not in case.record.taken_on:
                yield from _check_rejected(case, run_id, words, verdict)


def is_explained(case: Case, row: LedgerRow) -> bool:
    """Whether the entry names the platform's verdict, or a time-out before the gate, as its end; `check_submissions` says whether that is true."""
    names_it = row.detail in {SUBMIT_TIMEOUT, START_TIMEOUT} or row.detail in case.record.verdicts.get(row.job_id, {})
    return names_it and row.disposition == "launched" and row.state == "failed"


def is_given_up(case: Case, row: LedgerRow) -> bool:
    """Whether such an entry says that its submissions are used up, or the time for them: somebody is told of that as of tries that are."""
    verdict = case.record.verdicts.get(row.job_id, {}).get(row.detail or "")
    is_passing = verdict is not None and not verdict.is_rejected and verdict.error_class in PASSING_ERRORS
    return is_passing or row.detail in {SUBMIT_TIMEOUT, START_TIMEOUT}


def _problem(case: Case, row: LedgerRow) -> str | None:
    """Returns what contradicts the end that the entry names, or None."""
    run = _ended(case, row.job_id)
    if any(body.attempt == run.attempt for body in case.bodies_by_run.get(run.id, [])):
        return f"attempt {run.attempt} of it has started"
    if row.detail == SUBMIT_TIMEOUT:
        return _submission_problem(case, row, run)
    if row.detail == START_TIMEOUT:
        return _start_problem(case, row, run)
    verdict = case.record.verdicts[run.id][row.detail or ""]
    tried = {attempt for _, attempt in case.record.handed_over[run.id]}
    if verdict.attempt != run.attempt:
        return f"that was said of attempt {verdict.attempt}, and {run.attempt} is its last one"
    if is_given_up(case, row) and len(tried) < case.limit(SUBMIT_TRIES, run_lifecycle.SUBMIT_TRIES_MAX):
        return f"only attempts {sorted(tried)} were made"
    return None


def _submission_problem(case: Case, row: LedgerRow, run: Run) -> str | None:
    waited = row.at - max(run.admitted_at, run.not_before)
    if waited < case.limit(SUBMIT_WITHIN, SUBMIT_WITHIN_MS) - SKEW_MS:
        return f"its launcher was asked for {waited} ms"
    said = [each for each in case.record.said[run.id] if each.attempt == run.attempt and each.at <= row.at]
    if not said or said[-1].what != "in line":
        return None
    begin = said[-1].at
    if row.at < begin + SETTLED_MS + case.queued_ms:
        return None
    if case.node_serving(keys.shard_of_run(run.id), begin, row.at) == said[-1].node:
        return f"its node {said[-1].node} has kept it from the launcher since {begin}"
    return None


def _start_problem(case: Case, row: LedgerRow, run: Run) -> str | None:
    taken = case.record.taken_on.get((run.id, run.attempt))
    if taken is None:
        return "the platform has never taken it"
    if row.at < taken + case.limit(START_WITHIN, run_lifecycle.START_WITHIN_MS) - SKEW_MS:
        return f"the platform had it for {row.at - taken} ms"
    shard = keys.shard_of_run(run.id)
    settled = case.lane_had(shard, row.at, SETTLED_MS + case.queued_ms)
    was_told = any(
        attempt == run.attempt and at >= row.at - SKEW_MS for at, attempt in case.record.asked_to_end[run.id]
    )
    if not was_told and settled < case.world.ended_at and case.is_served(shard, row.at - SKEW_MS, settled):
        return "nobody has asked its program to end"
    return None


def _check_rejected(case: Case, run_id: str, words: str, verdict: PlatformVerdict) -> Iterator[str]:
    """Of an attempt that the platform has never taken, and never will."""
    name = f"attempt {verdict.attempt} of {run_id}, which will never be taken,"
    if any(body.attempt == verdict.attempt for body in case.bodies_by_run.get(run_id, [])):
        yield f"I2: {name} has started"
    rows = case.rows_by_id.get(run_id, [])
    if any(attempt > verdict.attempt for _, attempt in case.record.handed_over[run_id]):
        if not any(_may_be_parked(case, row, verdict.attempt) for row in rows):
            yield f"I1: {name} was followed by another one"
        return
    for row in rows:
        has_run_before = "; not tried again: " in (row.detail or "")
        is_told_so = row.detail == words or (row.detail == SUBMIT_TIMEOUT and not _was_heard(case, row, verdict))
        if row.disposition == "launched" and not has_run_before and not is_told_so:
            yield f"I1: {name} is {row.state} ({row.detail})"
    if not rows and case.world.at_rest:
        yield f"I1: {name} has no entry"


def _check_ended_for_good(case: Case, run_id: str, words: str, verdict: PlatformVerdict) -> Iterator[str]:
    """Of a program that has ended before the gate, and would do so again: whoever hears it makes no further attempt."""
    if any(body.attempt == verdict.attempt for body in case.bodies_by_run.get(run_id, [])):
        return  # The platform has started it again.
    if (run_id, verdict.attempt) in case.record.past_gate:
        return  # A start of it came late and was carried out: it has passed, and its schedule's `retry` says what follows (seed 35000171).
    heard = [each for each in case.record.said[run_id] if each.what == words]
    later = [at for at, attempt in case.record.handed_over[run_id] if attempt > verdict.attempt]
    if not heard or not later or case.node_serving(keys.shard_of_run(run_id), heard[0].at, min(later)) != heard[0].node:
        return
    if not any(_may_be_parked(case, row, verdict.attempt) for row in case.rows_by_id.get(run_id, [])):
        yield f"I1: attempt {verdict.attempt} of {run_id} ended before the gate ({words}), and was followed by another one"


def _was_heard(case: Case, row: LedgerRow, verdict: PlatformVerdict) -> bool:
    """Whether a node had heard it long before the entry was made, and had the shard for as long as it takes to write it down: one that fell
    first has told nobody, and its successor's launcher may have said so in the same moment as the run's time was over (seed 36008165).
    """
    shard = keys.shard_of_run(row.job_id)
    for said in case.record.said[row.job_id]:
        if said.what == "rejected" and said.attempt == verdict.attempt:
            settled = case.lane_had(shard, said.at, SETTLED_MS + case.queued_ms)
            if settled < row.at and case.node_serving(shard, said.at, settled) == said.node:
                return True
    return False


def _may_be_parked(case: Case, row: LedgerRow, attempt: int) -> bool:
    """Whether its schedule may have taken the run back since that attempt was handed over: it is launched anew, with another one.

    An artefact that is on its way then starts all the same, and what the platform says of it comes behind that (seed 35003167).
    """
    since = min(at for at, each in case.record.handed_over[row.job_id] if each == attempt)
    steps = [step for life in case.lives if life.name == row.name for step in case.steps(life)]
    return any(step.takes_back and step.done >= since - SKEW_MS for step in steps)


def _ended(case: Case, run_id: str) -> Run:
    item = ended_row(case.world.cluster.store.memory.look, run_id)
    assert item is not None
    return from_item(Run, item)
