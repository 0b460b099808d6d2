"""Input of an explanation: the rows of one schedule, read at one time."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.instants import Instant
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, ScopeSuspensions
from tidegate_core.shard.schedule_state import parsed
from tidegate_core.shard.timer_rows import pending_reminder


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Rows of one schedule.

    Attributes:
        now: Instant of the read.
        definitions: Versions, oldest first.
        last_sign: Last instant at which the shard was served, as far as a row says it; None: unknown.
        jobs: Open jobs, also of admitted runs.
        runs: Open runs.
        ledger: Entries that may concern the instant of the question.
        latest: Newest entries by nominal time, newest first, if the question names no instant.
    """

    shard: int
    shards: int
    now: Instant
    state: ScheduleState
    definitions: tuple[Definition, ...]
    controls: ScopeSuspensions = NO_SUSPENSIONS
    outages: tuple[Outage, ...] = ()
    last_sign: Instant | None = None
    jobs: tuple[Job, ...] = ()
    runs: tuple[Run, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    latest: tuple[LedgerRow, ...] = ()

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.state.namespace, self.state.name)

    @property
    def of_incarnation(self) -> tuple[Definition, ...]:
        """Versions of the present incarnation: a tombstone takes a number and has no definition."""
        known = {each.version: each for each in self.definitions}
        version = self.state.version if self.state.status != "deleted" else self.state.version - 1
        found: list[Definition] = []
        while version in known:
            found.append(known[version])
            version -= 1
        return tuple(reversed(found))

    @property
    def spec(self) -> ScheduleSpec | None:
        """Definition of the present version; None: the schedule is deleted."""
        return self.spec_of(self.state.version)

    def spec_of(self, version: int) -> ScheduleSpec | None:
        """Returns the definition of a version, also of one whose work is still being ended; None: a tombstone."""
        found = next((each for each in self.definitions if each.version == version), None)
        return None if found is None else parsed(found.spec)

    @property
    def reminder(self) -> Instant | None:
        """Instant at which `at_least_every` asks for a job. It is in the past while it waits for earlier events to be counted."""
        spec = self.spec
        every = spec.trigger.at_least_every if spec is not None and isinstance(spec.trigger, EventTrigger) else None
        if every is None:
            return None
        return pending_reminder(self.state, every, self.controls.resumed_at(self.state.namespace))

    def spec_at(self, instant: Instant) -> ScheduleSpec | None:
        """Returns the definition that was in force at an instant; None: the instant is before the first one."""
        known = [each for each in self.of_incarnation if each.created_at <= instant]
        return parsed(known[-1].spec) if known else None
