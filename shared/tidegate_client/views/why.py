"""What stands in the way, and what has become of something."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tidegate_client.views.view import Moment, View


class Verdict(View):
    """What one constraint says of a job that it holds back.

    Attributes:
        code: Reason code such as `window_closed` or `concurrency`.
        reason: The same in words; None where an older version wrote it.
        until: When its answer can change; None: only something that happens changes it.
        values: What was compared.
    """

    code: str
    reason: str | None = None
    until: Moment | None = None
    values: dict[str, Any] = Field(default_factory=dict)


class Unmet(View):
    """What a job waits for.

    Attributes:
        code: Reason code of the first of them.
        reason: All of them in words.
        at: When that was decided, or read; it stands while the codes do, and its numbers may have changed since.
        until: When it is looked at again, where that is known.
        verdicts: Each of them; empty where an older version wrote it.
    """

    code: str
    reason: str
    at: Moment | None = None
    until: Moment | None = None
    verdicts: list[Verdict] = Field(default_factory=list)


class WhyReason(View):
    """One reason why something runs or does not.

    Attributes:
        code: Of the closed list in `docs/reasons.md`.
        text: The same in words, with the values that were used.
        until: When it can change; None: only something that happens changes it, or nothing does.
        values: What was compared; `job` or `run` is what it is about.
    """

    code: str
    text: str
    until: Moment | None = None
    values: dict[str, Any] = Field(default_factory=dict)


class WhyView(View):
    """Why something runs or does not.

    Attributes:
        about: `schedule <namespace>/<name>`, `job <id>` or `run <id>`.
        at: The instant that was asked about; else when the question was answered, or when it was decided.
        local: The instant that was asked about on the trigger's own wall clock.
        next_change: The earliest instant at which one of the reasons can change.
    """

    about: str
    at: Moment
    local: str | None = None
    next_change: Moment | None = None
    reasons: list[WhyReason]
