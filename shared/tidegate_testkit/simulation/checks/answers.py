"""Receipts: each request is answered as the requests before it demand, and repeats of it are answered alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate_testkit.simulation.checks.case import Case


def check_answers(case: Case) -> Iterator[str]:
    for life in case.lives:
        for step in case.steps(life):
            if step.asked.status != step.status:
                yield (
                    f"answers: {life.name}: {step.kind} {step.asked.id} was answered {step.asked.status}, "
                    f"not {step.status}: {step.asked.receipt and dict(step.asked.receipt.body)}"
                )
                break  # What follows is judged by a state that is not the real one.
    for request_id, receipts in sorted(case.record.receipts.items()):
        asked = case.world.requests.asked.get(request_id)
        if asked is None or not str(asked.document["type"]).startswith("schedule."):
            continue
        statuses = sorted({receipt.status for receipt in receipts})
        if len(statuses) > 1:
            yield f"answers: {asked.document['type']} {request_id} was answered {' and '.join(statuses)}"
