"""Rows of a schedule: state, definitions, own limit and ended generations, and the count of a namespace's schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.language.triggers.search import Next
from tidegate_core.rows import keys
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """The state of a schedule: its one mutable item, at most 1 KB.

    Attributes:
        status: `active`, `suspended` or `deleted` (a tombstone).
        incarnation: Id of one life of the name; new after delete and recreation, so that ids never repeat.
        version: Number 1, 2, 3 ... within the name, tombstones included; 0 of a tombstone whose name never existed.
        generation: Number that rises with every request that ends pending work; jobs and admissions carry it.
        position: Text of the position of the last applied request; older requests are superseded.
        activated_at: Time from which time triggers count, and before which runs do not.
        next_nominal: Next instant of a time trigger; it moves by compare-and-set from the last scheduled instant.
        next_nominal_is_bound: True when `next_nominal` is only a bound of an unfinished search: no instant lies
            before it. Its timer row continues the search and fires nothing.
        searched_from: Instant after which none lies before `next_nominal`, when that took several searches.
        fired_through: Latest fired instant of this incarnation; none fires twice.
        seals: Number of opened evidence; it numbers the jobs of event triggers.
        made_at: Time of the last job of a trigger with `at_least_every`, requested ones included, or of a reminder
            without a job. `next_nominal` is its next reminder.
        reminder: Earliest due reminder without a decision: it waits for the low watermark. None in rows of older
            versions: then only the timer row knows of it.
        next_tick: Next tick of a composite trigger; a timer row of kind `EVIDENCE_TIMER` stands there.
        next_tick_is_bound: True when `next_tick` is only a bound of an unfinished search. For readers only, because
            each tick is searched for where it stands.
        ticked: Number of ticks per time leaf since the version was applied, for `max_fires`.
        gathered: Cursor of the catch-up: number of walked instants without an occurrence. The walk continues at
            `next_nominal`.
        gathered_from, gathered_through: First and last of those instants.
        fires: Number of instants walked since the version was applied, for `max_fires`.
        gathered_as: Planned outcome of the gathered instants (`Fate`).
        alone, alone_since: Number of missed instants with own jobs, and the begin of their span.
        missed_from, missed_until, missed_as: Span and mode of misfires that the schedule itself must catch up; None =
            none.
        missed_by_update: True when an update caused that span. The schedule existed then, so instants in a scope
            suspension are not caught up. None in rows of older versions: no.
        expires_at: TTL, only for a tombstone whose name never existed: versions of other names are never reused.
        mode: Mode of the present suspension; `shard/schedule_state.py` says what it allows.
        suspended_at: Begin of the suspension.
        stopped_by: User who suspended it; empty when unnamed. None when it is active or was created suspended.
        stopped_for: Stated reason of the suspension.
        until: Planned end of the suspension; a timer row of kind `RESUME_TIMER` stands there.
        stopped_ms: Total time for which clocks of time-outs were stopped in earlier suspensions.
        last_stops: Begin and end of the last of those: begin, end, begin, end ...
        pauses: Begin and end of the last ended suspensions, of any mode and also of earlier incarnations.
        kept_from: Oldest generation whose pending jobs continue; None = only the present one.
        carried: Ranges of versions whose pending jobs and evidence are bound to the last version of the range: first,
            last, first, last ...
        gone: `<ns>/<name>` of schedules that were deleted after the trigger subscribed to them; the trigger works
            without them.
        shedding: Part of the backlog that a resume keeps (`last`, `coalesce`, `none`), while the rest is being ended.
            Until then no job is admitted.
        backlog_through: Latest satisfaction time in the backlog of the last resume, or of the resume that set
            `shedding`. None in rows of older versions: `changed_at`.
        cut_through: Latest satisfaction time of jobs that end in any case: an earlier resume kept none, and had not
            finished when the resume of `shedding` came.
        unmade_through: Latest instant of a time trigger that ends when its job is created, because a resume leaves
            out that part of the backlog. None in rows of older versions: none does.
    """

    namespace: str
    name: str
    status: str
    incarnation: str
    version: int
    generation: int
    position: str
    activated_at: int = 0
    next_nominal: int | None = None
    next_nominal_is_bound: bool | None = None
    searched_from: int | None = None
    fired_through: int = 0
    seals: int = 0
    made_at: int = 0
    reminder: int | None = None
    next_tick: int | None = None
    next_tick_is_bound: bool | None = None
    ticked: tuple[int, ...] = ()
    gathered: int | None = None
    gathered_from: int = 0
    gathered_through: int = 0
    fires: int = 0
    gathered_as: str | None = None
    alone: int | None = None
    alone_since: int | None = None
    missed_from: int | None = None
    missed_until: int | None = None
    missed_as: str | None = None
    missed_by_update: bool | None = None
    spec_hash: str = ""
    changed_at: int = 0
    reason: str | None = None
    actor: str | None = None
    expires_at: int | None = None
    mode: str = "drop"
    suspended_at: int = 0
    stopped_by: str | None = None
    stopped_for: str | None = None
    until: int | None = None
    stopped_ms: int = 0
    last_stops: tuple[int, ...] = ()
    pauses: tuple[int, ...] = ()
    kept_from: int | None = None
    carried: tuple[int, ...] = ()
    shedding: str | None = None
    backlog_through: int | None = None
    cut_through: int | None = None
    unmade_through: int | None = None
    gone: tuple[str, ...] = ()

    def key(self, shard: int) -> Key:
        return keys.schedule_state(shard, self.namespace, self.name)

    def has_due(self, now: int) -> bool:
        """Returns whether an instant is due, or may be due, that no occurrence stands for."""
        return self.next_nominal is not None and (self.next_nominal <= now or self.gathered is not None)

    @property
    def following(self) -> Next:
        """The next instant of a time trigger, or the bound of its search."""
        return Next(self.next_nominal, bool(self.next_nominal_is_bound), self.searched_from)

    def at_next(self, following: Next) -> ScheduleState:
        """Returns the state with another next instant of a time trigger and without a due reminder."""
        took_several = following.is_bound or following.since == self.searched_from
        return replace(
            self,
            next_nominal=following.at,
            next_nominal_is_bound=following.is_bound or None,
            reminder=None,
            searched_from=following.since if took_several else None,
        )

    def at_tick(self, following: Next) -> ScheduleState:
        """Returns the state with another next tick."""
        return replace(self, next_tick=following.at, next_tick_is_bound=following.is_bound or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One immutable version of a schedule: its definition as canonical JSON."""

    namespace: str
    name: str
    version: int
    spec: str
    created_at: int

    def key(self, shard: int) -> Key:
        return keys.definition(shard, self.namespace, self.name, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCount:
    """Number of schedules in a namespace with a quota. Owners of all shards write this one item.

    Attributes:
        schedules: Schedules that are not deleted.
        counted_at: Time of the last count over all shards; each create and delete has moved the number since. 0:
            never counted.
    """

    namespace: str
    schedules: int
    counted_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLimit:
    """A schedule's own limit. It lies in the schedule's shard, so only the owner writes it.

    Attributes:
        holders: Runs that hold a permit, at most 16.
    """

    namespace: str
    name: str
    holders: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)

    def key(self, shard: int) -> Key:
        return keys.own_limit(shard, self.namespace, self.name)


GENERATION_DAYS = 90
"""After its end: as long as the ledger keeps the entries of its occurrences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastGeneration:
    """An ended generation, for the audit.

    The request that ends it writes it in its transaction, so fires cost no write.

    Attributes:
        fired: Whether its trigger was active; no request within a generation changes that.
        asked_at: Append time of the request that ended it; every instant due before has an outcome.
        ended_at: Time at which that request was applied. Instants due between the two times may have a job, and need
            not.
        suspended_since: Begin of a scope suspension at that time, as the shard knew it; instants since then have no
            job.
        interval: Text of its closed interval, for a recurring message.
        activated_at, fired_through, fires, missed_from, missed_until, missed_by_update: As in the state at its end.
    """

    namespace: str
    name: str
    incarnation: str
    version: int
    generation: int
    status: str
    fired: bool
    activated_at: int
    asked_at: int
    ended_at: int
    expires_at: int
    fired_through: int = 0
    fires: int = 0
    missed_from: int | None = None
    missed_until: int | None = None
    missed_by_update: bool | None = None
    interval: str | None = None
    suspended_since: int | None = None

    @classmethod
    def of(
        cls,
        before: ScheduleState,
        asked_at: int,
        ended_at: int,
        *,
        fired: bool,
        interval: str | None,
        suspended_since: int | None = None,
    ) -> PastGeneration:
        """Returns the record of the generation that a state is leaving."""
        return cls(
            namespace=before.namespace,
            name=before.name,
            incarnation=before.incarnation,
            version=before.version,
            generation=before.generation,
            status=before.status,
            fired=fired,
            activated_at=before.activated_at,
            asked_at=asked_at,
            ended_at=ended_at,
            expires_at=expiry(ended_at, GENERATION_DAYS),
            fired_through=before.fired_through,
            fires=before.fires,
            missed_from=before.missed_from,
            missed_until=before.missed_until,
            missed_by_update=before.missed_by_update,
            interval=interval,
            suspended_since=suspended_since,
        )

    def key(self, shard: int) -> Key:
        return keys.past_generation(shard, self.namespace, self.name, self.generation)
