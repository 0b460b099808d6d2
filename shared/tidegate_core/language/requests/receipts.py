"""Receipts: what became of a request, on `tidegate.receipts` and as the API's answer (SEMANTICS 18)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from tidegate_core.language.values.document import Document, Whole
from tidegate_core.language.values.instants import InstantField
from tidegate_core.language.values.problems import MAX_PROBLEMS, Problem

MAX_NEXT = 3


class ReceiptStatus(StrEnum):
    """How a request ended; `pending` is the API's answer while there is no receipt yet."""

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
    """What an update, delete or suspend threw away.

    Attributes:
        jobs: Ids of the jobs that were cancelled.
        evidence: Entries that had been counted, by correlation key; the key is empty where there is none.
        messages: Occurrences of a recurring message that were due, and that the broker had not acknowledged. None of them is sent again; one
            that was on its way may still arrive.
    """

    EXAMPLE: ClassVar = {"jobs": ["0042-mfrggzdfmztwq2lkn5wg63tqoe"], "evidence": {"2013-01-01": 1}, "messages": 0}

    jobs: tuple[str, ...] = ()
    evidence: dict[str, Annotated[Whole, Field(ge=0)]] = Field(default_factory=dict)
    messages: Annotated[Whole, Field(ge=0)] = 0


class Receipt(Document):
    """The answer to a request, keyed by its id.

    Attributes:
        version: Of the schedule, or of the wide controls, after the request.
        next: Up to three next nominal instants.
        running: Runs past the start gate, which go on.
        backlog: Of a resume: occurrences of the suspended span that go on or are made up for; 1,000 stands for more as well.
        id: The message, job or run that the request made.
        errors: Why it was refused.
        at: When it was decided.
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
