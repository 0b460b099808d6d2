"""An occurrence in the making."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An occurrence in the making, once its trigger is satisfied (`pending_constraint`) until its run has started or ended.

    Attributes:
        id: Also the id of the run that comes of it.
        trigger: `time`, `events` or `manual`.
        nominal: The instant at which it should happen; for events the instant of satisfaction.
        deadline: Pending time-out; where it stands for others that waited, the earliest of theirs.
        queued_since: Since when its place in queues counts, where it took the place of others; None = since it was satisfied.
        evidence_id: Where its entries lie, or None.
        evidence_correlation: Under which its evidence is kept while it absorbs; `correlation` may come from upstream.
        chunks: Chunks sealed into it; None while it still absorbs.
        upstream: JSON of the upstream run's facts for program-status triggers.
        unmet: All that stood in its way at the last look whose reason codes were new, as JSON.
        asked: Keys (`pk|sk`) of its waiter rows, in the queues of the shared limits that it waits for.
        covered: Instants that it stands for, its nominal the last of them: of an outage, or of jobs that were merged into
            it; None = only for its own.
        covered_from: The first of them.
        stopped: How long the schedule's clocks had stood still, in ms, when `deadline` was reckoned.
        free_attempts: Attempts of it that a suspend took back before the gate: they cost no try.
        alerted: True once it was told that its pending time-out has passed and it waits on.
        forced: What it is admitted in spite of since then, in the form of `unmet`.
        catch_up: True when it makes up for an instant that was missed: those run one at a time.
        due: When it came due, where its nominal lay in the past as its schedule was activated; None = at its nominal.
        in_turn: Of one that makes up for an instant: True once no other one was open; `deadline` counts from then on.
        clock_start: Instant from which `deadline` counts, where that is not `waits_since`: a turn, or the clock of a job that it stands for.
        force_overlap: True when whoever asked for it wants it beside what runs.
        missing: What had not come when evidence fired with what was there, in words.
    """

    id: str
    namespace: str
    name: str
    incarnation: str
    version: int
    generation: int
    state: str
    trigger: str
    nominal: int
    satisfied_at: int
    deadline: int
    interval_start: int | None = None
    interval_end: int | None = None
    correlation: str | None = None
    evidence_id: str | None = None
    chunks: int | None = None
    upstream: str | None = None
    unmet: str | None = None
    evidence_correlation: str = ""
    attempt: int = 1
    asked: tuple[str, ...] = ()
    covered: int | None = None
    covered_from: int | None = None
    stopped: int = 0
    free_attempts: int = 0
    alerted: bool | None = None
    forced: str | None = None
    catch_up: bool | None = None
    force_overlap: bool | None = None
    missing: tuple[str, ...] = ()
    queued_since: int | None = None
    in_turn: bool | None = None
    due: int | None = None
    clock_start: int | None = None

    def key(self, shard: int) -> Key:
        return keys.job(shard, self.id)

    @property
    def waits_since(self) -> int:
        """What its place in queues goes by: its own waiting, or that of those whose place it took."""
        return self.satisfied_at if self.queued_since is None else self.queued_since

    @property
    def timed_since(self) -> int:
        """Instant from which its deadline counts."""
        return self.waits_since if self.clock_start is None else self.clock_start

    @property
    def times_out(self) -> bool:
        """Whether its deadline counts by now."""
        return not self.catch_up or bool(self.in_turn)

    @property
    def stands_for(self) -> int:
        """Number of its instants."""
        return 1 if self.covered is None else self.covered

    @property
    def begins(self) -> int:
        """The first of its instants."""
        return self.nominal if self.covered_from is None else self.covered_from

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)
