"""Decisions on a run from its submission to its end, based on reports, launcher answers and the clock.

Called through the shard writer by `attempts.py` and by commands. Reports (`start`, `finished`) are single writes on the
run's item, made without the owner. The owner decides everything else from that item, in transactions that check the
lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from tidegate_core.language.values.derived_ids import hash_of
from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.effects import DUPLICATE, Cancel, Notice, ProgramEnded, Submitted
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import (
    PASSING_ERRORS,
    UNKNOWN_ERROR,
    Run,
    dies_alike,
    is_same_silence,
    setback_of,
    silence_of,
)
from tidegate_core.rows.store_operations import Key, Value
from tidegate_core.runs.retries import TOO_LATE, comes_too_late, final_failure, is_overdue, is_too_late, retries_beside
from tidegate_core.runs.run_completion import HOST_SILENT, as_dated_here, close_run, conclude, end_before_gate, finish
from tidegate_core.runs.run_events import told_row
from tidegate_core.shard.launch_values import SUBMIT_WITHIN_MS
from tidegate_core.shard.outages.outage_time import served_deadline
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork

START_WITHIN_MS = 15 * 60_000
"""Time from the submission to the gate."""
SUBMIT_TRIES_MAX = 10
"""Submissions that may fail before the gate for a passing reason; they cost no tries of the run."""
SUBMIT_BACKOFF_MS = 5_000
"""First pause before another submission. It doubles each time, up to 5 min; a hash of run and attempt selects a part of
it."""
SUBMIT_BACKOFF_LAST_MS = 300_000
UNKNOWN_HOST_MS = 10 * 60_000
"""Time after which a started run that no node can find is `lost`."""
NEVER_STARTED = {
    "submitting": ("submit_timeout", "no launcher has taken it within an hour"),
    "submitted": ("start_timeout", "its program has not come to the start gate within 15 minutes"),
}
"""By state before the gate: the reason and the text of a run whose time in that state has passed."""
BEFORE_GATE = frozenset(NEVER_STARTED)
READ_BY_NAME_MAX: Final = 500
"""Runs of a schedule that are read by key: well within what the shard's view holds, together with the other rows of a
decision."""


def _start_within(run: Run) -> int:
    """Returns how long a run may be in its state before the gate, until its `start_by`."""
    return SUBMIT_WITHIN_MS if run.state == "submitting" else START_WITHIN_MS


def run_keys_of(memory: ShardCache, ref: str) -> tuple[Key, ...]:
    return tuple(keys.run(memory.shard, run.id) for run in memory.runs_of(ref))


def runs_of(unit: UnitOfWork, wanted: Sequence[Key], ref: str) -> list[Run]:
    """Returns the open runs of a schedule as last read. The gate may let one pass at any time (`is_as_seen`).

    If there are very many runs, the whole range is read. Reads by key would push the first runs out of the shard's view
    again and again.
    """
    if len(wanted) <= READ_BY_NAME_MAX:
        return [from_item(Run, item) for item in unit.items(wanted) if item is not None]
    items = unit.range(*keys.prefix_range(keys.RUN_PREFIX))
    return [
        from_item(Run, item) for item in items if keys.schedule_ref(str(item["namespace"]), str(item["name"])) == ref
    ]


def is_as_seen(unit: UnitOfWork, run: Run) -> bool:
    """Whether a run of `runs_of` is unchanged. The write about the run depends on this read."""
    return unit.record(Run, run.key(unit.shard)) == run


@dataclass(frozen=True, slots=True)
class _AboutRun:
    """Base of decisions on a run. They always read the run again, because the gate and the reports write it without the
    owner.
    """

    shard: int
    run_id: str

    @property
    def about(self) -> str:
        return self.run_id

    @property
    def stale(self) -> tuple[Key, ...]:
        return (keys.run(self.shard, self.run_id),)

    def read(self, unit: UnitOfWork) -> Run | None:
        return unit.record(Run, keys.run(self.shard, self.run_id))


@dataclass(frozen=True, slots=True)
class MarkSubmitted(_AboutRun):
    """The launcher has accepted the attempt. If there are several copies, the driver's copy counts."""

    attempt: int
    submitted: Submitted
    node: str
    name: str = "submitted"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None or run.attempt != self.attempt or run.ended_at is not None:
            return
        is_known = run.external_id is not None and run.host == run.program_host
        if is_known or run.driver_host not in (None, self.submitted.host):
            return
        known = replace(
            run,
            external_id=self.submitted.external_id,
            host=self.submitted.host,
            boot_id=self.submitted.boot_id,
            node=self.node,
            # Only from `submitting`: the program may have passed the gate already.
            state="submitted" if run.state == "submitting" else run.state,
            start_by=now + START_WITHIN_MS,
        )
        unit.put(known, run.key(unit.shard))


def _is_known_of_none(run: Run) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class CheckRun(_AboutRun):
    """Checks a run that may have changed, or whose time-out may have passed.

    `is_unasked` and `is_watched` are asked at the decision, because it may have waited for long in the queue.

    Attributes:
        seen: Callback with a run that is still open.
        memory: Cache that knows the outages; time without an owner counts toward no time-out.
        is_unasked: Whether the node has not passed the run to the launcher; no time-out runs then either.
        is_watched: Whether the run was found, even if that could not be stored.
    """

    seen: Callable[[Run], None]
    memory: ShardCache | None = None
    is_unasked: Callable[[Run], bool] = _is_known_of_none
    is_watched: Callable[[Run], bool] = _is_known_of_none
    name: str = "look"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None:
            return
        if run.ended_at is not None:
            conclude(unit, run, self.memory, now)
        elif run.state == "submitting" and self.is_unasked(run):
            # This time remains for a successor, which does not know that the launcher was not asked.
            if run.start_by - now < SUBMIT_WITHIN_MS // 2:
                unit.put(replace(run, start_by=now + SUBMIT_WITHIN_MS), run.key(unit.shard))
        elif run.state in BEFORE_GATE and self._is_over(run.start_by, _start_within(run), now):
            reason, given_up = NEVER_STARTED[run.state]
            end_before_gate(unit, run, "failed", reason, "transient", now, given_up)
            unit.after(Cancel(run.id, run.attempt))
        else:
            if run.cancel_requested:
                # Repeated until the program is gone: the owner that sent the first cancel may have died.
                unit.after(Cancel(run.id, run.attempt))
            if (
                run.external_id is None
                and not self.is_watched(run)
                and run.started_at is not None
                and self._is_unfound(run.passed_at or max(run.started_at, run.not_before), now)
            ):
                mark_lost(unit, run, now)
            else:
                unit.after(lambda: self.seen(run))

    def _is_unfound(self, started_at: int, now: int) -> bool:
        return self._is_over(started_at + UNKNOWN_HOST_MS, UNKNOWN_HOST_MS, now)

    def _is_over(self, deadline: int, length: int, now: int) -> bool:
        outages = () if self.memory is None else self.memory.outages
        return deadline <= now and served_deadline(deadline - length, deadline, outages) <= now


@dataclass(frozen=True, slots=True)
class RescheduleAttempt(_AboutRun):
    """Plans a run's next attempt that was due while the shard had no owner. Many attempts may be due at once.

    It begins when the retry budget has room, unless that is too late.

    Attributes:
        memory: Cache that knows the budget.
        planned: Callback with the run as it is now.
    """

    memory: ShardCache
    planned: Callable[[Run], None]
    name: str = "look"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None:
            return
        if is_overdue(run, now):
            retries, namespace = self.memory.retries, run.namespace
            at = retries.earliest(namespace, run.priority, now, now, retries_beside(unit, namespace))
            if is_too_late(run, at):
                finish(unit, final_failure(run, TOO_LATE), now, TOO_LATE)
                unit.after(Cancel(run.id, run.attempt))  # For a submission that got no answer.
                return
            run = replace(run, not_before=at, start_by=at + SUBMIT_WITHIN_MS)
            unit.put(run, run.key(unit.shard))
            unit.after(partial(retries.retried, namespace, run.priority, at))
        unit.after(partial(self.planned, run))


@dataclass(frozen=True, slots=True)
class RejectRun(_AboutRun):
    """The launcher reports that this attempt can never work. A missing script, for example, is an error of class
    `config`.

    Attributes:
        ask_again: Callback that asks the launcher about a program that runs nevertheless: an earlier submission without
            an answer began it.
    """

    attempt: int
    error_class: str
    message: str
    ask_again: Callable[[Run], None] | None = None
    name: str = "reject"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None or run.attempt != self.attempt:
            return
        if run.state in BEFORE_GATE:
            end_before_gate(unit, run, "failed", self.message, self.error_class, now)
        elif self.ask_again is not None and run.ended_at is None:
            unit.after(partial(self.ask_again, run))


@dataclass(frozen=True, slots=True)
class AttemptEnded(_AboutRun):
    """The launcher has no trace of the attempt. It sees only the copy on its own host.

    Attributes:
        host: Host whose copy is gone; None for the host in the run's item.
        driver: Driver that was known to have passed the gate when the launcher was asked.
        ask_again: Callback that asks the launcher again, about a driver that its answer may not have covered.
    """

    attempt: int
    gone: ProgramEnded
    memory: ShardCache | None = None
    host: str | None = None
    driver: str | None = None
    ask_again: Callable[[Run], None] | None = None
    name: str = "gone"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None or run.attempt != self.attempt:
            return
        if run.ended_at is not None:
            conclude(unit, run, self.memory, now)
        elif run.state in BEFORE_GATE:
            self._died_before_gate(unit, run, now)
        elif not self._was_the_driver(run):
            # I4: the driver that passed the gate is on another host. Its end is reported, or seen by a node of that
            # host.
            if run.external_id is not None:
                known = replace(run, external_id=None, host=run.driver_host, boot_id=None)
                unit.put(known, run.key(unit.shard))
        elif self.ask_again is not None and run.driver_host is None and run.driver != self.driver:
            # I4: an earlier copy may have ended. A platform without hosts may start an artefact again.
            ask_again = self.ask_again
            unit.after(lambda: ask_again(run))
        else:
            outcome = "killed" if run.cancel_requested else "failed"
            reason = "cancelled" if run.cancel_requested else "no_report"
            ended = replace(
                run,
                ended_at=now,
                outcome=outcome,
                reason=reason,
                exit_code=self.gone.exit_code,
                last_lines=self.gone.last_lines or None,
            )
            conclude(unit, ended, self.memory, now)

    def _was_the_driver(self, run: Run) -> bool:
        """Whether the ended copy was the driver. An attempt has one copy per host, so the host decides; a user's
        program may return any exit code.

        If the driver's host was not recorded, a copy that the gate refused is not the driver.
        """
        if run.external_id is None and self.host is None:
            return False
        if run.driver_host is None:
            return run.external_id is not None and self.gone.error_class != DUPLICATE
        return run.driver_host == (self.host or run.host)

    def _died_before_gate(self, unit: UnitOfWork, run: Run, now: int) -> None:
        error_class = self.gone.error_class
        if error_class is None and self.gone.exit_code == 0:
            error_class = UNKNOWN_ERROR  # The exit code claims success, but the program has not run.
        elif error_class in (None, DUPLICATE):
            error_class = "transient"
        message = self.gone.message or f"the program ended with exit code {self.gone.exit_code} before the start gate"
        submit_again(unit, run, message, error_class or "transient", now, self.gone)


@dataclass(frozen=True, slots=True)
class NoteSilence(_AboutRun):
    """Stores why no launcher has accepted the attempt, so that `why` shows it. The attempt is submitted again."""

    attempt: int
    message: str
    name: str = "look"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None or run.attempt != self.attempt or run.state != "submitting" or run.ended_at is not None:
            return
        if not is_same_silence(run, self.message):
            unit.put(replace(run, setback=silence_of(run, self.message, now)), run.key(unit.shard))


@dataclass(frozen=True, slots=True)
class MarkLost(_AboutRun):
    """The launcher cannot answer about the attempt any more.

    If the attempt has started, the run keeps its permits until its end is observed (I4). If it has not started, it is
    closed and submitted again. The gate refuses the old artefact on any host.
    """

    attempt: int
    name: str = "lost"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None or run.attempt != self.attempt or run.ended_at is not None:
            return
        if run.state in BEFORE_GATE:
            submit_again(unit, run, "host_lost", "transient", now)
            unit.after(Cancel(run.id, run.attempt))
        else:
            mark_lost(unit, run, now)


@dataclass(frozen=True, slots=True)
class MarkFound(_AboutRun):
    """The launcher has found a lost program: it runs, and is watched from now on."""

    attempt: int
    name: str = "look"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is not None and run.attempt == self.attempt and run.state == "lost" and run.ended_at is None:
            unit.put(replace(run, state="running", reason=None), run.key(unit.shard))


@dataclass(frozen=True, slots=True)
class PublishStart(_AboutRun):
    """Publishes the start of a run that a schedule subscribes to, once for each run, whatever its end."""

    name: str = "look"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None or run.told or run.started_at is None or run.ended_at is not None:
            return  # The end of the run also reports its start.
        unit.put(replace(run, told=True), run.key(unit.shard))
        run = as_dated_here(run, now)
        out = told_row(run, RunState.RUNNING, run.started_at or now)
        unit.put_new(out, out.key(unit.shard))


@dataclass(frozen=True, slots=True)
class RequestCancel(_AboutRun):
    """Cancels a run. Before the gate the run is closed. After it the launcher ends the program, and `AttemptEnded`
    records the end.

    Attributes:
        reason: Reason in the ledger of a run that is closed.
    """

    reason: str = "by_request"
    name: str = "cancel_run"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        run = self.read(unit)
        if run is None or run.ended_at is not None:
            return
        if run.state in BEFORE_GATE:
            close_run(unit, run, "cancelled", self.reason, now)
        elif not run.cancel_requested:
            unit.put(replace(run, cancel_requested=True), run.key(unit.shard))
            unit.after(Cancel(run.id, run.attempt))
            if run.driver_host is not None and (run.external_id is None or run.host != run.driver_host):
                # This owner's launcher started another copy, or none. A node of the driver's host ends the driver when
                # it takes over.
                fields: dict[str, Value] = {"run_id": run.id, "attempt": run.attempt, "host": run.driver_host}
                unit.after(Notice("cancel_out_of_reach", fields))


def _submissions(run: Run) -> int:
    """Returns how often the current try of the program was submitted."""
    return run.attempt - run.free_attempts - run.submissions_before


def submit_pause(run: Run) -> int:
    """Returns the pause before the next submission: a part of the doubled pause, chosen by a hash, so that simultaneous
    failures spread out.
    """
    longest = min(SUBMIT_BACKOFF_MS << (_submissions(run) - 1), SUBMIT_BACKOFF_LAST_MS)
    share = int.from_bytes(hash_of(run.id, str(run.attempt))[:4], "big") / 2**32
    return max(1, int(longest * share))


def submit_again(
    unit: UnitOfWork, run: Run, message: str, error_class: str, now: int, gone: ProgramEnded | None = None
) -> None:
    """Closes an attempt that has not passed the gate, and creates the next one if the same submission may work.

    Args:
        unit: Unit of work of this decision.
        run: The run with that attempt.
        message: Reason why the attempt failed.
        error_class: Class of that reason.
        now: The present.
        gone: End of the program, if the launcher saw it.
    """
    gone = gone or ProgramEnded(None)
    setback = setback_of(run, gone, message, error_class, now)
    seen = replace(run, exit_code=gone.exit_code, last_lines=gone.last_lines or None)
    if run.cancel_requested:
        end_before_gate(unit, seen, "killed", "cancelled", None, now)
    elif error_class not in PASSING_ERRORS and error_class != UNKNOWN_ERROR:
        end_before_gate(unit, seen, "failed", message, error_class, now)
    elif dies_alike(run, setback):
        end_before_gate(
            unit, seen, "failed", f"two attempts ended alike before the start gate: {message}", "config", now
        )
    elif _submissions(run) < SUBMIT_TRIES_MAX:
        pause = submit_pause(run)
        if comes_too_late(run, now + pause):
            finish(unit, final_failure(run, TOO_LATE), now, TOO_LATE)
            return
        # One transaction closes attempt k and creates k + 1: the gate admits only the current attempt.
        again = replace(
            run,
            attempt=run.attempt + 1,
            state="submitting",
            external_id=None,
            host=None,
            boot_id=None,
            not_before=now + pause,
            start_by=now + pause + SUBMIT_WITHIN_MS,
            setback=setback,
        )
        unit.put(again, run.key(unit.shard))
    else:
        given_up = f"{SUBMIT_TRIES_MAX} submissions have ended before the start gate"
        end_before_gate(unit, seen, "failed", message, error_class, now, given_up)


def mark_lost(unit: UnitOfWork, run: Run, now: int) -> None:
    """Marks a running program as lost. Its later reports still count."""
    if run.state == "running":
        lost = replace(run, state="lost", reason=HOST_SILENT)
        unit.put(lost, run.key(unit.shard))
        out = told_row(lost, RunState.LOST, now)
        # Otherwise the row of an earlier loss, after which the program was found, is still in the outbox.
        if unit.item(out.key(unit.shard)) is None:
            unit.put_new(out, out.key(unit.shard))


def release_lost(
    unit: UnitOfWork, run: Run, actor: str | None, why: str | None, memory: ShardCache | None, now: int
) -> None:
    """Ends a lost run as if its program's end had been observed, because a user states that it has ended.

    The launcher is not asked. A program that it finds later belongs to an ended run.
    """
    reason = "released" + (f" by {actor}" if actor else "") + (f": {why}" if why else "")
    outcome = "killed" if run.cancel_requested else "failed"
    ended = replace(run, ended_at=now, outcome=outcome, reason=reason, error_class="lost")
    conclude(unit, ended, memory, now)
    fields: dict[str, Value] = {"run_id": run.id, "schedule": run.ref, "attempt": run.attempt}
    unit.after(Notice("run_released", fields | {"reason": reason}))
