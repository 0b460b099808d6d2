"""A launched job."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from tidegate_core.language.definitions.priority import Priority
from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.effects import ProgramEnded
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A launched job: written by the owner, but `start`, `outputs`, `finished` and close are ownerless single writes.

    Attributes:
        attempt: The current attempt; the gate admits no other.
        state: `submitting`, `submitted`, `running`, or terminal (`succeeded` ... `closed`).
        limits: Partition and sort keys (`pk|sk`) of the limits whose permit it holds, or of the permit's own item.
        queued: True when somebody may wait behind it: it was admitted out of a shared limit's queue.
        order: JSON of program type, file, args, conf.
        external_id, host, boot_id: Of the copy that the owner's launcher started: not always the one that passes the gate.
        driver: UUID in the memory of the one driver that passed the gate.
        driver_host: Host whose launcher started that driver; None: its wrapper, or the API, is of an older release.
        started_at: When a driver passed the gate for the first time, of whichever attempt.
        passed_at: When that of the present attempt did; None: none has, or the API is of an older release.
        ended_at: When the end was observed or the run was closed; set once.
        disposition: `<disposition>/<reason>` for the ledger when the run was closed before the gate.
        start_by: The launcher must have taken it by then (SEMANTICS 13: 1 h); once it has, the gate must have been passed by
            then (15 min).
        not_before: A further submission of an attempt that died before the gate waits until then.
        remembered: True when its schedule's past counts it (`PastRuns`), so that its end has to be counted as well.
        forced: What did not hold when its job's pending time-out had it admitted all the same; None: everything held.
        retries: Further attempts after a program that failed, those that cost a try.
        failure: JSON of how the last attempt ended, while the run waits for, or makes, the next one.
        setback: JSON of why the last submission came to nothing: its program died before the gate, or the launcher gave no
            answer. None: none has, or a program has passed the gate since.
        last_lines: The end of its program's error output, where its launcher saw the end.
        submissions_before: Attempts, those that cost no try left out, before the program's present try.
        covered, covered_from, free_attempts, catch_up, missing, due: As of its job.
        outputs_seq: The driver's count of the report that `outputs` are from; None when its wrapper counts none.
        told: True once its start was told to those who listen.
        priority: Class of its job at the admission: `low` at most where it makes up for a missed instant.
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
        """Key in the history, once the run has ended."""
        assert self.ended_at is not None
        succeeded = self.state == RunState.SUCCEEDED
        return keys.ended_run(shard, self.namespace, self.name, succeeded, self.ended_at, self.id)

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)

    @property
    def program_host(self) -> str | None:
        """Where its program runs or ran, as far as anybody has said."""
        return self.driver_host or self.host

    @property
    def order_document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.order)
        return document


def awaits_retry(run: Run) -> bool:
    """Whether the run's program has failed, and its next attempt is not with the launcher yet."""
    return run.failure is not None and run.state == "submitting" and run.external_id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """A terminal state on its way to those who listen: event source for `run_status`, record for `tidegate.runs`.

    Also a schedule that is gone: `run_id` is its incarnation then, `attempt` 0, `state` `deleted`.

    Attributes:
        record: JSON of the record for `tidegate.runs`; empty where nothing goes there.
        fact: JSON of the fact that triggers see.
        started: When it had passed the gate, where that was not told before its end.
        page: `<ns>/<name>` of the last schedule that has its inbox row; listeners may come and go between two pages.
        matched: All have.
        given_up: Why no further attempt of a run follows, where one was wanted: it gets a dead letter. None = it gets none.
        error_class: Of such a run.
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
"""Errors before the gate after which the same submission may work, however often it has failed alike."""
UNKNOWN_ERROR: Final = "unknown"
"""Error of a program that died before the gate, and nobody says why: tried once more."""
_WORD: Final = re.compile(r"[0-9A-Za-z_-]+")


def setback_of(run: Run, gone: ProgramEnded, reason: str, error_class: str, now: int) -> str:
    """Returns how an attempt that died before the gate is kept, as JSON."""
    return _text(run, gone.exit_code, error_class, reason, gone.last_lines, now)


def silence_of(run: Run, message: str, now: int) -> str:
    """Returns how an attempt that no launcher has taken is kept, as JSON."""
    return _text(run, None, "transient", message, "", now)


def is_same_silence(run: Run, message: str) -> bool:
    """Whether the run says already that its attempt was not taken for this reason: a write for each try would buy nobody anything."""
    last = last_setback(run)
    return last is not None and last["attempt"] == run.attempt and _essence(last["reason"]) == _essence(message)


def dies_alike(run: Run, setback: str) -> bool:
    """Whether the attempt before died in the same way, and nothing says that this passes."""
    last, this = last_setback(run), json.loads(setback)
    if last is None or this["error_class"] in PASSING_ERRORS or last["error_class"] in PASSING_ERRORS:
        return False
    return last["exit_code"] == this["exit_code"] and _essence(last["reason"]) == _essence(this["reason"])


def last_setback(run: Run) -> dict[str, Any] | None:
    """Returns what is kept of the last submission that came to nothing."""
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
    """Returns the text with `#` for each word that has a digit.

    Times, process ids, ports, addresses and random names differ between two deaths of one cause.
    """
    # An expression that looks for the digit itself takes quadratic time: it tries again from each letter of a long word.
    return _WORD.sub(_unless_it_varies, reason)


def _unless_it_varies(word: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, word.group())) else word.group()
