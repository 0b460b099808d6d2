"""The API's documents: what it answers and what the client returns, defined once for both sides.

Readers ignore fields that they do not know, so that an older client works with a newer API.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

from tidegate_core.model.instants import format_instant, from_datetime

ItemT = TypeVar("ItemT")


def _rfc3339(moment: datetime) -> str:
    return format_instant(from_datetime(moment))


Moment: TypeAlias = Annotated[
    datetime,
    PlainSerializer(_rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""An aware UTC datetime; RFC 3339 with `Z` in JSON, as on every topic."""


class View(BaseModel):
    """Base of all documents."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Page(View, Generic[ItemT]):
    """One page of a list.

    Attributes:
        next_page_token: Opaque; empty at the end.
    """

    items: list[ItemT]
    next_page_token: str = ""


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


class Suspension(View):
    """How a schedule came to be suspended.

    Attributes:
        since: When it was; a resume may name it (`suspended_at`), and then ends no other one.
        requested: Whether somebody suspended it; it began so otherwise, and was never active.
        actor: Who did.
        reason: Why.
    """

    since: Moment
    requested: bool
    actor: str | None = None
    reason: str | None = None


class ScheduleView(View):
    """A schedule as it stands.

    Attributes:
        status: `active` or `suspended`.
        mode: How it is suspended: `drop`, `drain`, `hold` or `freeze`.
        until: When it is resumed by itself.
        suspension: While it is suspended: since when, by whom and why.
        version: Counts 1, 2, 3 ... within the name; also its ETag.
        next: Up to three coming instants of a time trigger.
        reason: Of the last request that changed it.
        gone: Deleted schedules that its trigger waited for, and does without now.
        spec: The definition in its canonical form.
    """

    namespace: str
    name: str
    status: str
    mode: str | None = None
    until: Moment | None = None
    suspension: Suspension | None = None
    version: int
    next: list[Moment] = Field(default_factory=list)
    changed_at: Moment | None = None
    actor: str | None = None
    reason: str | None = None
    gone: list[str] = Field(default_factory=list)
    spec: dict[str, Any] = Field(default_factory=dict)


class SourceView(View):
    """A source as it stands.

    Attributes:
        status: `open`, or `opening` until its first offsets are known.
        version: Counts 1, 2, 3 ... within the name; also its ETag.
        spec: The definition in its canonical form.
    """

    namespace: str
    name: str
    status: str
    version: int
    topic: str
    spec: dict[str, Any] = Field(default_factory=dict)


class Verdict(View):
    """What one constraint says of a job that it holds back.

    Attributes:
        code: Reason code such as `window_closed` or `concurrency`.
        reason: The same in words; None where an older version wrote it.
        until: When its answer can change; None: only something that happens changes it.
        values: What was compared.
    """

    code: str
    reason: str | None = None
    until: Moment | None = None
    values: dict[str, Any] = Field(default_factory=dict)


class Unmet(View):
    """What a job waits for.

    Attributes:
        code: Reason code of the first of them.
        reason: All of them in words.
        until: When it is looked at again, where that is known.
        verdicts: Each of them; empty where an older version wrote it.
    """

    code: str
    reason: str
    until: Moment | None = None
    verdicts: list[Verdict] = Field(default_factory=list)


class WhyReason(View):
    """One reason why something runs or does not.

    Attributes:
        code: Of the closed list in `docs/reasons.md`.
        text: The same in words, with the values that were used.
        until: When it can change; None: only something that happens changes it, or nothing does.
        values: What was compared; `job` or `run` is what it is about.
    """

    code: str
    text: str
    until: Moment | None = None
    values: dict[str, Any] = Field(default_factory=dict)


class WhyView(View):
    """Why something runs or does not.

    Attributes:
        about: `schedule <namespace>/<name>`, `job <id>` or `run <id>`.
        at: The instant that was asked about; else when the question was answered, or when it was decided.
        local: The instant that was asked about on the trigger's own wall clock.
        next_change: The earliest instant at which one of the reasons can change.
    """

    about: str
    at: Moment
    local: str | None = None
    next_change: Moment | None = None
    reasons: list[WhyReason]


class EvidenceView(View):
    """Events counted so far.

    Attributes:
        counts: Distinct entries per leaf of the trigger.
        first_at: Append time of the first one.
        deadline: When the trigger times out, if it does.
    """

    counts: list[int]
    first_at: Moment
    deadline: Moment | None = None


class JobView(View):
    """An occurrence in the making.

    Attributes:
        id: Also the id of the run that comes of it.
        state: `pending_trigger`, `pending_constraint`, `pending_launch` (admitted, and its run has not passed the start
            gate), or `launched` until that run has ended.
        run_state: Of its run, once it was admitted.
        missing: What its trigger still waits for, in words.
        unmet: The constraint that it waits for.
        deadline: When it expires, or its trigger times out.
    """

    id: str
    namespace: str
    schedule: str
    version: int
    state: str
    run_state: str | None = None
    trigger: str
    nominal: Moment | None = None
    satisfied_at: Moment | None = None
    deadline: Moment | None = None
    correlation: str | None = None
    missing: str | None = None
    unmet: Unmet | None = None
    evidence: EvidenceView | None = None


class RunView(View):
    """A launched job.

    Attributes:
        state: Of the run; the outcome from the moment at which its end was recorded.
        lateness_ms: From nominal to the passage of the start gate.
        exit_code: 128 + n when signal n ended the program; None where nobody saw its end.
        signal: Name of that signal, such as `SIGKILL`, of a program that could not report its end itself.
        outputs: What the program reported.
        program: Type, file, args, conf and properties with all templates resolved; None when only the ledger is left.
        disposition: `<disposition>/<reason>` of a run that was closed before the start gate.
        last_failure: How the attempt before the present one ended, when a retry followed on it.
        next_attempt_at: When the next attempt begins, while the run waits for it.
    """

    id: str
    namespace: str
    schedule: str
    version: int
    state: str
    attempt: int = 1
    trigger: str
    nominal: Moment
    interval_start: Moment | None = None
    interval_end: Moment | None = None
    correlation: str | None = None
    admitted_at: Moment | None = None
    started_at: Moment | None = None
    ended_at: Moment | None = None
    lateness_ms: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    reason: str | None = None
    error_class: str | None = None
    outputs: dict[str, Any] = Field(default_factory=dict)
    node: str | None = None
    host: str | None = None
    external_id: str | None = None
    cancel_requested: bool = False
    disposition: str | None = None
    program: dict[str, Any] | None = None
    last_failure: dict[str, Any] | None = None
    next_attempt_at: Moment | None = None

    @property
    def is_ended(self) -> bool:
        return self.ended_at is not None


class LogView(View):
    """A piece of a run's log.

    Attributes:
        offset: First byte of the piece.
        next_offset: Where to go on reading.
        size: Bytes in the log now.
        text: The piece as UTF-8; bytes that are none are replaced.
        ended: Nothing will be added any more: the run has ended.
    """

    run_id: str
    attempt: int
    stream: Literal["stdout", "stderr"]
    offset: int
    next_offset: int
    size: int
    text: str
    ended: bool


class OccurrenceView(View):
    """What became of one occurrence: a row of the ledger.

    Attributes:
        disposition: `launched`, `coalesced`, `skipped`, `expired` or `cancelled`.
        reason: Why, for all but launched.
        state: Final state of its run, where it had one.
        at: When it was decided.
        forced: What did not hold when the pending time-out had it admitted all the same (`pending_timeout_action: force`).
    """

    namespace: str
    schedule: str
    version: int
    job_id: str
    trigger: str
    nominal: Moment
    disposition: str
    reason: str = ""
    at: Moment
    state: str | None = None
    correlation: str | None = None
    interval_start: Moment | None = None
    interval_end: Moment | None = None
    admitted_at: Moment | None = None
    started_at: Moment | None = None
    ended_at: Moment | None = None
    node: str | None = None
    detail: str | None = None
    forced: Unmet | None = None


class MessageView(View):
    """A message for later delivery.

    Attributes:
        id: What the delivered record carries as `tidegate-id`.
        state: `waiting`; `withdrawn`: cancelled or replaced before its time; or `passed`: its time is over, so it was
            delivered, has expired, is being tried again, lies in the dead letters, or was withdrawn earlier (the receipt
            of the cancel says which).
        size_bytes: Of the payload.
    """

    id: str
    namespace: str
    key: str | None = None
    request_id: str | None = None
    state: Literal["waiting", "withdrawn", "passed"]
    nominal: Moment
    expires: Moment | None = None
    topic: str
    message_key: str | None = None
    size_bytes: int


class Discarded(View):
    """What an update, delete or suspend threw away."""

    jobs: list[str] = Field(default_factory=list)
    evidence: dict[str, int] = Field(default_factory=dict)


class ReceiptView(View):
    """The answer to a request.

    Attributes:
        status: `accepted`, `unchanged`, `rejected`, `conflict`, `superseded`, `cancelled`, `too_late`, `not_found` or
            `pending`.
        running: Runs past the start gate, which go on.
        backlog: Of a resume: occurrences of the suspended span that go on or are made up for (1,000: that many, or more).
        id: The message, job or run that the request made.
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
    at: Moment


class DryRun(View):
    """What an apply would do now.

    Attributes:
        would: `create`, `replace` or `unchanged`.
        version: Of the schedule as it stands, None when there is none.
        changed: Fields at the top of the spec that differ from the present version.
        next: Up to three coming instants of a time trigger.
        reading: How a cron expression was read: dialect, zone, day rule, what clock changes do; None for other triggers.
        warnings: What is allowed and hardly ever meant, each with its field and a way out.
    """

    namespace: str
    name: str
    would: Literal["create", "replace", "unchanged"]
    version: int | None = None
    changed: list[str] = Field(default_factory=list)
    next: list[Moment] = Field(default_factory=list)
    reading: str | None = None
    warnings: list[str] = Field(default_factory=list)


class EventView(View):
    """An event that the broker has acknowledged."""

    id: str
    type: str
    namespace: str


class ProblemView(View):
    """An error as `application/problem+json` (RFC 9457).

    Attributes:
        type: Names the kind of problem; the same for all of its occurrences.
        title: The kind in words.
        detail: What happened, to which item, and what to do.
        errors: Parts to correct.
        receipt: The receipt that says so, for requests that a shard's owner refused.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    instance: str = ""
    request_id: str | None = None
    errors: list[FieldProblem] = Field(default_factory=list)
    receipt: ReceiptView | None = None
