"""What an explanation is made from: what the store holds about one schedule, as it was read at one time."""

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
    """Of one schedule.

    Attributes:
        now: When it was read.
        definitions: Versions, oldest first.
        last_sign: When its shard was served for the last time, as far as anybody wrote it down; None = not known.
        jobs: Open ones, those of admitted runs included.
        runs: Open ones.
        ledger: Entries that may be about the instant that is asked about.
        latest: The newest entries by nominal, newest first, where nobody asks about an instant.
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
        """Versions since the name was made the last time: a tombstone takes a number and has no definition."""
        known = {each.version: each for each in self.definitions}
        version = self.state.version if self.state.status != "deleted" else self.state.version - 1
        found: list[Definition] = []
        while version in known:
            found.append(known[version])
            version -= 1
        return tuple(reversed(found))

    @property
    def spec(self) -> ScheduleSpec | None:
        """The present version; None of a schedule that was deleted."""
        return self.spec_of(self.state.version)

    def spec_of(self, version: int) -> ScheduleSpec | None:
        """Any version, of what is still being ended as well; None of a tombstone."""
        found = next((each for each in self.definitions if each.version == version), None)
        return None if found is None else parsed(found.spec)

    @property
    def reminder(self) -> Instant | None:
        """When `at_least_every` asks for a job: in the past of one that waits for what was appended before it."""
        spec = self.spec
        every = spec.trigger.at_least_every if spec is not None and isinstance(spec.trigger, EventTrigger) else None
        if every is None:
            return None
        return pending_reminder(self.state, every, self.controls.resumed_at(self.state.namespace))

    def spec_at(self, instant: Instant) -> ScheduleSpec | None:
        """Returns the version that was in force; None before the first one."""
        known = [each for each in self.of_incarnation if each.created_at <= instant]
        return parsed(known[-1].spec) if known else None
