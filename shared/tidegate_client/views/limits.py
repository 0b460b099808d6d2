"""Limits in use: who holds permits, who waits, and what has gone wrong with one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View


class LimitSummary(View):
    """A limit that somebody holds or waits for.

    Attributes:
        id: `<namespace>/<scope>/<name>`; the name is a hash of the program, group or key, or the schedule's own.
        scope: Whose runs it counts together.
        kind: Of a `rate` permits come back by time, not with the end of a run.
        schedules: Some of those that hold or wait, at most 5.
        in_use: Permits out.
        most: How many there may be, as the first one who waits has it; None: nobody waits.
        waiting: Jobs in its queue.
        held_since: Since when the oldest permit is out; None of a rate.
        waiting_since: Since when the one waits who has waited longest.
        next_change: When the next permit comes back by time; None: when a run ends.
        stuck: Runs that hold a permit and are not there: a bug, or somebody changed the store by hand.
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
        since: When it was admitted; None of one that is stuck.
        stuck: There is no such run.
    """

    run: str
    schedule: str | None = None
    state: str | None = None
    since: Moment | None = None
    stuck: bool = False


class WaiterView(View):
    """A job in the queue.

    Attributes:
        schedule: None where the job has gone since.
        since: Since when it waits.
        offered: It has the word for a free permit.
        aside: It waits for another limit; who is behind it may go first.
    """

    job: str
    schedule: str | None = None
    since: Moment
    offered: bool = False
    aside: bool = False


class LimitDetail(LimitSummary):
    """A limit with who holds its permits, longest first, and who waits, in their order.

    Attributes:
        holders_left_out: Further ones that were not asked for.
        waiters_left_out: Further ones that were not asked for.
    """

    holders: list[HolderView] = Field(default_factory=list)
    holders_left_out: int = 0
    waiters: list[WaiterView] = Field(default_factory=list)
    waiters_left_out: int = 0
