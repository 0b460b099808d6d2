"""A resume cuts the backlog page by page, and a page is as much as a transaction holds, whatever a job takes with it."""

from __future__ import annotations

import pytest

from tests.support.builders import NOW, a_job, a_request, a_schedule
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.commands.pending_pages import ReleasePending
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import ScheduleResume
from tidegate_core.rows.store_operations import ACTIONS_PER_TRANSACTION_MAX

JOBS = 5
PLACES = 40
"""In queues; a job that is parked has none, so these stand for whatever an end may take with it."""


def places(number: int) -> tuple[str, ...]:
    return tuple(f"SH#0001|W#{place:02d}#{number}" for place in range(PLACES))


@pytest.mark.parametrize(("backlog", "left"), [("none", 0), ("last", 1), ("coalesce", 1)])
def test_given_jobs_that_take_much_with_them_then_each_page_is_what_a_transaction_holds(
    backlog: str, left: int
) -> None:
    """Review finding: a page was six jobs, whatever each of them took."""
    jobs = [a_job(number, due=NOW + number, asked=places(number), satisfied_at=NOW - 1) for number in range(JOBS)]
    desk = DecisionHarness(a_schedule(shedding=backlog, changed_at=NOW), *jobs)
    request = ScheduleResume.model_validate(a_request("resume", backlog=backlog))
    receipt = Receipt.model_construct(
        request_id="q", status=ReceiptStatus.ACCEPTED, namespace="flights", name="nightly", at=NOW
    )
    outcome = Outcome("flights/nightly", receipt)
    for _ in range(JOBS):
        assert outcome.receipt is not None
        transaction = desk.decide(ReleasePending(request, outcome.receipt, desk.memory, outcome))
        assert transaction is not None
        assert len(transaction.actions) <= ACTIONS_PER_TRANSACTION_MAX
        if outcome.settled:
            break
    assert outcome.settled
    assert len(desk.memory.jobs) == left
    assert [job.stands_for for job in desk.memory.jobs.values()] == [JOBS if backlog == "coalesce" else 1] * left
    assert outcome.receipt is not None
    assert outcome.receipt.backlog == left
