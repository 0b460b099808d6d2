"""Attempts of runs between the shard and the launcher: submit, adopt, watch.

Called by the shard actor. It sends effects to the launcher, and adds decisions to the shard writer. Each step may be
repeated until its
result is certain: the launcher's names and the start gate make a repeat harmless.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tidegate_core.engine.actor_context import ERROR_CHARACTERS_MAX
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.values.problems import both_ends
from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.effects import (
    Cancel,
    Items,
    LookedUp,
    Lookup,
    NotSubmitted,
    Produce,
    ProgramEnded,
    Read,
    Submit,
    SubmitFailed,
    Submitted,
    Watch,
)
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import Run, is_same_silence
from tidegate_core.runs.launch_document import launch_order
from tidegate_core.runs.retries import comes_too_late, is_overdue
from tidegate_core.runs.run_events import run_record
from tidegate_core.runs.run_lifecycle import (
    BEFORE_GATE,
    AttemptEnded,
    CheckRun,
    MarkFound,
    MarkLost,
    MarkSubmitted,
    NoteSilence,
    PublishStart,
    RejectRun,
    RescheduleAttempt,
)
from tidegate_core.shard.events.evidence_log import Entry, chunk_range, merged_entries
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.shard.events.subscriptions import RUNS
from tidegate_core.shard.shard_cache import ShardCache

LOOKUP_AGAIN_MS = 10_000
SUBMIT_RETRY_MS = 1_000
SUBMIT_RETRY_LAST_MS = 30_000
PROBE_GAP_MS = 10 * 60_000
"""A run whose host cannot be asked for this long is `lost`."""


class Attempts:
    """One per shard."""

    def __init__(self, writer: ShardWriter, memory: ShardCache, index: SubscriptionIndex) -> None:
        self._writer = writer
        self._host = writer.host
        self._memory = memory
        self._index = index
        self._launching: set[tuple[str, int]] = set()
        self._watched: defaultdict[tuple[str, int], set[str | None]] = defaultdict(set)
        """Hosts whose copies of an attempt are watched."""
        self._unasked: set[tuple[str, int]] = set()
        """Attempts that the node did not pass to the launcher, as it last reported: membership was not proven, or other
        attempts come first."""
        self._closed = False

    def recover(self) -> None:
        """Continues with a predecessor's runs."""
        for run_id in list(self._memory.runs):
            self.adopt(run_id)

    def adopt(self, run_id: str) -> None:
        """Continues a run from what the launcher reports about it now."""
        run = self._memory.runs.get(run_id)
        if run is not None:
            if run.started_at is not None and not run.told:
                self._host.start_safely("tell_start", run.id, self._tell_start(run))
            self._launching.discard((run.id, run.attempt))
            self._host.start_safely("adopt", run.id, self._adopt(run))

    def close(self) -> None:
        """Stops all further submissions."""
        self._closed = True

    def check(self, run_id: str) -> None:
        """Checks a run whose item may have changed, or whose time-out may have passed."""
        run = self._memory.runs.get(run_id)
        if run is not None:
            self._writer.add(
                CheckRun(self._writer.shard, run_id, self._seen, self._memory, self._is_unasked, self._is_watched)
            )

    def check_all(self) -> None:
        """Checks all runs for changes that no wake-up reported.

        A run that already has a check in the queue gets no second one: a shard writer with a backlog has enough to do.
        """
        to_be_taken = {each.run_id for each in self._writer.queued(CheckRun)}
        for run_id in list(self._memory.runs):
            if run_id not in to_be_taken:
                self.check(run_id)

    def check_liveness(self, ref: str, incarnation: str) -> Operation[None]:
        """Acts on all reports of the runs of one incarnation of a schedule, including those without a wake-up.

        When it returns, the resulting outbox rows are written. It waits for the queued decisions first. So a run that
        an answer of an earlier request no longer lists as open is included.
        """
        yield from self._writer.wait_for_queued()
        runs = [run.id for run in self._memory.runs_of(ref) if run.incarnation == incarnation]
        if not runs:
            return
        wanted = {run_id: keys.run(self._writer.shard, run_id) for run_id in runs}
        found = yield from self._host.read_for_good(Read(tuple(wanted.values())))
        assert isinstance(found, Items)
        present = [from_item(Run, found.found[key]) for key in wanted.values() if key in found.found]
        started = [run for run in present if run.started_at is not None and run.ended_at is None and not run.told]
        for run in present:
            if run.ended_at is not None or run in started:
                self.check(run.id)
        yield from self._tell_starts(ref, started)
        yield from self._writer.wait_for_queued()  # Also for runs that ended during the read.

    def follow(self, before: Run | None, run: Run | None) -> None:
        """A transaction of this shard has written or removed the run's item."""
        if before is not None and (run is None or run.attempt != before.attempt):
            self._launching.discard((before.id, before.attempt))
            self._unasked.discard((before.id, before.attempt))
        if run is None:
            return
        if run.state == "submitting" and (before is None or before.attempt != run.attempt):
            self._host.start_safely("launch", run.id, self._launch(run))
            if before is not None and before.started_at is None and run.started_at is not None:
                # The program began and failed before a check, and the end of the run may be hours away.
                self._host.start_safely("tell_start", run.id, self._tell_start(run))
        elif run.state == RunState.RUNNING and before is not None and before.state in BEFORE_GATE:
            # The decision that wrote this state found that the program had passed the gate. No later check will report
            # it.
            self._has_begun(run)
        elif run.state == RunState.LOST and (before is None or before.state != run.state):
            if before is not None and before.state in BEFORE_GATE:
                self._has_begun(run)
            self._tell(run, RunState.LOST, self._host.now)
            self._find(run)  # The launcher may have answered while the loss was written.

    def _seen(self, run: Run) -> None:
        """The gate has let the run's program pass."""
        run = self._as_written(run)
        before = self._memory.runs.get(run.id)
        if before is None or before.attempt != run.attempt or before.state == run.state:
            return
        if run.state == RunState.RUNNING:
            self._memory.runs[run.id] = run
            self._has_begun(run)

    def _as_written(self, run: Run) -> Run:
        """Returns a run that a decision has read, in the state in which later decisions of the same transaction have
        left it.
        """
        key = keys.run(self._writer.shard, run.id)
        item = self._writer.view.item(key) if self._writer.view.knows(key) else None
        return run if item is None else from_item(Run, item)

    def _has_begun(self, run: Run) -> None:
        self._tell(run, RunState.RUNNING, run.started_at or self._host.now)
        self._host.start_safely("tell_start", run.id, self._tell_start(run))

    def _tell_start(self, run: Run) -> Operation[None]:
        """Publishes the start as a fact if a schedule subscribes to it. Otherwise the end of the run reports the start
        early enough for later subscribers.
        """
        yield from self._tell_starts(run.ref, [run])

    def _tell_starts(self, ref: str, runs: Sequence[Run]) -> Operation[None]:
        if not runs:
            return
        event_key = f"{RUNS}{ref}"
        matched = yield from self._index.match(self._host, [event_key])
        if any(listener.row.starts for listener in matched[event_key]):
            for run in runs:
                self._writer.add(PublishStart(self._writer.shard, run.id))

    def _tell(self, run: Run, state: RunState, at: int) -> None:
        """Sends a record to `tidegate.runs`, best effort. The record of the end is guaranteed."""
        record = run_record(run, state, at)
        self._host.emit(Produce(self._host.holding.runs_topic, run.id.encode(), record.encode()))

    def _is_open(self, run: Run) -> bool:
        known = self._memory.runs.get(run.id)
        return known is not None and known.attempt == run.attempt

    # -- with the launcher --------------------------------------------------------------------------------------------

    def _adopt(self, run: Run) -> Operation[None]:
        """Looks up a predecessor's run under its name, and continues from the result."""
        if run.ended_at is not None:
            self.check(run.id)
            return
        if run.state == "submitting" and run.not_before > self._host.now:
            yield from self._launch(run)  # The attempt is planned for later, so no launcher knows of it.
            return
        since = self._host.now
        while (run.id, run.attempt) not in self._launching and self._is_open(run):
            run = self._memory.runs[run.id]  # The program may have passed the gate since the last look-up.
            # Ask the driver's host if it is known. The run's item may name the host of another copy.
            found = yield Lookup(run.id, run.attempt, run.program_host, run.boot_id)
            assert isinstance(found, LookedUp)
            if found.where == "found":
                yield from self._adopted(run, found)
                return
            if found.where == "absent" and run.state == "submitting":
                if is_overdue(run, self._host.now):
                    self._plan_anew(run)
                else:
                    yield from self._launch(run)
                return
            if found.where == "absent" and (run.external_id is not None or run.driver_host is not None):
                # The run was submitted or started, and the launcher, which sees everything on its side, has no trace of
                # it.
                self._gone(run, ProgramEnded(None, message="nothing of it is left"), run.program_host)
                return
            # Otherwise the answer is unknown. Or the run is absent, and was started by an artefact whose submission got
            # no answer, so its place was not recorded. It ends with its report. Without a report it is shown as lost.
            if self._host.now - since >= PROBE_GAP_MS:
                self._writer.add(MarkLost(self._writer.shard, run.id, run.attempt))
                since = self._host.now
            yield from self._host.sleep(LOOKUP_AGAIN_MS)

    def _adopted(self, run: Run, found: LookedUp) -> Operation[None]:
        if run.cancel_requested:
            self._host.emit(Cancel(run.id, run.attempt))
        if run.external_id is None or run.host != run.program_host:
            self._submitted(run, Submitted(found.external_id or "", found.host or "", found.boot_id or ""))
        yield from self._watch(run, found.host)

    def _launch(self, run: Run) -> Operation[None]:
        """Hands the attempt to the launcher until the launcher accepts or rejects it."""
        if (run.id, run.attempt) in self._launching:
            return
        self._launching.add((run.id, run.attempt))
        if run.not_before > self._host.now:
            yield from self._host.sleep(run.not_before - self._host.now)
        try:
            entries = yield from self._manifest(run)
        except Exception as error:  # noqa: BLE001 - no launcher is at fault, and the user must see it
            self._host.failed("manifest", run.id, error)
            message = both_ends(f"its manifest cannot be read: {error}", ERROR_CHARACTERS_MAX)
            self._reject(run, "config", message)
            return
        pause = SUBMIT_RETRY_MS
        while self._is_open(run) and not self._closed:
            if comes_too_late(run, self._host.now):
                self._plan_anew(run)
                return
            answer: Submitted | SubmitFailed | NotSubmitted = yield Submit(launch_order(run, entries))
            match answer:
                case Submitted():
                    self._submitted(run, answer)
                    yield from self._watch(run, answer.host)
                    return
                case SubmitFailed(error_class, message):
                    self._reject(run, error_class, message)
                    return
                case NotSubmitted(message, unasked):
                    self._host.note("not_submitted", run_id=run.id, attempt=run.attempt, message=message)
                    if unasked and self._is_open(run):
                        self._unasked.add((run.id, run.attempt))
                    else:
                        self._unasked.discard((run.id, run.attempt))
                    self._note_silence(run, message)
                    yield from self._host.sleep(pause)
                    pause = min(2 * pause, SUBMIT_RETRY_LAST_MS)

    def _reject(self, run: Run, error_class: str, message: str) -> None:
        self._writer.add(RejectRun(self._writer.shard, run.id, run.attempt, error_class, message, self._ask_again))

    def _note_silence(self, run: Run, message: str) -> None:
        known = self._memory.runs.get(run.id)
        if known is not None and known.attempt == run.attempt and not is_same_silence(known, message):
            self._writer.add(NoteSilence(self._writer.shard, run.id, run.attempt, message))

    def _plan_anew(self, run: Run) -> None:
        self._writer.add(RescheduleAttempt(self._writer.shard, run.id, self._memory, self._ask_again))

    def _submitted(self, run: Run, submitted: Submitted) -> None:
        node = self._host.holding.node
        self._writer.add(MarkSubmitted(self._writer.shard, run.id, run.attempt, submitted, node))

    def _manifest(self, run: Run) -> Operation[list[Entry]]:
        if run.evidence_id is None:
            return []
        low, high = chunk_range(run.evidence_id)
        items = yield from self._writer.read_range(low, high)
        return merged_entries([str(item["entries"]) for item in items[: run.chunks]])

    def _watch(self, run: Run, host: str | None) -> Operation[None]:
        name = (run.id, run.attempt)
        if host in self._watched[name]:
            return  # The existing watch reports the end.
        self._watched[name].add(host)
        known = self._memory.runs.get(run.id)
        if known is not None and known.state == RunState.LOST:
            self._find(known)
        told: ProgramEnded | LookedUp = yield Watch(run.id, run.attempt)
        self._watched[name].discard(host)
        if not self._watched[name]:
            del self._watched[name]
        if isinstance(told, ProgramEnded):
            self._gone(run, told, host)
            return
        # The launcher cannot answer now. The shard asks again, as for a predecessor's run, until it gets an answer or
        # the run is lost.
        yield from self._host.sleep(LOOKUP_AGAIN_MS)
        if self._is_open(run):
            self.adopt(run.id)

    def _find(self, lost: Run) -> None:
        """Marks a lost run as running if its program is watched: a look-up or a repeated submission has found it."""
        if self._is_watched(lost):
            self._writer.add(MarkFound(self._writer.shard, lost.id, lost.attempt))

    def _is_unasked(self, run: Run) -> bool:
        return (run.id, run.attempt) in self._unasked

    def _is_watched(self, run: Run) -> bool:
        """Whether the run's driver is watched, if its host is known; otherwise whether any copy is watched."""
        hosts = self._watched.get((run.id, run.attempt), ())
        return bool(hosts) and (run.driver_host is None or run.driver_host in hosts)

    def _gone(self, run: Run, gone: ProgramEnded, host: str | None) -> None:
        """Adds the decision on the end of an attempt. `run` is the run as known when the launcher was asked."""
        self._writer.add(
            AttemptEnded(self._writer.shard, run.id, run.attempt, gone, self._memory, host, run.driver, self._ask_again)
        )

    def _ask_again(self, run: Run) -> None:
        """Asks the launcher again, because the run has changed since. After a driver passed the gate, the earlier
        answer may be about another copy.
        """
        if self._is_open(run):
            self._seen(run)  # The start may not be recorded in the cache.
            self._memory.runs[run.id] = self._as_written(run)
            self.adopt(run.id)
