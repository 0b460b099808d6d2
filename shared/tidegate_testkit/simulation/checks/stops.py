"""I7: once a suspend, delete, update or cancel is acknowledged, nothing of what it ended starts, but what it listed as running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tidegate_testkit.simulation.checks.history import NEVER

if TYPE_CHECKING:
    from tidegate_testkit.simulation.checks.case import Case
    from tidegate_testkit.simulation.record import Body
    from tidegate_testkit.simulation.schedules import Life


def check_stops(case: Case) -> Iterator[str]:
    for life in case.lives:
        yield from _check_schedule(case, life, [body for body in case.record.bodies if body.schedule == life.name])
    yield from _check_cancels(case)


def _check_schedule(case: Case, life: Life, bodies: list[Body]) -> Iterator[str]:
    # What was past the gate at one request goes on, whatever follows.
    listed: set[str] = set()
    moving = [step for step in case.steps(life) if step.moves and step.asked.receipt is not None]
    for step, following in zip(moving, [*moving[1:], None][: len(moving)], strict=True):
        assert step.asked.receipt is not None
        listed.update(step.asked.receipt.running)
        parked_until = (NEVER if following is None else following.sent) if step.parks else 0
        for body in bodies:
            is_ended = _generation(body) < step.kept_from and step.kind != "resume"
            is_parked = body.start < parked_until
            goes_on = body.run_id in listed and not _is_retry(case, body, step.done)
            if body.start > step.done and (is_ended or is_parked) and not goes_on:
                yield f"I7: {body.run_id} of {life.name} started after {step.kind} {step.asked.id} was acknowledged"


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
