"""Retries: the next attempt of a run whose program failed, in the transaction that closes the attempt before.

Called by `run_completion.py`. The run stays open between attempts and keeps its permits, so no other run takes its
place and no limit is checked again. If the schedule is stopped before the next attempt passes the gate, the run ends as
its last attempt left it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.definitions.run_policies import COSTS_NO_TRY, ErrorKind, Retry, rank_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.targets.argument_templates import Unresolved
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run, awaits_retry
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import ITEM_BYTES_MAX
from tidegate_core.shard.launch_values import SUBMIT_WITHIN_MS, resolve_order
from tidegate_core.shard.retry_budget import BUDGET_WINDOW_MS, Retried, RetryBudget
from tidegate_core.shard.schedule_state import launches, oldest_kept_generation, spec_of
from tidegate_core.writes import conditions
from tidegate_core.writes.staged_writes import bytes_of
from tidegate_core.writes.unit_of_work import UnitOfWork

RETRY_AGE_MS: Final = 24 * 3_600_000
"""Time after the admission within which an attempt may begin, however many errors cost no try."""
TOO_LATE: Final = "the next attempt would begin more than 24 h after the admission"
NEXT_REPORT_BYTES: Final = 80_000
"""Bytes that the gate, the launcher and the next report add to the run's item: 64 KiB of outputs, 4 KiB of a reason,
names. If the failure leaves less than that of the 400 KB, it is stored without its outputs. An item that is too large
could never be written, and the run would never end.
"""
_ERROR_KIND: Final[TypeAdapter[ErrorKind]] = TypeAdapter(ErrorKind)
FAILED: Final = frozenset({"failed", "timed_out"})


class RetryDecision(NamedTuple):
    """What follows the end of a program.

    Attributes:
        again: Whether the next attempt was created.
        given_up: Reason why no attempt follows although the schedule wants one after such an error.
    """

    again: bool = False
    given_up: str | None = None


STAYS: Final = RetryDecision()
"""The program succeeded or was stopped, or the schedule wants no further attempt after such an error."""


def retry(unit: UnitOfWork, run: Run, budget: RetryBudget, now: int) -> RetryDecision:
    """Creates the next attempt of a run whose program has ended, if its schedule wants one and has tries left."""
    if run.outcome not in FAILED or run.cancel_requested or run.started_at is None:
        return STAYS
    spec = spec_of(unit, run.namespace, run.name, run.version)
    error = error_of(run)
    if spec is None or not spec.retry.follows(error):
        return STAYS
    if _is_used_up(spec.retry, run, error):
        return RetryDecision(given_up=f"tries: {spec.retry.tries} are used up")
    state = unit.record(ScheduleState, keys.schedule_state(unit.shard, run.namespace, run.name))
    if state is None or not _may_launch(unit, state, run):
        return STAYS
    wanted = now + spec.retry.pause_ms(run.retries)
    at = budget.earliest(run.namespace, run.priority, wanted, now, retries_beside(unit, run.namespace))
    if is_too_late(run, at):
        return RetryDecision(given_up=TOO_LATE)
    # I7: a concurrent stop either finds this attempt, or makes this write fail.
    unit.require(state.key(unit.shard), conditions.schedule_is(state.status, state.generation))
    again = replace(
        run,
        attempt=run.attempt + 1,
        state="submitting",
        order=_order_of(unit, spec, run),
        retries=run.retries + (error not in COSTS_NO_TRY),
        failure=_told(run, run.outputs),
        submissions_before=run.attempt - run.free_attempts,
        not_before=at,
        start_by=at + SUBMIT_WITHIN_MS,
        external_id=None,
        host=None,
        boot_id=None,
        node=None,
        driver=None,
        driver_host=None,
        passed_at=None,
        ended_at=None,
        outcome=None,
        exit_code=None,
        reason=None,
        error_class=None,
        outputs=None,
        outputs_seq=None,
        setback=None,
        last_lines=None,
    )
    key = run.key(unit.shard)
    if bytes_of(to_item(again, key)) > ITEM_BYTES_MAX - NEXT_REPORT_BYTES:
        again = replace(again, failure=_told(run, None))
    unit.put(again, key)
    return RetryDecision(again=True)


def _is_used_up(retry: Retry, run: Run, error: ErrorKind) -> bool:
    return error not in COSTS_NO_TRY and run.retries >= retry.tries


def error_of(run: Run) -> ErrorKind:
    """Returns the error kind of a run's end, as far as it was reported."""
    if run.error_class is None:
        return "lost" if run.state == "lost" else "unknown"
    try:
        return _ERROR_KIND.validate_python(run.error_class)
    except ValidationError:
        return (
            # A newer version may report a class that this one does not know. That must not keep the run open for ever.
            "unknown"
        )


def final_failure(run: Run, why: str) -> Run:
    """Returns a run without a next attempt, in the state in which its last attempt left it."""
    assert run.failure is not None
    failure = json.loads(run.failure)
    reason = f"{failure.pop('reason') or failure['outcome']}; not tried again: {why}"
    return replace(run, **failure, reason=reason, disposition=None)


def retries_beside(unit: UnitOfWork, namespace: str) -> list[Retried]:
    """Returns the retries that other decisions of this transaction create; the budget has not counted them."""
    rows = [item for key, item in unit.writes.items() if item is not None and key.sk.startswith(keys.RUN_PREFIX)]
    runs = [from_item(Run, row) for row in rows]
    mine = (each for each in runs if each.namespace == namespace and awaits_retry(each))
    return [Retried(each.not_before, rank_of(each.priority)) for each in mine]


def is_overdue(run: Run, now: int) -> bool:
    """Whether the next attempt was due while the shard had no owner. By now many attempts may be due at once, or it is
    too late.
    """
    return awaits_retry(run) and (run.not_before + BUDGET_WINDOW_MS <= now or is_too_late(run, now))


def comes_too_late(run: Run, at: int) -> bool:
    """Whether the failed run may not be submitted again, because its 24 hours are over."""
    return run.failure is not None and is_too_late(run, at)


def is_too_late(run: Run, at: int) -> bool:
    """Whether no further attempt of the run may begin at an instant."""
    return at > run.admitted_at + RETRY_AGE_MS


def _may_launch(unit: UnitOfWork, state: ScheduleState, run: Run) -> bool:
    if state.incarnation != run.incarnation or run.generation < oldest_kept_generation(state):
        return False
    return launches(state) and not unit.controls.covers(run.namespace)


def _order_of(unit: UnitOfWork, spec: ScheduleSpec, run: Run) -> str:
    """Returns the order of the next attempt; it differs only in `${attempt}`."""
    job = unit.record(Job, keys.job(unit.shard, run.id))
    if job is None:
        return run.order
    try:
        return resolve_order(spec, replace(job, attempt=run.attempt + 1))
    except Unresolved:
        return run.order  # The longer attempt number made it too long.


def _told(run: Run, outputs: str | None) -> str:
    """Returns the failure as compact JSON; its outputs are JSON inside JSON."""
    failure = {
        "outcome": run.outcome,
        "reason": run.reason,
        "error_class": run.error_class,
        "exit_code": run.exit_code,
        "outputs": outputs,
        "ended_at": run.ended_at,
    }
    return json.dumps(failure, sort_keys=True, ensure_ascii=False)
