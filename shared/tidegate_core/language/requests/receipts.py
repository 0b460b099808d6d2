"""Receipts: the results of requests, on the topic `tidegate.receipts` and as the API's answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from tidegate_core.language.values.document import Document, Whole
from tidegate_core.language.values.instants import InstantField
from tidegate_core.language.values.problems import MAX_PROBLEMS, Problem

MAX_NEXT = 3


class ReceiptStatus(StrEnum):
    """Result of a request. The API answers `pending` while there is no receipt."""

    ACCEPTED = "accepted"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    CONFLICT = "conflict"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    TOO_LATE = "too_late"
    NOT_FOUND = "not_found"
    PENDING = "pending"


class Discarded(Document):
    """Pending work that an update, delete or suspend discarded.

    Attributes:
        jobs: Ids of the cancelled jobs.
        evidence: Numbers of discarded entries of evidence, by correlation key; the key is empty without correlation.
        messages: Number of due occurrences of a recurring message that the broker had not acknowledged. They are not sent
            again, but a record in flight may still arrive.
    """

    EXAMPLE: ClassVar = {"jobs": ["0042-mfrggzdfmztwq2lkn5wg63tqoe"], "evidence": {"2013-01-01": 1}, "messages": 0}

    jobs: tuple[str, ...] = ()
    evidence: dict[str, Annotated[Whole, Field(ge=0)]] = Field(default_factory=dict)
    messages: Annotated[Whole, Field(ge=0)] = 0


class Receipt(Document):
    """The answer to a request. The record's key is the request's id.

    Attributes:
        version: Version of the schedule, source or scope suspensions after the request.
        next: Next nominal times, at most three.
        running: Ids of the runs past the start gate, which continue.
        backlog: Number of occurrences of the suspended span that a resume continues or creates; 1,000 means 1,000 or more.
        id: Id of the message, job or run that the request created.
        errors: Problems for which the request was refused.
        at: Instant of the decision.
    """

    EXAMPLE: ClassVar = {
        "request_id": "01JD0M2T9V3E8R7Q5K1N4B6C2A",
        "status": "accepted",
        "namespace": "flights",
        "name": "join-day",
        "version": 2,
        "next": ["2026-11-21T05:00:00Z"],
        "discarded": Discarded.EXAMPLE,
        "running": [],
        "backlog": None,
        "id": None,
        "errors": [],
        "at": "2026-11-20T22:00:00.120Z",
    }

    request_id: str
    status: ReceiptStatus
    namespace: str | None = None
    name: str | None = None
    version: Annotated[Whole, Field(ge=1)] | None = None
    next: tuple[InstantField, ...] = Field(default=(), max_length=MAX_NEXT)
    discarded: Discarded | None = None
    running: tuple[str, ...] = ()
    backlog: Annotated[Whole, Field(ge=0)] | None = None
    id: str | None = None
    errors: tuple[Problem, ...] = Field(default=(), max_length=MAX_PROBLEMS)
    at: InstantField

    def to_json(self) -> bytes:
        return self.model_dump_json().encode()
