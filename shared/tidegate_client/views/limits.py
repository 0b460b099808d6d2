"""Limits in use: holders of permits, waiting jobs, and stuck permits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View


class LimitSummary(View):
    """A limit that is in use or has waiting jobs.

    Attributes:
        id: `<namespace>/<scope>/<name>`; the name is a hash of the program, group or key, or the schedule's own.
        scope: Runs that the limit counts together.
        kind: Permits of a `rate` return by time, not at the end of a run.
        schedules: Some of the holding or waiting schedules, at most 5.
        in_use: Permits in use.
        most: Most permits, from the first waiting job's definition; None without waiting jobs.
        waiting: Jobs in its queue.
        held_since: When the oldest permit in use was granted; None for a rate.
        waiting_since: Since when the longest waiting job waits.
        next_change: When the next permit returns by time; None: at the end of a run.
        stuck: Runs that hold a permit and do not exist: a bug, or a manual change of the store.
    """

    id: str
    namespace: str
    scope: Literal["schedule", "program", "group", "key"]
    kind: Literal["concurrency", "rate"]
    schedules: list[str] = Field(default_factory=list)
    in_use: int = 0
    most: int | None = None
    waiting: int = 0
    held_since: Moment | None = None
    waiting_since: Moment | None = None
    next_change: Moment | None = None
    stuck: list[str] = Field(default_factory=list)


class HolderView(View):
    """A run that holds a permit.

    Attributes:
        since: When it was admitted; None for a stuck permit.
        stuck: Whether the run does not exist.
    """

    run: str
    schedule: str | None = None
    state: str | None = None
    since: Moment | None = None
    stuck: bool = False


class WaiterView(View):
    """A job in the queue.

    Attributes:
        schedule: Schedule of the job; None if the job has gone since.
        since: Since when it waits.
        offered: Whether a free permit is offered to it.
        aside: Whether it waits for another limit, so that later jobs may go first.
    """

    job: str
    schedule: str | None = None
    since: Moment
    offered: bool = False
    aside: bool = False


class LimitDetail(LimitSummary):
    """A limit with its holders, longest first, and its waiting jobs, in order.

    Attributes:
        holders_left_out: Number of further holders.
        waiters_left_out: Number of further waiting jobs.
    """

    holders: list[HolderView] = Field(default_factory=list)
    holders_left_out: int = 0
    waiters: list[WaiterView] = Field(default_factory=list)
    waiters_left_out: int = 0
