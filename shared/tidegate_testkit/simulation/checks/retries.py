"""SEMANTICS 8: a run whose tries are used up leaves a dead letter, and no run that ended otherwise does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate_testkit.simulation.cluster import RUNS_DLQ

if TYPE_CHECKING:
    from tidegate_testkit.simulation.checks.case import Case


def check_retries(case: Case) -> Iterator[str]:
    buried = {(record.key or b"").decode() for log in case.world.cluster.broker.topics[RUNS_DLQ].logs for record in log}
    for run_id in sorted(buried):
        states = {row.state for row in case.rows_by_id.get(run_id, [])}
        if states != {"failed"}:
            yield f"dead letters: {run_id} has one, and is {sorted(map(str, states))}"
    for run_id, started in case.bodies_by_run.items():
        name, wanted = started[0].schedule, case.shape_of(started[0]).tries
        has_failed = any(row.state == "failed" for row in case.rows_by_id.get(run_id, []))
        # A program that died without a word has used up a try as well.
        if 0 < wanted < len(started) and has_failed and run_id not in buried:
            yield f"dead letters: {run_id} of {name} has failed after {len(started)} attempts, and has none"
