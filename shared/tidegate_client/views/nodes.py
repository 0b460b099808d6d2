"""Nodes and shards, for operators."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View


class NodeView(View):
    """A process of a node.

    Attributes:
        id: UUID of the process: a restart has another one.
        name: Name for people.
        state: `ready`; `not_ready` (see `unready`); `draining` and `drained`: an operator drained it; `silent`: silent
            for 25 s without a clean end; `replaced`: the same, and a process of its name began after it; `gone`: the
            same for 5 min, and it owns no shard any more. A node that ended cleanly is not listed.
        version: Version of tidegate.
        tzdata: Version of the time zones by which it evaluates calendars.
        seen: When it last wrote its status, by its own clock.
        clock_offset_ms: Certain difference between that clock and the brokers'.
        topic_partitions: Ownership topic partitions assigned to it.
        shards: Number of shards that belong to these.
        unready: Reasons why it is not ready.
    """

    id: str
    name: str
    state: Literal["ready", "not_ready", "draining", "drained", "silent", "replaced", "gone"]
    version: str
    tzdata: str
    started: Moment
    seen: Moment
    clock_offset_ms: int = 0
    topic_partitions: list[int] = Field(default_factory=list)
    shards: int = 0
    unready: list[str] = Field(default_factory=list)


class Broken(View):
    """A promise that a shard does not keep.

    Attributes:
        promise: `owner_silent`, `messages_late`, `fires_late`, `starts_late`, `reading_stands`; newer ones may come.
        since: When the promised action was due.
        meaning: Explanation in words.
    """

    promise: str
    since: Moment
    meaning: str


class ShardView(View):
    """A shard.

    Attributes:
        topic_partition: Ownership topic partition that the shard belongs to.
        owner: UUID of the process that its lease names; None: it never had an owner.
        node: Name of that process, while its status is stored.
        epoch: Epoch of the lease; it only grows.
        served: Last heartbeat of the owner for it.
        fired_through: Time up to which all due messages are complete; None: there were none yet.
        requests_behind: Requests in its topic partition that are still to be read.
        events_behind: Events that its owner still has to read.
        controls_behind: Whether some scope suspensions are still to be applied.
        stopped: Whether the whole system is suspended.
        broken: Promises that are broken, as the other nodes see it.
    """

    shard: int
    topic_partition: int
    owner: str | None = None
    node: str | None = None
    epoch: int = 0
    served: Moment | None = None
    fired_through: Moment | None = None
    requests_behind: int | None = None
    events_behind: int | None = None
    controls_behind: bool = False
    stopped: bool = False
    broken: list[Broken] = Field(default_factory=list)


class LimitView(View):
    """A limit of one schedule.

    Attributes:
        schedule: `<namespace>/<name>`.
        in_use: Permits in use.
    """

    schedule: str
    in_use: int


class ShardDetail(ShardView):
    """A shard with its contents; each count ends at 10,000.

    Attributes:
        backlog: Messages that are due and not delivered.
        fires_due: Occurrences that are due and still to be created.
        jobs, runs: Open ones.
        inbox: Requests and events on their way to the owner.
        outbox: Ends of runs on their way to subscribers.
        held: Messages held by a suspend.
        limits: Limits of schedules with permits in use.
        limits_left_out: Number of further limits.
    """

    backlog: int = 0
    fires_due: int = 0
    jobs: int = 0
    runs: int = 0
    inbox: int = 0
    outbox: int = 0
    held: int = 0
    limits: list[LimitView] = Field(default_factory=list)
    limits_left_out: int = 0
