"""One shard under the wide controls: it stops in memory first, then its lease says so, then what is pending ends (I7).

Each change goes through five steps, and a successor that finds the lease in between goes through all of them again: the
delivery plane stops; the lease carries the new version; jobs, evidence and runs before the gate end; what is on its way to
the broker has settled and what was held back is let go; the lease says that it is done. Where something was suspended it says so
before anything is let go: a stop waits for no broker.
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
"""Reason in the ledger of what a wide suspend ends; the same as that of the schedule's own."""
TRY_AGAIN_MS = 10 * 60_000
"""Before what failed, or could not be let go, is tried again: nobody may change a control for months."""


class DoneCallback(Protocol):
    """Is called when something in the lane is done, or with why it was dropped."""

    def __call__(self, error: Exception | None = None) -> None: ...


class ShardSuspension:
    """One per shard.

    Args:
        lane: Carries the version; ends what is pending.
        memory: Jobs and runs that are open.
        plane: Holds messages back and lets them go.
        done: Version of which the lease says that all is done.
        look_again: Called when the lease carries another version: at what a wide suspend has left.
    """

    def __init__(
        self, lane: ShardWriter, memory: ShardCache, plane: MessageScheduler, done: int, look_again: Callable[[], None]
    ) -> None:
        self._lane = lane
        self._memory = memory
        self._plane = plane
        self._done = done
        self._look_again = look_again
        self._wanted = NO_SUSPENSIONS
        self._under_way = False
        self._something_is_left = False
        self._armed = False

    def begin(self, controls: ScopeSuspensions) -> Operation[None]:
        """Before anything is served: the plane sends nothing that is covered, and the lane's decisions know what is.

        The lease may carry an older version still; whoever decides from newer controls under an older version admits less.
        """
        self._wanted = controls
        self._lane.controls = controls.under(self._lane.controls.version)
        self._lane.ended_through = self._done
        self._something_is_left = yield from self._plane.holding.begin(controls, self._done)

    def recover(self) -> None:
        """Goes on where a predecessor stopped, and with what has changed since."""
        self._go_on()

    def take(self, controls: ScopeSuspensions) -> None:
        """The wide controls have changed."""
        if controls.version > self._wanted.version:
            self._wanted = controls
            self._plane.holding.controls = controls
            self._go_on()

    def _go_on(self) -> None:
        if not self._under_way and (self._done < self._wanted.version or self._something_is_left):
            self._under_way = True
            self._lane.host.start_safely("controls", f"shard {self._lane.shard}", self._bring_under())

    def _bring_under(self) -> Operation[None]:
        """Version by version, or several at once: a control that comes meanwhile has its turn next."""
        controls = self._wanted
        try:
            if self._done == controls.version:
                yield from self._let_go()
            while self._done < self._wanted.version:
                controls = self._wanted
                on_their_way = self._plane.holding.on_their_way()
                try:
                    yield from self._in_lane(
                        partial(EndSuspendedWork, self._memory, controls, self._done, self._look_again)
                    )
                except Exception:
                    yield from self._let_go()  # Of other namespaces, it may be: what cannot end is none of their business.
                    raise
                yield from self._plane.holding.settle(on_their_way)
                is_a_stop = controls.names_dropped(self._done)
                if not is_a_stop:
                    yield from self._let_go()
                    if self._something_is_left and self._wanted is not controls:
                        continue  # The next one may be a stop; what is left of this one is its part as well.
                yield from self._in_lane(FinishSuspensions)
                self._done = controls.version
                if is_a_stop:
                    yield from self._let_go()  # Of other namespaces, and of what was resumed just before it.
        except Exception:
            self._under_way = False
            if controls.version < self._wanted.version:
                self._go_on()  # One that came meanwhile, and may be what ends the failure.
            else:
                self._try_again_later()
            raise
        # Without a pause since the last look at what is wanted: from here on whoever changes it goes on by himself.
        self._under_way = False
        if self._something_is_left:
            self._try_again_later()

    def _let_go(self) -> Operation[None]:
        self._something_is_left = True  # Until it is known: whoever fails here comes back.
        self._something_is_left = not (yield from self._plane.holding.release())

    def _try_again_later(self) -> None:
        """One alarm, however often it failed."""
        if not self._armed:
            self._armed = True
            self._lane.host.call_at(self._lane.host.now + TRY_AGAIN_MS, self._ring)

    def _ring(self) -> None:
        self._armed = False
        self._go_on()

    def _in_lane(self, work: Callable[[DoneCallback], Procedure]) -> Operation[None]:
        """Waits for work in the lane. Raises why it was dropped."""
        done = Signal(f"controls {self._lane.shard}")
        dropped: list[Exception] = []

        def told(error: Exception | None = None) -> None:
            dropped.extend([] if error is None else [error])
            self._lane.host.operations.raise_(done)

        self._lane.add_urgent(work(told))
        yield done
        if dropped:
            raise dropped[0]


@dataclass(frozen=True, slots=True)
class EndSuspendedWork(Procedure):
    """Has the lease carry the controls, then ends what was pending when its scope was suspended, page by page.

    Attributes:
        since: What was suspended up to this version has ended before.
        look_again: As of `ShardSuspension`.
        told: Called when all of it has ended; or with why it was dropped.
    """

    memory: ShardCache
    controls: ScopeSuspensions
    since: int
    look_again: Callable[[], None]
    told: DoneCallback
    name: str = "controls"

    @property
    def about(self) -> str:
        return f"controls {self.controls.version}"

    def run(self, lane: ShardWriter) -> Operation[None]:
        yield from lane.adopt_suspensions(self.controls)
        self.look_again()
        if self.controls.names_dropped(self.since):
            # From here on nothing that is covered is made or admitted, so this is all.
            yield from self._end(lane, [*self._jobs_and_runs(lane), *(yield from self._evidence(lane))])
        lane.ended_through = self.controls.version
        # What was passed over amid the pages, because it might have been on one.
        for ref in self.memory.waiting_refs():
            self.memory.hold(ref, lane.host.now)
        self.told()

    def _end(self, lane: ShardWriter, pending: list[Key]) -> Operation[None]:
        """Ends what can be ended. Raises why something could not be, once the others have."""
        most, failed = ENDED_PER_PAGE, None
        while pending:
            page = EndPage(tuple(pending[:most]), self._is_dropped)
            try:
                yield from lane.decide_alone(page)
            except (Fenced, WriterClosed):
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is
                if most == 1:
                    lane.host.failed(page.name, page.about, error)
                    failed, pending = error, pending[1:]
                else:
                    # Too large, or one thing on it is to blame: that one is told of alone.
                    most //= 2
                    lane.host.note("page_halved", shard=lane.shard, about=page.about, most=most, error=repr(error))
            else:
                pending = [*page.left, *pending[most:]]
                most = min(2 * most, ENDED_PER_PAGE)
            yield from lane.yield_turn()
        if failed is not None:
            raise failed

    def _jobs_and_runs(self, lane: ShardWriter) -> list[Key]:
        runs = [
            keys.run(lane.shard, run.id)
            for run in self.memory.runs.values()
            if run.state in BEFORE_GATE and self._is_dropped(run.namespace, run.admitted_at)
        ]
        jobs = [
            keys.job(lane.shard, job.id)
            for job in self.memory.jobs.values()
            if job.state == PENDING_CONSTRAINT and self._is_dropped(job.namespace, job.satisfied_at)
        ]
        return [*runs, *jobs]

    def _evidence(self, lane: ShardWriter) -> Operation[list[Key]]:
        """Evidence is not kept in memory; that of a job goes with it."""
        items = yield from lane.read_range(*keys.prefix_range(keys.EVIDENCE_PREFIX))
        found = [from_item(Evidence, item) for item in items]
        return [
            each.key(lane.shard) for each in found if not each.job and self._is_dropped(each.namespace, each.first_at)
        ]

    def _is_dropped(self, namespace: str, pending_since: int) -> bool:
        return self.controls.drops(namespace, pending_since, self.since)


@dataclass(frozen=True, slots=True)
class EndPage:
    """Ends some jobs, runs before the gate and evidence.

    Attributes:
        pending: What may have to end.
        is_dropped: Whether what waits in a namespace since an instant ends: between two pages something else may have come into a place.
        left: Of these what one transaction does not hold; filled by the decision.
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
        """Runs: the gate may have let one pass since it was read."""
        return self.pending

    def decide(self, unit: UnitOfWork, now: int) -> None:
        self.left.clear()  # The decision may be made again.
        for key, item in zip(self.pending, unit.items(self.pending), strict=True):
            if unit.actions > PAGE_ACTIONS:
                self.left.append(key)
                continue
            if item is None or unit.item(key) is None:
                continue  # It ended by itself, or with another one of this page.
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
    """Has the lease say that all is done."""

    told: DoneCallback
    name: str = "controls_done"

    @property
    def about(self) -> str:
        return "controls"

    def run(self, lane: ShardWriter) -> Operation[None]:
        yield from lane.finish_suspensions()
        self.told()
