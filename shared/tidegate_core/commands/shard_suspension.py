"""Carries out scope suspensions in one shard: it stops in memory first, then in the lease, and then ends pending work.

The shard actor creates it and passes each new version on. A change takes five steps:

1. the message scheduler holds messages of suspended scopes;
2. the lease carries the new version, so that no decision follows an older one;
3. jobs, evidence and runs before the start gate end;
4. messages on their way to the broker settle, and held messages of resumed scopes are released;
5. the lease acknowledges the version (`roll_out.py` waits for that).

If the change suspends a scope, step 5 comes before the release: a stop waits for no broker. If the owner dies in between, the next owner
repeats all five steps. Evidence and jobs that end are in the ledger as `suspended`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from tidegate_core.commands.end_pending import ENDED_PER_PAGE, PAGE_ACTIONS, end
from tidegate_core.engine.actor_context import Fenced
from tidegate_core.engine.decision import Procedure
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.engine.shard_writer import ShardWriter, WriterClosed
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, ScopeSuspensions
from tidegate_core.rows.store_operations import Key
from tidegate_core.runs.run_lifecycle import BEFORE_GATE
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT, ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork

SUSPENDED = "suspended"
"""Reason in the ledger for work that ends; the same as for a suspend of a schedule."""
TRY_AGAIN_MS = 10 * 60_000
"""Pause before a failed change, or a failed release, is tried again. The next request may be months away."""


class DoneCallback(Protocol):
    """Called when a procedure of the shard writer is done, or with the error for which the shard writer dropped it."""

    def __call__(self, error: Exception | None = None) -> None: ...


class ShardSuspension:
    """The suspensions of one shard, and the change in progress.

    Args:
        writer: Writer of the shard; its decisions follow the suspensions.
        memory: Cache with the open jobs and runs.
        plane: Message scheduler; it holds messages and releases them.
        done: Version that the lease acknowledges.
        on_carried: Called when the lease carries a new version, to handle deferred rows and jobs.
    """

    def __init__(
        self,
        writer: ShardWriter,
        memory: ShardCache,
        plane: MessageScheduler,
        done: int,
        on_carried: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._memory = memory
        self._plane = plane
        self._done = done
        self._on_carried = on_carried
        self._wanted = NO_SUSPENSIONS
        self._in_progress = False
        self._release_is_incomplete = False
        self._armed = False

    def begin(self, controls: ScopeSuspensions) -> Operation[None]:
        """Applies the suspensions in memory, before the shard serves: to the message scheduler and to the decisions of the shard writer.

        The lease may still carry an older version. Decisions that follow newer suspensions under an older version only admit less.
        """
        self._wanted = controls
        self._writer.controls = controls.under(self._writer.controls.version)
        self._writer.ended_through = self._done
        self._release_is_incomplete = yield from self._plane.holding.begin(controls, self._done)

    def recover(self) -> None:
        """Completes the change of a former owner, and later ones."""
        self._continue()

    def take(self, controls: ScopeSuspensions) -> None:
        """Takes suspensions as they were read; a newer version begins a change."""
        if controls.version > self._wanted.version:
            self._wanted = controls
            self._plane.holding.controls = controls
            self._continue()

    def _continue(self) -> None:
        if not self._in_progress and (self._done < self._wanted.version or self._release_is_incomplete):
            self._in_progress = True
            self._writer.host.start_safely("controls", f"shard {self._writer.shard}", self._carry_out())

    def _carry_out(self) -> Operation[None]:
        """Carries out versions, several at once if they are there. A version that comes during a change is next."""
        controls = self._wanted
        try:
            if self._done == controls.version:
                yield from self._release()
            while self._done < self._wanted.version:
                controls = self._wanted
                on_their_way = self._plane.holding.on_their_way()
                try:
                    yield from self._in_lane(
                        partial(EndSuspendedWork, self._memory, controls, self._done, self._on_carried)
                    )
                except Exception:
                    yield from self._release()  # Messages of other namespaces must not wait for work that cannot end.
                    raise
                yield from self._plane.holding.settle(on_their_way)
                is_a_stop = controls.names_dropped(self._done)
                if not is_a_stop:
                    yield from self._release()
                    if self._release_is_incomplete and self._wanted is not controls:
                        continue  # The next version may be a stop. It also takes over the rest of this one.
                yield from self._in_lane(FinishSuspensions)
                self._done = controls.version
                if is_a_stop:
                    yield from self._release()  # Messages of other namespaces, and of scopes that an earlier version resumed.
        except Exception:
            self._in_progress = False
            if controls.version < self._wanted.version:
                self._continue()  # A newer version came during the change, and may end the failure.
            else:
                self._retry_later()
            raise
        # No yield since the last check of `_wanted`: from here on `take` itself begins the next change.
        self._in_progress = False
        if self._release_is_incomplete:
            self._retry_later()

    def _release(self) -> Operation[None]:
        self._release_is_incomplete = True  # If the release fails, it is tried again.
        self._release_is_incomplete = not (yield from self._plane.holding.release())

    def _retry_later(self) -> None:
        """Sets one alarm, however many failures there were."""
        if not self._armed:
            self._armed = True
            self._writer.host.call_at(self._writer.host.now + TRY_AGAIN_MS, self._ring)

    def _ring(self) -> None:
        self._armed = False
        self._continue()

    def _in_lane(self, work: Callable[[DoneCallback], Procedure]) -> Operation[None]:
        """Waits for a procedure in the shard writer. Raises the error for which the shard writer dropped it."""
        done = Signal(f"controls {self._writer.shard}")
        dropped: list[Exception] = []

        def told(error: Exception | None = None) -> None:
            dropped.extend([] if error is None else [error])
            self._writer.host.operations.raise_(done)

        self._writer.add_urgent(work(told))
        yield done
        if dropped:
            raise dropped[0]


@dataclass(frozen=True, slots=True)
class EndSuspendedWork(Procedure):
    """Puts the version into the lease, then ends work that was pending when its scope was suspended, page by page.

    Attributes:
        memory: Cache of the shard.
        controls: Suspensions to carry out.
        since: Version that the shard has carried out: its suspensions need no end here.
        on_carried: As in `ShardSuspension`.
        told: Called when all pages are done.
    """

    memory: ShardCache
    controls: ScopeSuspensions
    since: int
    on_carried: Callable[[], None]
    told: DoneCallback
    name: str = "controls"

    @property
    def about(self) -> str:
        return f"controls {self.controls.version}"

    def run(self, writer: ShardWriter) -> Operation[None]:
        yield from writer.adopt_suspensions(self.controls)
        self.on_carried()
        if self.controls.names_dropped(self.since):
            # From here on no work of a suspended scope is created or admitted, so the list is complete.
            yield from self._end(writer, [*self._jobs_and_runs(writer), *(yield from self._evidence(writer))])
        writer.ended_through = self.controls.version
        # Jobs that admission passed over during the pages, because a page might have ended them.
        for ref in self.memory.waiting_refs():
            self.memory.hold(ref, writer.host.now)
        self.told()

    def _end(self, writer: ShardWriter, pending: list[Key]) -> Operation[None]:
        """Ends pending work, page by page. Raises the error of an item that cannot end, after all others have ended."""
        most, failed = ENDED_PER_PAGE, None
        while pending:
            page = EndPage(tuple(pending[:most]), self._is_dropped)
            try:
                yield from writer.decide_alone(page)
            except (Fenced, WriterClosed):
                raise
            except Exception as error:  # noqa: BLE001 - any error of one item must not stop the others
                if most == 1:
                    writer.host.failed(page.name, page.about, error)
                    failed, pending = error, pending[1:]
                else:
                    # The page is too large, or one item causes the error. Halving finds that item.
                    most //= 2
                    writer.host.note("page_halved", shard=writer.shard, about=page.about, most=most, error=repr(error))
            else:
                pending = [*page.left, *pending[most:]]
                most = min(2 * most, ENDED_PER_PAGE)
            yield from writer.yield_turn()
        if failed is not None:
            raise failed

    def _jobs_and_runs(self, writer: ShardWriter) -> list[Key]:
        runs = [
            keys.run(writer.shard, run.id)
            for run in self.memory.runs.values()
            if run.state in BEFORE_GATE and self._is_dropped(run.namespace, run.admitted_at)
        ]
        jobs = [
            keys.job(writer.shard, job.id)
            for job in self.memory.jobs.values()
            if job.state == PENDING_CONSTRAINT and self._is_dropped(job.namespace, job.satisfied_at)
        ]
        return [*runs, *jobs]

    def _evidence(self, writer: ShardWriter) -> Operation[list[Key]]:
        """Reads open evidence, which the cache does not have. Evidence of a job ends with the job."""
        items = yield from writer.read_range(*keys.prefix_range(keys.EVIDENCE_PREFIX))
        found = [from_item(Evidence, item) for item in items]
        return [
            each.key(writer.shard) for each in found if not each.job and self._is_dropped(each.namespace, each.first_at)
        ]

    def _is_dropped(self, namespace: str, pending_since: int) -> bool:
        return self.controls.drops(namespace, pending_since, self.since)


@dataclass(frozen=True, slots=True)
class EndPage:
    """Ends some jobs, runs before the start gate, and evidence, in one transaction.

    Attributes:
        pending: Keys of items that may have to end.
        is_dropped: Whether pending work of a namespace, since an instant, ends. New evidence may have taken a key between two pages.
        left: Keys for which the transaction has no room; the decision fills it.
    """

    pending: tuple[Key, ...]
    is_dropped: Callable[[str, int], bool]
    left: list[Key] = field(default_factory=list)
    name: str = "end_covered"

    @property
    def about(self) -> str:
        return self.pending[0].sk

    @property
    def stale(self) -> tuple[Key, ...]:
        """All items: a run may have passed the start gate since it was read."""
        return self.pending

    def decide(self, unit: UnitOfWork, now: int) -> None:
        self.left.clear()  # The decision may run again.
        for key, item in zip(self.pending, unit.items(self.pending), strict=True):
            if unit.actions > PAGE_ACTIONS:
                self.left.append(key)
                continue
            if item is None or unit.item(key) is None:
                continue  # It has ended already, perhaps with another item of this page.
            prefix, _ = keys.split_prefix(key)
            if prefix == keys.RUN_PREFIX:
                run = from_item(Run, item)
                if run.state in BEFORE_GATE and run.ended_at is None:
                    end(unit, run, SUSPENDED, now)
            elif prefix == keys.JOB_PREFIX:
                job = from_item(Job, item)
                if job.state == PENDING_CONSTRAINT:
                    end(unit, job, SUSPENDED, now)
            else:
                evidence = from_item(Evidence, item)
                if not evidence.job and self.is_dropped(evidence.namespace, evidence.first_at):
                    end(unit, evidence, SUSPENDED, now)


@dataclass(frozen=True, slots=True)
class FinishSuspensions(Procedure):
    """Acknowledges the version in the lease."""

    told: DoneCallback
    name: str = "controls_done"

    @property
    def about(self) -> str:
        return "controls"

    def run(self, writer: ShardWriter) -> Operation[None]:
        yield from writer.finish_suspensions()
        self.told()
