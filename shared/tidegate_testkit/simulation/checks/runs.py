"""I2: a run's program starts its body at most once, and the ledger says what the programs themselves wrote down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate_testkit.simulation.checks.history import all_rows

if TYPE_CHECKING:
    from tidegate_core.records.run_plane import LedgerRow
    from tidegate_testkit.simulation.record import Body
    from tidegate_testkit.simulation.world import World

REASONED = frozenset({"skipped", "expired", "cancelled"})


def check_runs(world: World) -> Iterator[str]:
    bodies: dict[str, list[Body]] = {}
    for body in world.cluster.record.bodies:
        bodies.setdefault(body.run_id, []).append(body)
    for run_id, started in bodies.items():
        if len(started) > 1:
            yield f"I2: {run_id} of {started[0].schedule} started {len(started)} times"
    rows = {row.job_id: row for row in all_rows(world)}
    for run_id in bodies:
        if run_id not in rows:
            yield f"I1: {run_id} of {bodies[run_id][0].schedule} started and has no entry"
    for row in rows.values():
        yield from _check_row(row, bodies.get(row.job_id, []), world.cluster.record.never_ran, _asked_to_end(world))


def _asked_to_end(world: World) -> set[str]:
    """Runs that a user wanted cancelled."""
    asked = [each.document for each in world.requests.asked.values()]
    return {str(document["run_id"]) for document in asked if document["type"] == "run.cancel"}


def _check_row(row: LedgerRow, bodies: list[Body], never_ran: set[str], asked_to_end: set[str]) -> Iterator[str]:
    name = f"{row.job_id} of {row.name}"
    if row.disposition in REASONED and not row.reason:
        yield f"I1: {name} is {row.disposition} without a reason"
    if row.disposition != "launched":
        if bodies:
            yield f"I1: {name} is {row.disposition}/{row.reason} and its program started"
        return
    if row.started_at is None and bodies:
        yield f"I2: {name} started without having passed the gate"
    if row.started_at is not None and not bodies and row.job_id not in never_ran:
        yield f"I1: {name} passed the gate and its program never started"
    if row.started_at is None and row.job_id not in never_ran:
        yield f"I1: {name} is launched ({row.state}, {row.detail}), never passed the gate, and nothing ended its artefact"
    for body in bodies:
        # What was asked to end, and reported its end as a failure, was killed: the signal came first, or as well.
        cancelled = row.job_id in asked_to_end and row.state == "killed" and body.outcome == "failed"
        if body.reported and body.outcome != row.state and not cancelled:
            yield f"I1: {name} reported {body.outcome}, its entry says {row.state}"
