"""A run, its rows in the outbox, and its setbacks: submissions that failed before the start gate.

Owners write the run; the start gate, reports and the close request write it without the owner. The outbox row is
written with the run's end. A program that cannot start dies in the same way each time: the second equal death ends
the run. Ten would hold its permits for half an hour.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from tidegate_core.language.definitions.run_policies import Priority
from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.effects import ProgramEnded
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a target. The owner writes it; `start`, `outputs`, `finished` and close write it without the
    owner.

    Attributes:
        attempt: Current attempt; the start gate admits no other.
        state: `submitting`, `submitted`, `running`, or terminal (`succeeded` ... `closed`).
        limits: Keys (`pk|sk`) of the limits whose permits the run holds, or of a permit's own item.
        queued: True when the run was admitted from the queue of a shared limit, so that other jobs may wait for its
            permit.
        order: JSON of program type, file, arguments and configuration.
        external_id, host, boot_id: Names of the copy that the owner's launcher started. Another copy may have passed
            the gate.
        driver: UUID in the memory of the one driver that passed the gate.
        driver_host: Host whose launcher started that driver; None when wrapper or API are of an older release.
        started_at: Time of the first passage through the gate, of any attempt.
        passed_at: Time of the present attempt's passage; None before it, or when the API is of an older release.
        ended_at: Time at which the end was observed or the run was closed; set once.
        disposition: `<disposition>/<reason>` for the ledger when the run was closed before the gate.
        start_by: Deadline for the launcher to accept the attempt (1 h), then for the passage through the gate (15
            min).
        not_before: Earliest time of the next submission after a death before the gate.
        remembered: True when the schedule's `PastRuns` counts the run, so that its end must be counted as well.
        forced: Blockers that an expired pending time-out ignored at the admission; None when there were none.
        retries: Retries after failures of the program that used up a try.
        failure: JSON of the last attempt's end, until the retry ends.
        setback: JSON of the last submission that failed before the gate, or got no answer. None when there is none,
            or a program has passed the gate since.
        last_lines: End of the program's error output, if its launcher saw the end.
        submissions_before: Attempts before the program's present try, without those that used up no try.
        covered, covered_from, free_attempts, catch_up, missing, due: As in the run's job.
        outputs_seq: The driver's number of the report with `outputs`; None when its wrapper does not count reports.
        told: True once the start was published to subscribers.
        priority: Class of the job at the admission; at most `low` for a catch-up.
    """

    id: str
    namespace: str
    name: str
    incarnation: str
    version: int
    generation: int
    attempt: int
    state: str
    trigger: str
    nominal: int
    order: str
    admitted_at: int
    start_by: int
    satisfied_at: int = 0
    interval_start: int | None = None
    interval_end: int | None = None
    correlation: str | None = None
    evidence_id: str | None = None
    chunks: int | None = None
    upstream: str | None = None
    limits: tuple[str, ...] = ()
    node: str | None = None
    external_id: str | None = None
    host: str | None = None
    boot_id: str | None = None
    driver: str | None = None
    driver_host: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    outcome: str | None = None
    exit_code: int | None = None
    reason: str | None = None
    error_class: str | None = None
    outputs: str | None = None
    cancel_requested: bool = False
    disposition: str | None = None
    not_before: int = 0
    queued: bool | None = None
    expires_at: int | None = None
    covered: int | None = None
    covered_from: int | None = None
    free_attempts: int = 0
    remembered: bool | None = None
    forced: str | None = None
    catch_up: bool | None = None
    missing: tuple[str, ...] = ()
    told: bool | None = None
    retries: int = 0
    failure: str | None = None
    submissions_before: int = 0
    outputs_seq: int | None = None
    passed_at: int | None = None
    setback: str | None = None
    last_lines: str | None = None
    due: int | None = None
    priority: Priority = "medium"

    def key(self, shard: int) -> Key:
        return keys.run(shard, self.id)

    def ended_key(self, shard: int) -> Key:
        """Returns the key in the history, once the run has ended."""
        assert self.ended_at is not None
        succeeded = self.state == RunState.SUCCEEDED
        return keys.ended_run(shard, self.namespace, self.name, succeeded, self.ended_at, self.id)

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)

    @property
    def program_host(self) -> str | None:
        """Host on which the program runs or ran, as far as it is known."""
        return self.driver_host or self.host

    @property
    def order_document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.order)
        return document


def awaits_retry(run: Run) -> bool:
    """Returns whether the program failed and its retry has not reached the launcher."""
    return run.failure is not None and run.state == "submitting" and run.external_id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """A terminal state of a run for its subscribers: event for `run_status` triggers, record for the runs topic.

    The row also announces a deleted schedule: then `run_id` is the incarnation, `attempt` is 0 and `state` is
    `deleted`.

    Attributes:
        record: JSON of the record for `tidegate.runs`; empty when none is published.
        fact: JSON of the fact that triggers evaluate.
        started: Time of the start, when the start was not published before the end.
        page: `<ns>/<name>` of the last schedule whose inbox row is written. Subscriptions may change between two
            pages.
        matched: True once every subscriber has its inbox row.
        given_up: Reason why the run gets no further attempt although a retry was due; it causes a dead letter. None:
            no dead letter.
        error_class: Error class of a run that was given up.
    """

    run_id: str
    attempt: int
    state: str
    record: str
    fact: str
    started: int | None = None
    page: str = ""
    matched: bool = False
    given_up: str | None = None
    error_class: str | None = None

    def key(self, shard: int) -> Key:
        return keys.outbox(shard, self.run_id, self.attempt, self.state)


PASSING_ERRORS: Final = frozenset({"transient", "preempted", "quota"})
"""Errors before the gate after which the same submission may succeed, regardless of how often it failed."""
UNKNOWN_ERROR: Final = "unknown"
"""Error of a program that died before the gate for an unknown reason; the run tries once more."""
_WORD: Final = re.compile(r"[0-9A-Za-z_-]+")


def setback_of(run: Run, gone: ProgramEnded, reason: str, error_class: str, now: int) -> str:
    """Returns the JSON of an attempt that died before the gate."""
    return _text(run, gone.exit_code, error_class, reason, gone.last_lines, now)


def silence_of(run: Run, message: str, now: int) -> str:
    """Returns the JSON of an attempt that no launcher accepted."""
    return _text(run, None, "transient", message, "", now)


def is_same_silence(run: Run, message: str) -> bool:
    """Returns whether the run already states this reason for its present attempt. A write for each try would add
    nothing.
    """
    last = last_setback(run)
    return last is not None and last["attempt"] == run.attempt and _essence(last["reason"]) == _essence(message)


def dies_alike(run: Run, setback: str) -> bool:
    """Returns whether the attempt before died in the same way, and neither error is one that passes."""
    last, this = last_setback(run), json.loads(setback)
    if last is None or this["error_class"] in PASSING_ERRORS or last["error_class"] in PASSING_ERRORS:
        return False
    return last["exit_code"] == this["exit_code"] and _essence(last["reason"]) == _essence(this["reason"])


def last_setback(run: Run) -> dict[str, Any] | None:
    """Returns the last submission that failed before the gate; None when there is none."""
    if run.setback is None:
        return None
    document: dict[str, Any] = json.loads(run.setback)
    return document


def _text(run: Run, exit_code: int | None, error_class: str, reason: str, last_lines: str, now: int) -> str:
    document = {
        "attempt": run.attempt,
        "at": now,
        "exit_code": exit_code,
        "error_class": error_class,
        "reason": reason,
        "last_lines": last_lines,
    }
    return json.dumps(document, sort_keys=True, ensure_ascii=False)


def _essence(reason: str) -> str:
    """Returns the text with `#` for each word that contains a digit.

    Times, process ids, ports, addresses and random names differ between two deaths of one cause.
    """
    # An expression that looks for the digit itself takes quadratic time: it starts again at each letter of a long
    # word.
    return _WORD.sub(_unless_it_varies, reason)


def _unless_it_varies(word: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, word.group())) else word.group()
