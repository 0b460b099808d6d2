"""Answers to requests: the receipt, or the problems."""

from __future__ import annotations

from pydantic import Field

from tidegate_client.views.view import Moment, View


class FieldProblem(View):
    """One problem to correct.

    Attributes:
        field: Path such as `trigger.triggers[0].count`; empty for the document as a whole.
        problem: Description of the error.
        hint: Text to write instead, if known.
    """

    field: str = ""
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.field}: {self.problem}" if self.field else self.problem
        return f"{text}; {self.hint}" if self.hint else text


class Discarded(View):
    """Pending work that an update, delete or suspend discarded.

    Attributes:
        messages: Due occurrences of a recurring message that the broker had not acknowledged. None of them is sent
            again; one that was on its way may still arrive.
    """

    jobs: list[str] = Field(default_factory=list)
    evidence: dict[str, int] = Field(default_factory=dict)
    messages: int = 0


class ReceiptView(View):
    """The answer to a request.

    Attributes:
        status: `accepted`, `unchanged`, `rejected`, `conflict`, `superseded`, `cancelled`, `too_late`, `not_found` or
            `pending`.
        running: Runs past the start gate, which continue.
        backlog: For a resume: occurrences of the suspended span that continue or are caught up (1,000: that many, or more).
        id: Id of the message, job or run that the request created.
        warnings: For an apply through the API: allowed settings that are rarely intended, each with its field and an
            alternative.
    """

    request_id: str
    status: str
    namespace: str | None = None
    name: str | None = None
    version: int | None = None
    next: list[Moment] = Field(default_factory=list)
    discarded: Discarded | None = None
    running: list[str] = Field(default_factory=list)
    backlog: int | None = None
    id: str | None = None
    errors: list[FieldProblem] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    at: Moment


class ProblemView(View):
    """An error as `application/problem+json` (RFC 9457).

    Attributes:
        type: Kind of problem; the same for all of its occurrences.
        title: Kind in words.
        detail: What happened to which item, and what to do.
        errors: Parts to correct.
        reason: Reason as one word for programs, if the status does not suffice: the status of a refusing receipt, such as
            `conflict` or `too_late`, or why a program may not start.
        receipt: Receipt of the refusal, for requests that a shard's owner refused.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    instance: str = ""
    request_id: str | None = None
    errors: list[FieldProblem] = Field(default_factory=list)
    reason: str | None = None
    receipt: ReceiptView | None = None
