"""A schedule: its one mutable item, its versions, and its own limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate_core.language.triggers.search import Next
from tidegate_core.rows import keys
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """The one mutable item of a schedule, at most 1 KB.

    Attributes:
        status: `active`, `suspended` or `deleted` (a tombstone).
        incarnation: Given when the name is created, new after delete and re-create: ids never repeat.
        version: Counts 1, 2, 3 ... within the name, tombstones included; 0 of a tombstone whose name never existed.
        generation: Raised by every request that ends what is pending; jobs and admissions carry it.
        position: Text of the position of the last applied request; older requests are superseded.
        activated_at: Instant from which time triggers count and before which runs do not.
        next_nominal: Next instant of a time trigger; moves by compare-and-set from the last scheduled instant.
        next_nominal_is_bound: It is none, but how far a search came that had no end yet: no instant lies before it. The
            timer row that stands there has the search gone on with, and nothing fires.
        searched_from: Behind which no instant lies before `next_nominal`, where that took several searches.
        fired_through: Latest instant of a time trigger that was made in this incarnation; none is ever made twice.
        seals: Evidence opened so far; numbers the jobs of event triggers.
        made_at: When the last job of a trigger with `at_least_every` was made, by itself or by hand, or a reminder made
            none; `next_nominal` is its next reminder.
        reminder: The earliest reminder that has come and is not decided: it waits for what was appended before it. None, as older versions
            write it: nobody knows of it but its timer row.
        next_tick: Next instant of a composite's time leaves; a timer row of kind `E` stands there.
        next_tick_is_bound: It is none, but how far was searched; for who asks, because a tick is looked for where it stands.
        ticked: How many ticks of each of them have been since the version was applied, for `max_fires`.
        gathered: Cursor of the catch-up: how many instants were walked that no occurrence stands for yet; `next_nominal` is
            where it goes on.
        gathered_from, gathered_through: The first and the last of them.
        fires: Instants of a time trigger that were walked since the version was applied, for `max_fires`.
        gathered_as: What is to become of them (`Fate`).
        alone, alone_since: Instants that have jobs of their own although they were missed, and the begin of the span.
        missed_from, missed_until, missed_as: What this schedule itself missed, and is to make up for; None = nothing.
        missed_by_update: Whether an update brought that: the schedule was there all the while, so nothing is made up for of what lay in a
            wide suspend. None, as older versions write it: no.
        expires_at: Only of a tombstone whose name never existed: the version of others is never given again.
        mode: How it is suspended, while it is (SEMANTICS 10); `standing.py` says what that lets happen.
        suspended_at: Since when.
        stopped_by: Who asked for it, empty where nobody was named; None = nobody did: it is active, or began suspended.
        stopped_for: Why, as far as it was said.
        until: When it is resumed by itself; a timer row of kind `U` stands there.
        stopped_ms: How long the clocks of time-outs have stood still in all earlier suspensions.
        last_stops: Begin and end of the last of those: begin, end, begin, end ...
        pauses: Begin and end of the last suspensions that are over, of any mode and also of earlier incarnations: begin, end, begin, end ...
        kept_from: Oldest generation whose pending jobs go on; None = only the present one.
        carried: Stretches of versions whose pending jobs and evidence are bound to the last one of the stretch: first, last,
            first, last ...
        gone: `<ns>/<name>` of the schedules that were deleted since the trigger listened to them: it does without.
        shedding: What a resume leaves of the backlog (`last`, `coalesce`, `none`), while it is being ended; until then
            nothing is admitted.
        backlog_through: What waits and was satisfied up to here is the backlog of the last resume, whatever has moved the state since. None,
            as older versions write it: `changed_at`. While `shedding` is set: of the resume that asked for that.
        cut_through: What waits and was satisfied up to here ends in any case: an earlier resume left none of it, and was not through when
            the one that `shedding` is of came.
        unmade_through: What a time trigger names up to here, and was not made yet when a resume came that leaves out some of its backlog,
            ends as it is made. None, as older versions write it: nothing does.
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
        """Whether some instant has come that no occurrence stands for yet, or may have."""
        return self.next_nominal is not None and (self.next_nominal <= now or self.gathered is not None)

    @property
    def following(self) -> Next:
        """The next instant of a time trigger, or how far it was searched."""
        return Next(self.next_nominal, bool(self.next_nominal_is_bound), self.searched_from)

    def at_next(self, following: Next) -> ScheduleState:
        """Returns the state with another next instant of a time trigger; what has come of a reminder is none any more."""
        took_several = following.is_bound or following.since == self.searched_from
        return replace(
            self,
            next_nominal=following.at,
            next_nominal_is_bound=following.is_bound or None,
            reminder=None,
            searched_from=following.since if took_several else None,
        )

    def at_tick(self, following: Next) -> ScheduleState:
        """Returns the state with another next instant of a composite's time leaves."""
        return replace(self, next_tick=following.at, next_tick_is_bound=following.is_bound or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One immutable version of a schedule: its spec as canonical JSON."""

    namespace: str
    name: str
    version: int
    spec: str
    created_at: int

    def key(self, shard: int) -> Key:
        return keys.definition(shard, self.namespace, self.name, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCount:
    """How many schedules a namespace has, where a quota bounds that. The one item of schedules that all shards' owners write.

    Attributes:
        schedules: Not deleted.
        counted_at: When the states of all shards were last counted; since then each create and delete has moved it. 0: nobody has yet.
    """

    namespace: str
    schedules: int
    counted_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLimit:
    """A schedule's own limit: lies in its shard, so only the owner writes it.

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
"""After its end: as long as the ledger has the entries of what it made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastGeneration:
    """One generation, written by the request that ends it, in its transaction: nothing is written per fire.

    Attributes:
        fired: Whether its trigger went on: no request within a generation changes that.
        asked_at: Append time of the request that ended it; what was due before is there, one way or another.
        ended_at: When that was applied; what came due between the two may have been made, and need not.
        suspended_since: Of a wide suspend that went on then, as its shard knew: of what was due since nothing was made.
        interval: Text of its interval as it was closed, of a schedule that sends messages.
        activated_at, fired_through, fires, missed_from, missed_until, missed_by_update: As the state had them at its end.
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
        """Returns what is kept of the generation in which a state was until now."""
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
