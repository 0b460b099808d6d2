"""Reasons and outcomes: why something runs or does not."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tidegate_client.views.view import Moment, View


class Verdict(View):
    """Answer of one constraint that holds a job back.

    Attributes:
        code: Reason code such as `window_closed` or `concurrency`.
        reason: Explanation in words; None if an older version wrote it.
        until: When the answer can change by time; None: only an event or action changes it.
        values: Compared values.
    """

    code: str
    reason: str | None = None
    until: Moment | None = None
    values: dict[str, Any] = Field(default_factory=dict)


class Unmet(View):
    """Blockers of a job.

    Attributes:
        code: Reason code of the first blocker.
        reason: All blockers in words.
        at: When that was decided, or read. It is valid while the codes are; its numbers may have changed since.
        until: When the job is checked again, if known.
        verdicts: All blockers; empty if an older version wrote it.
    """

    code: str
    reason: str
    at: Moment | None = None
    until: Moment | None = None
    verdicts: list[Verdict] = Field(default_factory=list)


class WhyReason(View):
    """One reason why something runs or does not.

    Attributes:
        code: Code of the closed list in `docs/reasons.md`.
        text: Explanation in words, with the compared values.
        until: When it can change by time; None: only an event or action changes it, or nothing does.
        values: Compared values; `job` or `run` names the item.
    """

    code: str
    text: str
    until: Moment | None = None
    values: dict[str, Any] = Field(default_factory=dict)


class WhyView(View):
    """Why something runs or does not.

    Attributes:
        about: `schedule <namespace>/<name>`, `job <id>` or `run <id>`.
        at: Instant that was asked about; otherwise the time of the answer, or of the decision.
        local: Instant that was asked about, on the trigger's own wall clock.
        next_change: Earliest instant at which one of the reasons can change.
    """

    about: str
    at: Moment
    local: str | None = None
    next_change: Moment | None = None
    reasons: list[WhyReason]
