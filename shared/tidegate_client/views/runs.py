"""Runs, what they wrote, and what became of occurrences."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View
from tidegate_client.views.why import Unmet


class RunView(View):
    """A launched job.

    Attributes:
        state: Of the run. Success from the moment at which it was reported; any other end once it is known that no attempt
            follows on it: until then the run is `running`.
        lateness_ms: From nominal to the passage of the start gate.
        exit_code: 128 + n when signal n ended the program; None where nobody saw its end.
        signal: Name of that signal, such as `SIGKILL`, of a program that could not report its end itself.
        outputs: What the program reported.
        program: Type, file, args, conf and properties with all templates resolved.
        last_lines: The end of its program's error output, where its launcher saw the end: at most 1 KiB, without frames of Java.
        disposition: `<disposition>/<reason>` of a run that was closed before the start gate.
        last_failure: How the attempt before the present one ended, when a retry followed on it.
        last_setback: Why the last submission came to nothing: its program died before the start gate, or no launcher took it.
            With attempt, instant (`at`), `exit_code`, `error_class`, `reason` and `last_lines`.
        next_attempt_at: When the next attempt begins, while the run waits for it.
        forced: What did not hold when the pending time-out had it admitted all the same (`pending_timeout_action: force`).
        covered_count: Instants that it stands for, where these are several.
        covered_from: The first of these instants.
        covered_to: The last of them.
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
    last_lines: str | None = None
    last_failure: dict[str, Any] | None = None
    last_setback: dict[str, Any] | None = None
    next_attempt_at: Moment | None = None
    forced: Unmet | None = None
    covered_count: int | None = None
    covered_from: Moment | None = None
    covered_to: Moment | None = None

    @property
    def is_ended(self) -> bool:
        return self.ended_at is not None


class LogView(View):
    """A piece of the log of one of a run's attempts.

    Attributes:
        attempts: How many of them there are by now.
        offset: First byte of the piece.
        next_offset: Where to go on reading.
        size: Bytes in the log now.
        text: The piece as UTF-8; bytes that are none are replaced.
        ended: Nothing will be added any more: the attempt has ended.
    """

    run_id: str
    attempt: int
    attempts: int = 1
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
        covered_count: Instants that it stands for: of an outage, whose others have no row, or of jobs that were merged into it.
        covered_from: The first of these instants.
        covered_to: The last of them.
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
    covered_count: int | None = None
    covered_from: Moment | None = None
    covered_to: Moment | None = None
