"""When a submission's requests are looked for in the store: once their receipts come on the topic no more."""

from __future__ import annotations

import asyncio

import pytest

from tidegate_api.requests.receipt_poller import FEW, quiet_at_s
from tidegate_api.requests.receipt_waiters import Expected, Waiter

QUIET_S = 2.0


async def _quiet_at_s(waiting: int, *, received_at_s: float | None, by_others_at_s: float | None) -> float:
    """Of a submission of which so many wait, and one has its answer: from the topic at this moment, or from the store."""
    waiters = [Waiter(Expected(str(number), "orders", None, None)) for number in range(waiting + 1)]
    waiters[0].answer_to_be.cancel()
    waiters[0].received_at_s = received_at_s
    return quiet_at_s(waiters, by_others_at_s, QUIET_S)


@pytest.mark.parametrize(
    ("waiting", "received_at_s", "by_others_at_s", "quiet_from_s"),
    [
        pytest.param(1, None, None, 0.0, id="nothing was heard by anybody"),
        pytest.param(1, 7.0, 9.0, 9.0, id="few wait: their own answers count"),
        pytest.param(FEW, None, 9.0, 0.0, id="few wait, and others have theirs: these may be lost"),
        pytest.param(FEW + 1, None, 9.0, 11.0, id="many wait: they are behind the others"),
        pytest.param(FEW + 1, 9.5, 9.0, 11.5, id="many wait, and their own came last"),
        pytest.param(FEW + 1, None, None, 0.0, id="many wait, and nobody has heard anything"),
    ],
)
def test_given_answers_on_the_topic_then_a_look_waits_until_it_is_quiet_for_those_that_wait(
    waiting: int, received_at_s: float | None, by_others_at_s: float | None, quiet_from_s: float
) -> None:
    found = asyncio.run(_quiet_at_s(waiting, received_at_s=received_at_s, by_others_at_s=by_others_at_s))
    assert found == quiet_from_s
