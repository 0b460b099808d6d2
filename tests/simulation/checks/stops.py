"""I7: once a suspend, delete, update or cancel is acknowledged, nothing of what it ended starts, but what it listed as running.

Nor does, once a resume behind a `hold` is, what that left out of the backlog (docs/schedules.md, Resumed).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.simulation.checks.evidence import is_satisfied
from tests.simulation.checks.request_history import NEVER, SKEW_MS
from tidegate_core.rows import keys

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case, Entry
    from tests.simulation.checks.request_history import Step
    from tests.simulation.users.schedule_users import Life
    from tests.simulation.world.observations import Body
    from tidegate_core.rows.ledger import LedgerRow


def check_stops(case: Case) -> Iterator[str]:
    for life in case.lives:
        yield from _check_schedule(case, life, [body for body in case.record.bodies if body.schedule == life.name])
    yield from _check_cancels(case)


def _check_schedule(case: Case, life: Life, bodies: list[Body]) -> Iterator[str]:
    # What was past the gate at one request goes on, whatever follows.
    listed: set[str] = set()
    held: Step | None = None
    moving = [step for step in case.steps(life) if step.moves and step.asked.receipt is not None]
    admitted = {row.job_id: row.admitted_at for row in case.rows_of.get(life.name, []) if row.admitted_at is not None}
    for step, following in zip(moving, [*moving[1:], None][: len(moving)], strict=True):
        assert step.asked.receipt is not None
        listed.update(step.asked.receipt.running)
        parked_until = (NEVER if following is None else following.sent) if step.parks else 0
        for body in bodies:
            is_ended = _generation(body) < step.kept_from and step.kind != "resume"
            is_parked = body.start < parked_until
            goes_on = body.run_id in listed and not _is_retry(case, body, step.done)
            goes_on = goes_on or (_finishes_admitted(step) and admitted.get(body.run_id, NEVER) <= step.done)
            if body.start > step.done and (is_ended or is_parked) and not goes_on:
                yield f"I7: {body.run_id} of {life.name} started after {step.kind} {step.asked.id} was acknowledged"
        if step.kind == "resume":
            if held is not None:
                yield from _check_left_out(
                    case, life, step, held.until, [each for each in bodies if each.run_id not in listed]
                )
            held = None
        elif step.kind in {"suspend", "delete"}:
            held = step if step.mode == "hold" else None


def _finishes_admitted(step: Step) -> bool:
    """Whether runs that were admitted before an update start under the version that admitted them."""
    return step.kind == "apply" and step.asked.document.get("on_update") == "finish_admitted"


def _check_left_out(case: Case, life: Life, step: Step, until: int | None, bodies: list[Body]) -> Iterator[str]:
    """`none` leaves out all that waited, `last` and `coalesce` all of a time trigger but one. What is made up for is beside that."""
    backlog = step.asked.document.get("backlog")
    most = {"none": 0, "last": 1, "coalesce": 1}.get(str(backlog))
    if most is None:
        return
    through = min(step.sent, NEVER if until is None else until) - SKEW_MS
    began = {body.run_id: body.start for body in reversed(bodies)}
    rows = [
        row
        for run in began
        for row in case.rows_by_id.get(run, [])
        if began[run] > step.done and _made(case, life, row) < through
    ]
    started = [
        row.job_id for row in rows if not _was_missed(case, row) and (backlog == "none" or row.trigger == "time")
    ]
    if len(started) > most:
        yield f"I7: {started} of {life.name} started after {step.asked.id} was acknowledged, a resume with the backlog {backlog}"


def _made(case: Case, life: Life, row: LedgerRow) -> int:
    """Returns when its job was there at the latest: of events as soon as they were enough, for a tick may be told of long after its instant;
    of a past `at` not before what brought it; `NEVER` where that is not known.
    """
    if row.trigger == "time" and life.definition.trigger["type"] == "at":
        brought = [
            step.sent
            for step in case.steps(life)
            if _brings_anew(step) and step.version == case.record.jobs.get(row.job_id, row.version)
        ]
        return max([row.nominal, *brought])
    if row.trigger != "events":
        return row.nominal
    seen = case.record.evidence[row.job_id]
    entries: list[Entry] = []
    for taken, chunk in zip(seen.taken, seen.chunks, strict=True):
        entries += json.loads(chunk)
        if is_satisfied(case.shape(life, row.version).trigger, entries):
            return taken
    return NEVER


def _brings_anew(step: Step) -> bool:
    return step.kind == "apply" and step.moves and step.asked.document.get("on_update") != "carry"


def _was_missed(case: Case, row: LedgerRow) -> bool:
    return any(row.nominal in fact for fact in case.record.outages.get(keys.shard_of_run(row.job_id), {}))


def _check_cancels(case: Case) -> Iterator[str]:
    for asked in case.world.requests.asked.values():
        kind = asked.document["type"]
        # A job that it is too late for has become a run.
        final = {"run.cancel": ("cancelled", "too_late"), "job.cancel": ("cancelled",)}.get(kind, ())
        if asked.receipt is None or asked.status not in final:
            continue
        run = str(asked.document.get("run_id") or asked.document.get("job_id"))
        for body in case.bodies_by_run.get(run, []):
            goes_on = run in asked.receipt.running and not _is_retry(case, body, asked.acked_at)
            if body.start > asked.acked_at and not goes_on:
                yield f"I7: {run} started after {kind} {asked.id} was answered {asked.status}"


def _is_retry(case: Case, body: Body, instant: int) -> bool:
    """Whether it follows on an attempt that ran until after this instant."""
    earlier = [each for each in case.bodies_by_run[body.run_id] if each.attempt < body.attempt]
    return bool(earlier) and (earlier[-1].end or 0) > instant


def _generation(body: Body) -> int:
    job: Any = body.context["job"]
    return int(job["generation"])
