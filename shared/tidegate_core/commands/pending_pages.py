"""Which pages follow once a request has moved a schedule's state, until its answer is settled (SEMANTICS 10 to 12)."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_core.commands.end_pending import EndPending
from tidegate_core.commands.park_pending import ParkPending
from tidegate_core.commands.release_backlog import ReleasePending
from tidegate_core.commands.request_answer import Outcome
from tidegate_core.engine.decision import Decision
from tidegate_core.language.requests.requests import (
    ScheduleApply,
    ScheduleDelete,
    ScheduleRequest,
    ScheduleResume,
    ScheduleSuspend,
)
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.shard_cache import ShardCache

ENDED_BY: Mapping[type[ScheduleRequest], str] = {
    ScheduleApply: "superseded",
    ScheduleDelete: "schedule_deleted",
    ScheduleSuspend: "suspended",
}
"""Reason in the ledger of what a request ends."""
LEAVES_INDEX = frozenset(ENDED_BY)
"""Requests after which earlier generations hear nothing more."""


def page_of(
    request: ScheduleRequest, state: ScheduleState, memory: ShardCache, outcome: Outcome, most: int | None = None
) -> Decision:
    """Returns the next page, from what is stored alone: a successor goes on where a predecessor stopped.

    Args:
        request: What moved the state; a suspend names its mode.
        state: As it is now.
        memory: Of the shard.
        outcome: The answer so far.
        most: Things on the page, where one of the usual size is too large.
    """
    receipt = outcome.receipt
    assert receipt is not None
    if isinstance(request, ScheduleResume):
        return ReleasePending(request, receipt, memory, outcome, most)
    # A drop ends what it was about, also where another suspend has come meanwhile, by which the state goes now.
    if isinstance(request, ScheduleSuspend) and "drop" not in (state.mode, request.mode):
        return ParkPending(request, receipt, memory, outcome, most)
    keeps = (request.on_update or request.spec.on_update) if isinstance(request, ScheduleApply) else "restart"
    return EndPending(request, receipt, ENDED_BY[type(request)], memory, outcome, most, keeps)
