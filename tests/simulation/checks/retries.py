"""SEMANTICS 8: a run whose tries are used up leaves a dead letter, and no run that ended otherwise does."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING

from tests.simulation.checks.runs import COSTS_NO_TRY, FOR_GOOD, TRIED_AGAIN, asked_to_end
from tests.simulation.checks.submissions import is_explained, is_given_up
from tests.simulation.world.cluster import RUNS_DLQ

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tidegate_core.rows.ledger import LedgerRow


def check_retries(case: Case) -> Iterator[str]:
    buried = {(record.key or b"").decode() for log in case.world.cluster.broker.topics[RUNS_DLQ].logs for record in log}
    for run_id in sorted(buried):
        states = {row.state for row in case.rows_by_id.get(run_id, [])}
        if len(states) != 1 or not states <= TRIED_AGAIN:
            yield f"dead letters: {run_id} has one, and is {sorted(map(str, states))}"
    for row in case.rows:
        if is_explained(case, row) and is_given_up(case, row) != (row.job_id in buried):
            yield f"dead letters: {row.job_id} of {row.name} is failed ({row.detail}), and has {'one' if row.job_id in buried else 'none'}"
    to_end = asked_to_end(case)
    for run_id, started in case.bodies_by_run.items():
        name, wanted = started[0].schedule, case.shape_of(started[0]).tries
        has_failed = any(
            row.state in TRIED_AGAIN and not is_explained(case, row) and not _was_to_end(row, to_end)
            for row in case.rows_by_id.get(run_id, [])
        )
        last = started[-1].error_class
        # A program that died without a word has used up a try as well.
        used_up = sum(body.error_class not in COSTS_NO_TRY for body in started) > wanted > 0
        if used_up and last not in COSTS_NO_TRY | FOR_GOOD and has_failed and run_id not in buried:
            yield f"dead letters: {run_id} of {name} has failed after {len(started)} attempts, and has none"
        if started[-1].reported and last in FOR_GOOD and run_id in buried:
            yield f"dead letters: {run_id} of {name} has failed for good ({last}), and has one"


def _was_to_end(row: LedgerRow, to_end: Set[str]) -> bool:
    """Whether somebody has asked for its end, and its program had timed out by then: nobody wants another attempt (seed 36011685). What failed
    counts as killed then.
    """
    return row.state == "timed_out" and row.job_id in to_end
