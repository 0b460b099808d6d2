"""A job: an occurrence before its run."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An occurrence whose trigger is satisfied (`pending_constraint`), until its run has started or it has ended.

    Attributes:
        id: Id of the job, and later of its run.
        trigger: `time`, `events` or `manual`.
        nominal: Nominal time; for events the time of satisfaction.
        deadline: Pending time-out; the earliest one of all jobs that were merged into this one.
        queued_since: Time from which its queue position counts, when it replaced other jobs. None: `satisfied_at`.
        evidence_id: Id of its evidence, or None.
        evidence_correlation: Correlation of its evidence while it absorbs; `correlation` may come from upstream.
        chunks: Number of log chunks sealed into it; None while it absorbs events.
        upstream: JSON of the upstream run's facts, for `run_status` triggers.
        unmet: JSON of the blockers at the last check that found new reason codes.
        asked: Keys (`pk|sk`) of its queue entries for shared limits.
        covered: Number of instants that it stands for, the nominal time last: those of an outage, or of merged jobs.
            None = only its own.
        covered_from: First of those instants.
        stopped: Total time for which the schedule's clocks had been stopped when `deadline` was computed, in ms.
        free_attempts: Attempts that a suspension withdrew before the gate; they use up no try.
        alerted: True once the passed time-out of a job that waits on was reported.
        forced: Blockers that its admission ignores, in the form of `unmet`; set when its time-out passed.
        catch_up: True when it makes up for a misfire; such jobs run one at a time.
        due: Time at which it became due, when the nominal time lay before the schedule's activation. None: at the
            nominal time.
        in_turn: True once no other catch-up job was open; `deadline` counts from then on. For catch-up jobs only.
        clock_start: Instant from which `deadline` counts, when it is not `waits_since`: the begin of its turn, or the
            clock of a job that it stands for.
        force_overlap: True when its request asked to run it concurrently with open runs.
        missing: Evidence that was missing when the trigger fired incomplete, in words.
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
        """Time from which its queue position counts: its own satisfaction, or that of a job that it replaced."""
        return self.satisfied_at if self.queued_since is None else self.queued_since

    @property
    def timed_since(self) -> int:
        """Instant from which its deadline counts."""
        return self.waits_since if self.clock_start is None else self.clock_start

    @property
    def times_out(self) -> bool:
        """Whether its deadline already counts."""
        return not self.catch_up or bool(self.in_turn)

    @property
    def stands_for(self) -> int:
        """Number of its instants."""
        return 1 if self.covered is None else self.covered

    @property
    def begins(self) -> int:
        """First of its instants."""
        return self.nominal if self.covered_from is None else self.covered_from

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)
