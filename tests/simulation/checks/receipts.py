"""Receipts: each request is answered as the requests before it demand, and repeats of it are answered alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.users.schedule_definitions import NAMESPACE

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.checks.request_history import Step
    from tests.simulation.world.observations import ReceiptSeen


REFUSED: Final = ("rejected", "conflict")
DONE: Final = ("accepted", "unchanged")


def check_answers(case: Case) -> Iterator[str]:
    for life in (*case.lives, *case.recurring):
        for step in case.steps(life):
            if step.asked.status not in _right_answers(case, step):
                yield (
                    f"answers: {life.name}: {step.kind} {step.asked.id} was answered {step.asked.status}, "
                    f"not {step.status}: {step.asked.receipt and dict(step.asked.receipt.body)}"
                )
                break  # What follows is judged by a state that is not the real one.
    for request_id, receipts in sorted(case.record.receipts.items()):
        asked = case.world.requests.asked.get(request_id)
        yield from _check_reasons(request_id, receipts)
        if asked is None or not str(asked.document["type"]).startswith(("schedule.", "control.", "source.")):
            continue
        statuses = sorted({receipt.status for receipt in receipts})
        if len(statuses) > 1:
            yield f"answers: {asked.document['type']} {request_id} was answered {' and '.join(statuses)}"


def _check_reasons(request_id: str, receipts: Iterable[ReceiptSeen]) -> Iterator[str]:
    """Who is refused hears what is wrong with the request, and nothing is wrong with one that is carried out."""
    for receipt in receipts:
        problems = [str(error.get("problem") or "") for error in receipt.body.get("errors") or ()]
        if receipt.status in REFUSED and not (problems and all(problems)):
            yield f"answers: {request_id} was {receipt.status}, and nobody said why: {dict(receipt.body)}"
        if receipt.status in DONE and problems:
            yield f"answers: {request_id} was {receipt.status}, with problems: {problems}"
        if any("internal error" in problem for problem in problems):
            yield f"answers: {request_id} met an error of ours: {problems}"


def _right_answers(case: Case, step: Step) -> set[str]:
    """A manual run is refused while its namespace is suspended, and while as many jobs wait as may."""
    begin, end = step.asked.sent_at, step.done
    if step.kind != "trigger" or step.status != "accepted":
        return {step.status}
    if case.wide.surely(NAMESPACE, begin, end):
        return {"rejected"}
    refused = case.wide.maybe(NAMESPACE, begin, end) or _said_to_be_full(step)
    return {"accepted", "rejected"} if refused else {"accepted"}


def _said_to_be_full(step: Step) -> bool:
    return step.asked.receipt is not None and "max_pending" in str(step.asked.receipt.body.get("errors"))
