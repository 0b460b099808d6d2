"""What the outside world saw: programs' own marks, delivered messages, receipts. The checks judge by this."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate_core.decisions.inputs import LogRecord
from tidegate_core.store.values import Value


@dataclass(slots=True)
class Body:
    """One execution of a program's body, as the program itself wrote it down.

    Attributes:
        driver: The process's own UUID.
        start, end: True time; `end` None while it runs.
        reported: The outcome whose report was acknowledged.
        outcome: What the body came to; None when it died.
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
        owner, tenure: Who sent it.
        unsure: Its acknowledgement was lost, so that a repeat by the same owner is right.
    """

    at: int
    clock: int
    owner: str
    tenure: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message's record on its topic."""

    at: int
    id: str
    message: str
    sent: Sent


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


@dataclass(frozen=True, slots=True)
class TenureEnd:
    """How an actor's tenure of a topic partition ended."""

    at: int
    orderly: bool


@dataclass(slots=True)
class Record:
    """All of it.

    Attributes:
        receipts: By request id, in the order of their records.
        unsure: Produces whose acknowledgement was lost, as (tenure, message).
        never_ran: Runs whose artefact the world ended before its body began.
        tenures: Ends by tenure name; lives that were fenced are disorderly ends as well.
        evidence: Schedule's name by evidence id.
        failures: What must not happen at all (an actor that raises, a monitor that objects).
    """

    bodies: list[Body] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    receipts: dict[str, list[ReceiptSeen]] = field(default_factory=dict)
    unsure: set[tuple[str, str]] = field(default_factory=set)
    never_ran: set[str] = field(default_factory=set)
    tenures: dict[str, list[TenureEnd]] = field(default_factory=dict)
    dead_letters: list[LogRecord] = field(default_factory=list)
    evidence: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def receipt_appended(self, topic_partition: int, record: LogRecord) -> None:
        body = json.loads(record.value or b"{}")
        seen = ReceiptSeen(record.append_time, body)
        self.receipts.setdefault(str(body["request_id"]), []).append(seen)
