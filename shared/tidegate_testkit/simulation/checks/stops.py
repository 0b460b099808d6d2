"""I7: once a suspend, delete, update or cancel is acknowledged, nothing of what it ended starts, but what it listed as running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tidegate_testkit.simulation.checks.history import steps_of

if TYPE_CHECKING:
    from tidegate_testkit.simulation.record import Body
    from tidegate_testkit.simulation.world import World


def check_stops(world: World) -> Iterator[str]:
    bodies: dict[str, list[Body]] = {}
    for body in world.cluster.record.bodies:
        bodies.setdefault(body.schedule, []).append(body)
    for user in world.users:
        mine = bodies.get(user.life.name, [])
        # What was past the gate at one request goes on, whatever follows.
        listed: set[str] = set()
        for step in steps_of(user.life):
            if step.asked.receipt is None or not step.moves:
                continue
            listed.update(step.asked.receipt.running)
            if step.asked.document["type"] == "schedule.resume":
                continue
            for body in mine:
                started_after = body.start > step.done and _generation(body) < step.generation
                if started_after and body.run_id not in listed:
                    kind = step.asked.document["type"]
                    yield f"I7: {body.run_id} of {user.life.name} started after {kind} {step.asked.id} was acknowledged"
    yield from _check_cancels(world)


def _check_cancels(world: World) -> Iterator[str]:
    for asked in world.requests.asked.values():
        kind = asked.document["type"]
        if kind not in {"run.cancel", "job.cancel"} or asked.receipt is None or asked.status != "cancelled":
            continue
        run = asked.document.get("run_id") or asked.document.get("job_id")
        for body in world.cluster.record.bodies:
            if body.run_id == run and body.start > asked.acked_at and run not in asked.receipt.running:
                yield f"I7: {run} started after {kind} {asked.id} was acknowledged"


def _generation(body: Body) -> int:
    job: Any = body.context["job"]
    return int(job["generation"])
