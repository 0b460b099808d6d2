"""The start gate and the reports of programs: each is one conditional write, and a refusal with its reason.

The gate routes call it on the gate's threads; it blocks. The conditional write is the decision: nothing is read before
it, and a read after a refusal only explains the refusal.
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
"""Bytes of all outputs of a run as JSON. They are stored in the run item, far below the store's limit of 400 KB."""
OUTPUTS_LEVELS_MAX = 100
"""Nested levels of lists and mappings; the outputs are the first level. The core's parser accepts 200 levels and the JSON writer
of answers 255, and facts, records and lists of runs add some levels around. Deeper outputs would stop the run's owner."""
REASON_CHARACTERS_MAX = 1_024

CarryOut: TypeAlias = Callable[[Transaction], Verdict]
"""Sends a transaction until its verdict is known, and reads back lost answers; blocking."""


class Gate:
    """Decides the requests of programs about their run."""

    def __init__(self, store: Store, carry_out: CarryOut, clock: Clock) -> None:
        self._store = store
        self._carry_out = carry_out
        self._clock = clock

    def start(self, run_id: str, attempt: int, driver: str, host: str | None = None) -> None:
        """Lets the first driver of the current attempt pass, and this driver again on a repeat.

        `host` is the host of the launcher that started the program.

        Raises:
            ApiProblem: 404; 409 with the reason why this driver must not run; 503.
        """
        now = self._clock.now_ms()
        item = self._refused_by(start_gate.start_run(run_id, attempt, driver, now, _token(), host=host))
        if item is not _PASSED:
            self._refuse("start", run_id, attempt, driver, item)

    def outputs(self, run_id: str, attempt: int, driver: str, outputs: Mapping[str, Any], seq: int | None) -> None:
        """Replaces the run's outputs. A report that arrives after a later one of the driver succeeds and changes nothing.

        Raises:
            InvalidInput: The outputs are no JSON, larger than 64 KiB, or nested too deeply.
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
        """Records the end of the attempt. A repeat of the recorded end succeeds.

        Raises:
            InvalidInput: See `outputs`.
            ApiProblem: 404; 409 with the recorded end; 503.
        """
        text = None if outputs is None else outputs_text(outputs)
        # A lone surrogate, for example from a file name, is replaced: the end must be recorded, and the surrogate would stop the owner.
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
        """Returns the run if this driver has passed its start gate and the run is open.

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
        """Sends the write. Returns `_PASSED`, or the stored item after a refusal; None if there is no such open run."""
        verdict = self._carry_out(transaction)
        if isinstance(verdict, Committed):
            return _PASSED
        if isinstance(verdict, Refused) and verdict.failed:
            return verdict.failed[0][1]
        raise unavailable("it is unknown whether the store applied the write; repeat the request, a repeat is harmless")

    def _ended(self, run_id: str) -> Item | None:
        return ended_run(self._store, keys.shard_of_run(run_id), run_id)

    def _refuse(self, action: str, run_id: str, attempt: int, driver: str, item: Item | None) -> None:
        known = item if item is not None else self._ended(run_id)
        if known is None:
            raise not_found(f"run {run_id}: does not exist")
        reason, words = _why_not(from_item(Run, known), attempt, driver)
        raise ApiProblem(409, f"run {run_id} attempt {attempt}: {action} refused: {words}", reason=reason)


_PASSED: Item = {}
"""Means that the write was applied; compared by identity."""


def _why_not(run: Run, attempt: int, driver: str) -> tuple[str, str]:
    """Returns a code and a sentence. The program's wrapper prints them and does not run the program."""
    if run.state == "closed":
        return "closed", f"the run was closed ({run.disposition or run.reason or 'without a reason'})"
    if attempt < run.attempt:
        return "older_attempt", f"attempt {run.attempt} has replaced it"
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
    # Checked first, because `json.dumps` fails on much deeper nesting.
    if _is_deeper(outputs, OUTPUTS_LEVELS_MAX):
        problem = Problem(
            "outputs",
            f"are more than {OUTPUTS_LEVELS_MAX} levels deep",
            "report flat values, or write the data to storage and report its path",
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
        # Stored unchanged, it would break the run's owner, and with it the whole shard.
        problem = Problem("outputs", "contain a lone surrogate", "use texts that are valid Unicode")
        raise invalid(problem) from error
    if size > OUTPUTS_BYTES_MAX:
        problem = Problem(
            "outputs",
            f"{TOO_LARGE}: {size} bytes, at most {OUTPUTS_BYTES_MAX} are kept",
            "write the data to storage and report its path",
        )
        raise InvalidInput([problem], "too_large")
    return text


def _is_deeper(outputs: Mapping[str, Any], levels_max: int) -> bool:
    """Whether JSON has more levels of lists and mappings. It goes level by level, because recursion could exhaust the stack."""
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
