"""What the outside world saw: programs' own marks, delivered messages, receipts. The checks judge by this."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.store_operations import Value
from tidegate_core.writes.partition_map import Cut

UNTIL = "until/"
"""The same: a suspension has ended by itself."""
UPSTREAM = "upstream/"
"""What the id of an answer begins with that nobody asked for: a schedule lost one that it waited for."""


@dataclass(slots=True)
class Body:
    """One execution of a program's body, as the program itself wrote it down.

    Attributes:
        driver: The process's own UUID.
        start, end: True time; `end` None while it runs.
        reported: The outcome whose report was acknowledged.
        outcome: What the body came to; None when it died.
        error_class: That it reports of its failure.
        endless: Whether it ends only when somebody ends it.
        was_ended: Whether the platform has asked it to end, and it did.
    """

    run_id: str
    attempt: int
    driver: str
    start: int
    args: tuple[str, ...]
    context: Mapping[str, Value]
    end: int | None = None
    outcome: str | None = None
    reported: bool = False
    error_class: str | None = None
    endless: bool = False
    was_ended: bool = False

    @property
    def schedule(self) -> str:
        return str(self._schedule["name"])

    @property
    def version(self) -> int:
        return int(self._schedule["version"])

    @property
    def _schedule(self) -> dict[str, Any]:
        schedule = self.context["schedule"]
        assert isinstance(schedule, dict)
        return dict(schedule)

    def manifest(self) -> list[dict[str, Any]]:
        rows = self.context["manifest"]
        assert isinstance(rows, list)
        return [dict(row) for row in rows if isinstance(row, dict)]


@dataclass(frozen=True, slots=True)
class Sent:
    """A guarded produce at the moment at which the guard was checked.

    Attributes:
        at: True time.
        clock: The node's checked clock.
        owner: Who sent it.
        stint: In which of its stints.
    """

    at: int
    clock: int
    owner: str
    stint: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message's record on its topic.

    Attributes:
        covered: First and last nominal of the occurrences that it stands for, after an outage.
    """

    at: int
    id: str
    message: str
    sent: Sent
    nominal: int
    covered: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ReceiptSeen:
    """A record on `tidegate.receipts`; from `at` on it is acknowledged."""

    at: int
    body: Mapping[str, Any]

    @property
    def status(self) -> str:
        return str(self.body["status"])

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(self.body.get("running") or ())


@dataclass(slots=True)
class Stint:
    """An actor at work on an ownership topic partition, from its assignment, or the fence that it got over, to its end.

    Attributes:
        map: Under which it held.
        serving: When it had recovered; None = never.
        events_from: When it read the events topic for the first time, as brokers had told of it some time before; None = never.
        ended: When it was dropped or fenced; None = it goes on.
        orderly: Whether it handed over as told.
    """

    name: str
    topic_partition: int
    node: str
    begun: int
    map: Cut
    serving: int | None = None
    events_from: int | None = None
    ended: int | None = None
    orderly: bool = False


@dataclass(slots=True)
class EvidenceSeen:
    """Evidence, as the store took it.

    Attributes:
        schedule: Whose it is; empty when its item was never there (it was opened and ended in one transaction).
        version: Of that schedule; 0 likewise.
        gone: True time at which its item went; None while it is there.
        chunks: JSON of its entries.
        taken: True time at which the store took each of the chunks.
    """

    schedule: str = ""
    version: int = 0
    gone: int | None = None
    chunks: list[str] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)


@dataclass(slots=True)
class UpstreamSeen:
    """A schedule that has lost one that it waited for, as the store took it.

    Attributes:
        schedule: Which one.
        upstream: The one that was deleted.
        at: True time at which its state moved.
        version: Its version then.
        ended: Whether it ended itself.
        done: True time at which all that was pending had ended.
        running: Runs past the gate.
    """

    schedule: str
    upstream: str
    at: int
    version: int
    ended: bool
    done: int | None = None
    running: tuple[str, ...] = ()


@dataclass(slots=True)
class EndSeen:
    """A suspension that has ended by itself, as the store took it.

    Attributes:
        schedule: Whose.
        until: When it was to end.
        at: True time at which its state moved.
        place: Among all answers, in the order in which the store took them (`Record.answered`).
        done: True time at which all that this asks for was done.
    """

    schedule: str
    until: int
    at: int
    place: int
    done: int | None = None


class Said(NamedTuple):
    """What a living node was told of an attempt.

    Attributes:
        at: True time.
        what: `taken`, `unreachable`, `in line` or `rejected` of its submission; what its launcher says of its program, which is gone.
    """

    at: int
    node: str
    attempt: int
    what: str


class PlatformVerdict(NamedTuple):
    """What the platform says was wrong with an attempt.

    Attributes:
        at: True time.
        is_rejected: It will never take it; else it took it, and the program ended before the gate.
    """

    at: int
    attempt: int
    error_class: str
    is_rejected: bool


class Author(NamedTuple):
    """Who sent a transaction, read from its token `<owner>/<topic partition>.<tenure>/<number>`."""

    owner: str
    tenure: int
    number: int

    @classmethod
    def of(cls, token: str) -> Author:
        owner, holding, number = token.split("/")
        return cls(owner, int(holding.split(".")[1]), int(number))

    def follows(self, raised: Author) -> bool:
        """Whether this was sent under the epoch that `raised` took."""
        return self.owner == raised.owner and (self.tenure, self.number) > (raised.tenure, raised.number)


@dataclass(slots=True)
class Try:
    """A message that its owner handed to the broker's client, at `at`, and when the broker refused it for good, if it did."""

    at: int
    id: str
    nominal: int
    refused: int | None = None


@dataclass(slots=True)
class Record:
    """All of it.

    Attributes:
        receipts: By request id, in the order of their records.
        unsure: Produces whose acknowledgement was lost, as (stint, id).
        tries: All tries to produce a message, by stint, in their order.
        tried: When a try to produce a message ended without an answer, by its id: it is sent again then.
        not_sent: Messages of which some produce was given up, for whatever reason; occurrences of schedules as `name@nominal`.
        refused: When the broker refused an occurrence of a schedule, by `name@nominal`.
        never_ran: Runs whose artefact the world ended before its body began.
        handed_over: Attempts that somebody wanted started, by run, with the true time.
        said: What became of that, as far as a living node heard it, by run, in its order.
        taken_on: When the platform took an attempt for the first time, whether or not it said so, by run and attempt.
        verdicts: What the platform says was wrong with attempts, by run and by its words.
        past_gate: Attempts whose start the store has taken, as (run, attempt), whether or not their program heard of it.
        asked_to_end: Attempts that somebody wanted ended, by run, with the true time.
        stints: By name.
        pauses: Nodes that were frozen, as (node, from, to).
        evidence: By its id.
        jobs: Of schedules with programs, and entries that stand for none, in the order in which they were made: the store took them so,
            and so were they decided within one transaction. Of each the version that made it.
        outages: Facts by shard, in the order in which they were written, and how many jobs had been made by then; a later one may go on with
            an earlier one.
        queues: When a shard's inbox became empty, and when not any more, as (true time, whether it is empty).
        passed: The durable delivery positions of each shard, as (true time, slot), in their order.
        read: The durable positions of topic partitions, by partition key, as (true time, next offset), in their order.
        handed: To whom a record of the requests topic was handed, by the partition key of its position and its offset, as (true time,
            owner, tenure).
        closed: Dead letters that a position had named as open and names no more, by its partition key and their offset, as (true
            time, whose write it was).
        inboxed: When what came through a shard's inbox was removed from it, by the origin of its record; None = not yet.
        holders: Who took the present epoch of a shard or of a topic partition's position, by partition key.
        taken: Everybody who did, with the true time, in their order.
        upstreams: What lost a schedule that it waited for, by the id of the stored answer.
        ends: Suspensions that have ended by themselves, by the id of the stored answer.
        answered: The places of requests in the order in which the store took their first answers, with which the states moved.
        failures: What must not happen at all (an actor that raises, a monitor that objects).
    """

    bodies: list[Body] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    receipts: dict[str, list[ReceiptSeen]] = field(default_factory=dict)
    unsure: set[tuple[str, str]] = field(default_factory=set)
    tries: defaultdict[str, list[Try]] = field(default_factory=lambda: defaultdict(list))
    tried: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    never_ran: set[str] = field(default_factory=set)
    handed_over: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    said: defaultdict[str, list[Said]] = field(default_factory=lambda: defaultdict(list))
    taken_on: dict[tuple[str, int], int] = field(default_factory=dict)
    verdicts: defaultdict[str, dict[str, PlatformVerdict]] = field(default_factory=lambda: defaultdict(dict))
    past_gate: set[tuple[str, int]] = field(default_factory=set)
    asked_to_end: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    not_sent: set[str] = field(default_factory=set)
    refused: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    stints: dict[str, Stint] = field(default_factory=dict)
    pauses: list[tuple[str, int, int]] = field(default_factory=list)
    evidence: defaultdict[str, EvidenceSeen] = field(default_factory=lambda: defaultdict(EvidenceSeen))
    jobs: dict[str, int] = field(default_factory=dict)
    outages: defaultdict[int, dict[Outage, int]] = field(default_factory=lambda: defaultdict(dict))
    queues: defaultdict[int, list[tuple[int, bool]]] = field(default_factory=lambda: defaultdict(list))
    passed: defaultdict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    read: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    handed: defaultdict[tuple[str, int], list[tuple[int, str, int]]] = field(default_factory=lambda: defaultdict(list))
    closed: dict[tuple[str, int], tuple[int, Author]] = field(default_factory=dict)
    inboxed: dict[str, int | None] = field(default_factory=dict)
    holders: dict[str, Author] = field(default_factory=dict)
    taken: defaultdict[str, list[tuple[int, Author]]] = field(default_factory=lambda: defaultdict(list))
    upstreams: dict[str, UpstreamSeen] = field(default_factory=dict)
    ends: dict[str, EndSeen] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def upstreams_of(self, schedule: str) -> list[UpstreamSeen]:
        return [each for each in self.upstreams.values() if each.schedule == schedule]

    def ends_of(self, schedule: str) -> list[EndSeen]:
        return [each for each in self.ends.values() if each.schedule == schedule]

    def receipt_appended(self, topic_partition: int, record: LogRecord) -> None:
        body = json.loads(record.value or b"{}")
        seen = ReceiptSeen(record.append_time, body)
        self.receipts.setdefault(str(body["request_id"]), []).append(seen)
