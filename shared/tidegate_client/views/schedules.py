"""Schedules and sources, and the effect that an apply would have."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View


class Suspension(View):
    """Suspension of a schedule.

    Attributes:
        since: When it began; a resume may name it (`suspended_at`), and then ends no other suspension.
        requested: Whether a user suspended it; otherwise the schedule began suspended and was never active.
        actor: Who suspended it.
        reason: Why.
    """

    since: Moment
    requested: bool
    actor: str | None = None
    reason: str | None = None


class ScheduleView(View):
    """Present state of a schedule.

    Attributes:
        status: `active` or `suspended`.
        mode: Mode of its suspension: `drop`, `drain`, `hold` or `freeze`.
        until: When it is resumed automatically.
        suspension: Begin, actor and reason of its suspension.
        version: Counts 1, 2, 3 ... within the name; also its ETag.
        next: Up to three future instants of a time trigger.
        fires_left: Remaining occurrences, if the trigger has `max_fires`.
        reason: Reason of the last request that changed it.
        gone: Deleted schedules that its trigger waited for, and now does without.
        spec: Definition in its canonical form.
        unreadable: Why the API process cannot read the definition, whose future instants it then omits; only for
            definitions of a newer release, otherwise None.
    """

    namespace: str
    name: str
    status: str
    mode: str | None = None
    until: Moment | None = None
    suspension: Suspension | None = None
    version: int
    next: list[Moment] = Field(default_factory=list)
    fires_left: int | None = None
    changed_at: Moment | None = None
    actor: str | None = None
    reason: str | None = None
    gone: list[str] = Field(default_factory=list)
    spec: dict[str, Any] = Field(default_factory=dict)
    unreadable: str | None = None


class SourceView(View):
    """Present state of a source.

    Attributes:
        status: `open`, or `opening` until its first offsets are known.
        version: Counts 1, 2, 3 ... within the name; also its ETag.
        spec: Definition in its canonical form.
    """

    namespace: str
    name: str
    status: str
    version: int
    topic: str
    spec: dict[str, Any] = Field(default_factory=dict)


class DryRun(View):
    """Effect that an apply would have now.

    Attributes:
        would: `create`, `replace` or `unchanged`.
        version: Present version of the schedule; None if it does not exist.
        changed: Top-level fields of the spec that differ from the present version.
        next: Up to three future instants of a time trigger.
        reading: Interpretation of a cron expression: dialect, zone, day rule, effect of clock changes; None for other
            triggers.
        warnings: Allowed settings that are rarely intended, each with its field and an alternative.
    """

    namespace: str
    name: str
    would: Literal["create", "replace", "unchanged"]
    version: int | None = None
    changed: list[str] = Field(default_factory=list)
    next: list[Moment] = Field(default_factory=list)
    reading: str | None = None
    warnings: list[str] = Field(default_factory=list)
