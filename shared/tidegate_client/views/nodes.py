"""Nodes and shards, for who keeps them running."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View


class NodeView(View):
    """A process of a node.

    Attributes:
        id: UUID of the process: a restart has another one.
        name: For people.
        state: `ready`; `not_ready` (see `unready`); `draining` and `drained`: somebody ordered it to hold nothing; `silent`: it has
            said nothing for 25 s and did not end well; `replaced`: likewise, and a process of its name began after it; `gone`: likewise,
            for 5 min, and no shard is its own any more. Who ends well is not listed at all.
        version: Of tidegate.
        tzdata: Of the zones by which it evaluates calendars.
        seen: When it last said so, by its own clock.
        clock_offset_ms: By how much that clock is certainly off the brokers'.
        topic_partitions: Ownership topic partitions that it holds.
        shards: How many follow from them.
        unready: Why it is not to be counted on.
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
        since: When what was promised was due.
        meaning: In words.
    """

    promise: str
    since: Moment
    meaning: str


class ShardView(View):
    """A shard.

    Attributes:
        topic_partition: Ownership topic partition that it follows from.
        owner: UUID of the process that its lease names; None: nobody has ever had it.
        node: That process's name, while it has a card.
        epoch: Of the lease; it only grows.
        served: Last sign of life of the owner for it.
        fired_through: Up to when all messages that were due are dealt with; None: there were none yet.
        requests_behind: Requests in its topic partition that are still to be read.
        events_behind: Events that are still to be read by its owner.
        controls_behind: It has not done all that the wide controls ask.
        stopped: The whole system is suspended.
        broken: What stands still, as the other nodes see it.
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
        in_use: Permits out.
    """

    schedule: str
    in_use: int


class ShardDetail(ShardView):
    """A shard with what lies in it; each count ends at 10,000.

    Attributes:
        backlog: Messages that are due and not delivered.
        fires_due: Occurrences that are due and of which nothing is made yet.
        jobs, runs: Open ones.
        inbox: Requests and events on their way to the owner.
        outbox: Ends of runs on their way to who waits for them.
        held: Messages that are held back by a suspend.
        limits: Of schedules whose permits are out.
        limits_left_out: Further ones that were not asked for.
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
