"""Watches each schedule's line: no job of a lower class is admitted, or holds the place, before one of a higher class that could go.

It trusts no order that the product makes: what waits, and since when, is what the store has taken.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from tests.simulation.monitors.limit_monitor import CLASSES, LimitMonitor
from tests.simulation.users.schedule_definitions import Definition
from tests.simulation.users.schedule_updates import Wanted
from tests.simulation.world.observations import Record
from tests.simulation.world.store import SimStore
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Action, Delete, Put, Transaction
from tidegate_core.shard.schedule_state import oldest_kept_generation, version_of
from tidegate_memory.store import BeforeImages

FAILURES_MAX: Final = 5
"""Told of one world: what is wrong once is wrong at every further write."""
LIMITS_ONLY: Final = frozenset({"concurrency"})
"""Codes of what a job waits for that ends with somebody's run, and with nothing else."""


class ClassMonitor:
    """One per world.

    Attributes:
        wanted: Tells what the schedules want, by version.
    """

    def __init__(self, store: SimStore, record: Record, limits: LimitMonitor) -> None:
        self.wanted: Wanted | None = None
        self._store = store
        self._record = record
        self._offer_age = limits.offer_age
        self._line: defaultdict[str, dict[str, Job]] = defaultdict(dict)
        self._since: dict[str, int] = {}
        self._failures = 0
        before = store.memory.on_applied

        def applied(written: Transaction | Sequence[Put | Delete], images: BeforeImages) -> None:
            if before is not None:
                before(written, images)
            if isinstance(written, Transaction):
                self._applied(written)

        store.memory.on_applied = applied

    def _applied(self, written: Transaction) -> None:
        mine = [action for action in written.actions if action.key.table == "main" and action.key.sk.startswith("J#")]
        former = {action.key.sk[2:]: self._job(action.key.sk[2:]) for action in mine}
        for action in mine:
            self._follow(action, former[action.key.sk[2:]])
        looked_at = self._store.first_sent.get(written.token, self._store.now) - self._offer_age
        for action in mine:
            if isinstance(action, Put):
                self._judge(from_item(Job, action.item), former[action.key.sk[2:]], looked_at)

    def _job(self, job_id: str) -> Job | None:
        return next((line[job_id] for line in self._line.values() if job_id in line), None)

    def _follow(self, action: Action, former: Job | None) -> None:
        job = from_item(Job, action.item) if isinstance(action, Put) else None
        if job is not None and job.state == "pending_constraint":
            self._since.setdefault(job.id, self._store.now)
            self._line[job.ref][job.id] = job
        elif former is not None:
            del self._line[former.ref][former.id], self._since[former.id]

    def _judge(self, job: Job, former: Job | None, looked_at: int) -> None:
        """Judges a job that a look has admitted without an offer, or has left in a queue."""
        takes_a_permit = job.state == "pending_launch" and former is not None and not former.asked
        if job.force_overlap or not (takes_a_permit or (job.asked and former is not None)):
            return
        passed = next(self._passed(job, looked_at), None)
        if passed is not None:
            self._fail(f"order: {job.id} of {job.ref} goes before {passed.id}, which is of a higher class")

    def _passed(self, job: Job, looked_at: int) -> Iterator[Job]:
        """Yields jobs that the job has passed: of a higher class, in no queue, waiting for the same limits and for nothing else.

        What a request has ended is ended page by page: until then it is no job that waits.
        """
        state = self._state(job)
        for other in self._line[job.ref].values():
            is_there = self._since[other.id] < looked_at and other.generation >= oldest_kept_generation(state)
            waits = not other.asked and other.unmet is not None and {*json.loads(other.unmet)["codes"]} <= LIMITS_ONLY
            if is_there and waits and self._class(state, other) < self._class(state, job):
                mine, theirs = self._definition(state, job), self._definition(state, other)
                if _limits(mine) == _limits(theirs) and not theirs.keys:
                    yield other

    def _state(self, job: Job) -> ScheduleState:
        item = self._store.memory.look(keys.schedule_state(keys.shard_of_run(job.id), job.namespace, job.name))
        assert item is not None
        return from_item(ScheduleState, item)

    def _definition(self, state: ScheduleState, job: Job) -> Definition:
        assert self.wanted is not None
        return self.wanted.of({**_names(job), "version": version_of(state, job.version)})

    def _class(self, state: ScheduleState, job: Job) -> tuple[int, bool]:
        number = CLASSES.index(self._definition(state, job).priority)
        return (max(number, CLASSES.index("low")) if job.catch_up else number), bool(job.catch_up)

    def _fail(self, problem: str) -> None:
        self._failures += 1
        if self._failures <= FAILURES_MAX:
            self._record.failures.append(problem)


def _names(job: Job) -> dict[str, str]:
    return {"id": job.id, "namespace": job.namespace, "name": job.name}


def _limits(definition: Definition) -> tuple[object, ...]:
    return definition.most, definition.policy, definition.program, definition.groups, definition.rate
