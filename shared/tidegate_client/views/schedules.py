"""Schedules and sources, as they are and as they would be."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View


class Suspension(View):
    """How a schedule came to be suspended.

    Attributes:
        since: When it was; a resume may name it (`suspended_at`), and then ends no other one.
        requested: Whether somebody suspended it; it began so otherwise, and was never active.
        actor: Who did.
        reason: Why.
    """

    since: Moment
    requested: bool
    actor: str | None = None
    reason: str | None = None


class ScheduleView(View):
    """A schedule as it stands.

    Attributes:
        status: `active` or `suspended`.
        mode: How it is suspended: `drop`, `drain`, `hold` or `freeze`.
        until: When it is resumed by itself.
        suspension: While it is suspended: since when, by whom and why.
        version: Counts 1, 2, 3 ... within the name; also its ETag.
        next: Up to three coming instants of a time trigger.
        fires_left: Occurrences that are still to come, where the trigger has `max_fires`.
        reason: Of the last request that changed it.
        gone: Deleted schedules that its trigger waited for, and does without now.
        spec: The definition in its canonical form.
        unreadable: Why the API process cannot read the definition, of which it then shows no coming instants; None for all but those
            of a newer release.
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
    """A source as it stands.

    Attributes:
        status: `open`, or `opening` until its first offsets are known.
        version: Counts 1, 2, 3 ... within the name; also its ETag.
        spec: The definition in its canonical form.
    """

    namespace: str
    name: str
    status: str
    version: int
    topic: str
    spec: dict[str, Any] = Field(default_factory=dict)


class DryRun(View):
    """What an apply would do now.

    Attributes:
        would: `create`, `replace` or `unchanged`.
        version: Of the schedule as it stands, None when there is none.
        changed: Fields at the top of the spec that differ from the present version.
        next: Up to three coming instants of a time trigger.
        reading: How a cron expression was read: dialect, zone, day rule, what clock changes do; None for other triggers.
        warnings: What is allowed and hardly ever meant, each with its field and a way out.
    """

    namespace: str
    name: str
    would: Literal["create", "replace", "unchanged"]
    version: int | None = None
    changed: list[str] = Field(default_factory=list)
    next: list[Moment] = Field(default_factory=list)
    reading: str | None = None
    warnings: list[str] = Field(default_factory=list)
