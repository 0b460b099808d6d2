"""Runs, their logs, and outcomes of occurrences."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View
from tidegate_client.views.why import Unmet


class RunView(View):
    """A launched job.

    Attributes:
        state: State of the run. A success shows as soon as it was reported. Any other end shows once it is certain that
            no further attempt follows; until then the run is `running`.
        lateness_ms: From nominal to the passage of the start gate.
        exit_code: 128 + n if signal n ended the program; None if its end was not observed.
        signal: Name of that signal, such as `SIGKILL`, if the program could not report its end itself.
        outputs: Outputs that the program reported.
        program: Type, file, args, conf and properties with all templates resolved.
        last_lines: End of the program's error output, if its launcher saw the end: at most 1 KiB, without Java stack
            frames.
        disposition: `<disposition>/<reason>` of a run that was closed before the start gate.
        last_failure: End of the attempt before the present one, if a retry followed.
        last_setback: Why the last submission failed: its program died before the start gate, or no launcher accepted
            it. With attempt, instant (`at`), `exit_code`, `error_class`, `reason` and `last_lines`.
        next_attempt_at: When the next attempt begins, while the run waits for it.
        forced: Constraints that were not met when the pending time-out admitted it (`pending_timeout_action: force`).
        covered_count: Number of instants that it stands for, if several.
        covered_from: First of these instants.
        covered_to: Last of these instants.
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
        attempts: Number of attempts so far.
        offset: First byte of the piece.
        next_offset: Offset at which to continue reading.
        size: Bytes in the log now.
        text: Piece as UTF-8; invalid bytes are replaced.
        ended: Whether the attempt has ended, so that the log is complete.
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
    """Outcome of one occurrence: a row of the ledger.

    Attributes:
        disposition: `launched`, `coalesced`, `skipped`, `expired` or `cancelled`.
        reason: Reason for all but launched.
        state: Final state of its run, if it had one.
        at: When it was decided.
        forced: Constraints that were not met when the pending time-out admitted it (`pending_timeout_action: force`).
        covered_count: Number of instants that it stands for: those of an outage, which have no rows, or of jobs merged
            into it.
        covered_from: First of these instants.
        covered_to: Last of these instants.
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
