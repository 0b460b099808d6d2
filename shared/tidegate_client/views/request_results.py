"""Answers to requests: the receipt, or what is wrong."""

from __future__ import annotations

from pydantic import Field

from tidegate_client.views.view import Moment, View


class FieldProblem(View):
    """One thing to correct.

    Attributes:
        field: Path such as `trigger.triggers[0].count`; empty for the document as a whole.
        problem: What is wrong.
        hint: What to write instead, where that is known.
    """

    field: str = ""
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.field}: {self.problem}" if self.field else self.problem
        return f"{text}; {self.hint}" if self.hint else text


class Discarded(View):
    """What an update, delete or suspend threw away.

    Attributes:
        messages: Occurrences of a recurring message that were due, and that the broker had not acknowledged. None of them is sent again; one
            that was on its way may still arrive.
    """

    jobs: list[str] = Field(default_factory=list)
    evidence: dict[str, int] = Field(default_factory=dict)
    messages: int = 0


class ReceiptView(View):
    """The answer to a request.

    Attributes:
        status: `accepted`, `unchanged`, `rejected`, `conflict`, `superseded`, `cancelled`, `too_late`, `not_found` or
            `pending`.
        running: Runs past the start gate, which go on.
        backlog: Of a resume: occurrences of the suspended span that go on or are made up for (1,000: that many, or more).
        id: The message, job or run that the request made.
        warnings: Of an apply through the API: what is allowed and hardly ever meant, each with its field and a way out.
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
        type: Names the kind of problem; the same for all of its occurrences.
        title: The kind in words.
        detail: What happened, to which item, and what to do.
        errors: Parts to correct.
        reason: In a word, for programs, where the status alone leaves it open: the status of a refusing receipt, such as
            `conflict` or `too_late`, or why a program may not start.
        receipt: The receipt that says so, for requests that a shard's owner refused.
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
