"""The start gate and the reports: each is one conditional write, and what it means to the program when it is refused.

Blocking; called on the gate's own threads. The write is the decision (I2, I7): nothing is read before it, and what is read
after a refusal only explains.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tidegate_api.http.problem_responses import ApiProblem, invalid, not_found, unavailable
from tidegate_api.reads.history_keys import ended_run
from tidegate_core.language.values.problems import TOO_LARGE, InvalidInput, Problem, both_ends
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, Refused
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Item, Transaction
from tidegate_core.writes import start_gate
from tidegate_core.writes.settlement import Verdict
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store

OUTPUTS_BYTES_MAX = 64 * 1024
"""All outputs of a run as JSON: they live in the run item, far below the store's 400 KB."""
OUTPUTS_LEVELS_MAX = 100
"""Lists and mappings inside of each other, the outputs themselves being the first. The core's reader takes 200 in all and the answers'
writer 255, of which facts, records and lists of runs need some around them. What one of them cannot take would stop the run's owner."""
REASON_CHARACTERS_MAX = 1_024

CarryOut: TypeAlias = Callable[[Transaction], Verdict]
"""Sends a transaction until it is settled, lost answers read back; blocking."""


class Gate:
    """What programs ask of the run that they belong to."""

    def __init__(self, store: Store, carry_out: CarryOut, clock: Clock) -> None:
        self._store = store
        self._carry_out = carry_out
        self._clock = clock

    def start(self, run_id: str, attempt: int, driver: str, host: str | None = None) -> None:
        """Lets the first driver of the current attempt pass, and the same driver again.

        `host` is that of the launcher which started it.

        Raises:
            ApiProblem: 404, 409 with the reason why this driver must not run, 503.
        """
        now = self._clock.now_ms()
        item = self._refused_by(start_gate.start_run(run_id, attempt, driver, now, _token(), host=host))
        if item is not _PASSED:
            self._refuse("start", run_id, attempt, driver, item)

    def outputs(self, run_id: str, attempt: int, driver: str, outputs: Mapping[str, Any], seq: int | None) -> None:
        """Replaces the run's outputs; what comes when a later report of the driver was taken changes nothing, and is fine.

        Raises:
            InvalidInput: No JSON, more than 64 KiB, or too deep.
            ApiProblem: 404, 409, 503.
        """
        text = outputs_text(outputs)
        item = self._refused_by(start_gate.report_outputs(run_id, attempt, driver, text, seq, _token()))
        if item is not _PASSED and not start_gate.was_overtaken(item, attempt, driver, seq):
            self._refuse("outputs", run_id, attempt, driver, item)

    def finished(
        self,
        run_id: str,
        attempt: int,
        driver: str,
        outcome: str,
        exit_code: int | None,
        reason: str | None,
        error_class: str | None,
        outputs: Mapping[str, Any] | None,
    ) -> None:
        """Records the end; a repeat of a recorded one is fine.

        Raises:
            InvalidInput: See `outputs`.
            ApiProblem: 404, 409 with what was recorded instead, 503.
        """
        text = None if outputs is None else outputs_text(outputs)
        # Half a character, of a file name say, is no reason to leave an end unreported; kept, it would stop the owner.
        short = both_ends(reason, REASON_CHARACTERS_MAX).encode("utf-8", "replace").decode() if reason else None
        transaction = start_gate.finish_run(
            run_id, attempt, driver, outcome, exit_code, short, error_class, text, self._clock.now_ms(), _token()
        )
        item = self._refused_by(transaction)
        if item is _PASSED or start_gate.was_finished_by(item, attempt, driver, outcome):
            return
        if item is None and start_gate.was_finished_by(self._ended(run_id), attempt, driver, outcome):
            return
        self._refuse("finished", run_id, attempt, driver, item)

    def running(self, run_id: str, attempt: int, driver: str) -> Run:
        """Returns the run if this driver is the one that runs it.

        Raises:
            ApiProblem: 404, 409.
            StoreUnavailable: The store does not answer.
        """
        key = keys.run(keys.shard_of_run(run_id), run_id)
        item = self._store.get([key]).get(key)
        if item is not None:
            run = from_item(Run, item)
            if (run.attempt, run.driver) == (attempt, driver) and run.ended_at is None:
                return run
        self._refuse("report", run_id, attempt, driver, item)
        raise AssertionError("a refusal always raises")

    def _refused_by(self, transaction: Transaction) -> Item | None:
        """Sends the write; returns `_PASSED`, or the item that refused it (None: there is no such open run)."""
        verdict = self._carry_out(transaction)
        if isinstance(verdict, Committed):
            return _PASSED
        if isinstance(verdict, Refused) and verdict.failed:
            return verdict.failed[0][1]
        raise unavailable("the store did not say in time whether the write was applied; repeat it, that is harmless")

    def _ended(self, run_id: str) -> Item | None:
        return ended_run(self._store, keys.shard_of_run(run_id), run_id)

    def _refuse(self, action: str, run_id: str, attempt: int, driver: str, item: Item | None) -> None:
        known = item if item is not None else self._ended(run_id)
        if known is None:
            raise not_found(f"run {run_id}: there is no such run")
        reason, words = _why_not(from_item(Run, known), attempt, driver)
        raise ApiProblem(409, f"run {run_id} attempt {attempt}: {action} refused: {words}", reason=reason)


_PASSED: Item = {}
"""Stands for "the write was applied"; compared by identity."""


def _why_not(run: Run, attempt: int, driver: str) -> tuple[str, str]:
    """Returns a code and words; the wrapper prints them and does not run."""
    if run.state == "closed":
        return "closed", f"the run was closed ({run.disposition or run.reason or 'without a reason'})"
    if attempt < run.attempt:
        return "older_attempt", f"attempt {run.attempt} has taken its place"
    if attempt > run.attempt:
        return "unknown_attempt", f"the current attempt is {run.attempt}"
    if run.ended_at is not None:
        why = f" ({run.reason})" if run.reason else ""
        return "ended", f"the run has ended as {run.outcome or run.state}{why}"
    if run.driver is None:
        return "not_started", "no driver has passed the start gate"
    return "duplicate", "another driver has passed the start gate"


def outputs_text(outputs: Mapping[str, Any]) -> str:
    """Returns outputs as they are stored.

    Raises:
        InvalidInput: See `Gate.outputs`.
    """
    # First: what is deeper still cannot even be written out.
    if _is_deeper(outputs, OUTPUTS_LEVELS_MAX):
        problem = Problem(
            "outputs",
            f"are more than {OUTPUTS_LEVELS_MAX} levels deep",
            "report flat values, or write the data to storage and report where it is",
        )
        raise invalid(problem)
    try:
        text = json.dumps(outputs, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        problem = Problem("outputs", "contain a number that JSON cannot hold", "use texts for NaN and Infinity")
        raise invalid(problem) from error
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        # Kept as it is, it would break whoever sends it on: the run's owner, and with it the whole shard.
        problem = Problem("outputs", "contain half a character (a lone surrogate)", "use texts that are valid Unicode")
        raise invalid(problem) from error
    if size > OUTPUTS_BYTES_MAX:
        problem = Problem(
            "outputs",
            f"{TOO_LARGE}: {size} bytes, at most {OUTPUTS_BYTES_MAX} are kept",
            "write the data to storage and report where it is",
        )
        raise InvalidInput([problem], "too_large")
    return text


def _is_deeper(outputs: Mapping[str, Any], levels_max: int) -> bool:
    """Whether JSON has more levels of lists and mappings; level by level, as a call for each would run out of stack."""
    level: list[Any] = [outputs]
    for _ in range(levels_max):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, Mapping) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _token() -> str:
    return uuid.uuid4().hex
