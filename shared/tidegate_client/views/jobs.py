"""Jobs that have not ended, and what was gathered for them."""

from __future__ import annotations

from tidegate_client.views.view import Moment, View
from tidegate_client.views.why import Unmet


class EvidenceView(View):
    """Events counted so far.

    Attributes:
        counts: Distinct entries per leaf of the trigger.
        first_at: Append time of the first one.
        deadline: When the trigger times out, if it does.
    """

    counts: list[int]
    first_at: Moment
    deadline: Moment | None = None


class JobView(View):
    """An occurrence in the making.

    Attributes:
        id: Also the id of the run that comes of it.
        state: `pending_trigger`, `pending_constraint`, `pending_launch` (admitted, and its run has not passed the start
            gate), or `launched` until that run has ended.
        run_state: Of its run, once it was admitted.
        missing: What its trigger still waits for, in words.
        unmet: What it waits for: constraints, a suspend, or jobs before it. Each job in `pending_constraint` has it.
        deadline: When it expires, or its trigger times out.
        forced: What did not hold when the pending time-out had it admitted all the same (`pending_timeout_action: force`).
    """

    id: str
    namespace: str
    schedule: str
    version: int
    state: str
    run_state: str | None = None
    trigger: str
    nominal: Moment | None = None
    satisfied_at: Moment | None = None
    deadline: Moment | None = None
    correlation: str | None = None
    missing: str | None = None
    unmet: Unmet | None = None
    forced: Unmet | None = None
    evidence: EvidenceView | None = None
