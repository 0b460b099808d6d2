"""Open jobs, and the evidence gathered for them."""

from __future__ import annotations

from tidegate_client.views.view import Moment, View
from tidegate_client.views.why import Unmet


class EvidenceView(View):
    """Events counted so far.

    Attributes:
        counts: Distinct entries per leaf of the trigger.
        first_at: Append time of the first entry.
        deadline: When the trigger times out, if it does.
    """

    counts: list[int]
    first_at: Moment
    deadline: Moment | None = None


class JobView(View):
    """An open job.

    Attributes:
        id: Also the id of its later run.
        state: `pending_trigger`, `pending_constraint`, `pending_launch` (admitted, and its run has not passed the start
            gate), or `launched` until that run has ended.
        run_state: State of its run, once it was admitted.
        missing: Evidence that its trigger still waits for, in words.
        unmet: Blockers of the job: constraints, a suspend, or earlier jobs. Each job in `pending_constraint` has it.
        deadline: When it expires, or its trigger times out.
        forced: Constraints that were not met when the pending time-out admitted it (`pending_timeout_action: force`).
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
