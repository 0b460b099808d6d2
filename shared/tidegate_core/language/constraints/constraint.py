"""What every constraint answers about a job that waits: may it go now, if not until when, and which limits it takes part in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from tidegate_core.language.constraints.load_samples import LoadKey, LoadSeen
from tidegate_core.language.constraints.rate_window import Span
from tidegate_core.language.constraints.reason_codes import ReasonCode
from tidegate_core.language.targets.argument_templates import RunValues
from tidegate_core.language.targets.programs import Program
from tidegate_core.language.values.document import Document
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import shortened
from tidegate_core.rows.run_history import NO_RUNS, PastRuns

OnUnmet: TypeAlias = Literal["wait", "abort"]
Compared: TypeAlias = str | int | float


@dataclass(frozen=True, slots=True)
class Allow:
    """Nothing holds the job back."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The job waits.

    Attributes:
        until: The next instant at which the answer can change; None: only an event changes it.
        reason_code: Stable word for metrics and programs, such as `window_closed`.
        reason: The same for people, with the values that were used.
        values: These values, for programs: instants as RFC 3339, durations in milliseconds.
    """

    until: Instant | None
    reason_code: ReasonCode
    reason: str
    values: Mapping[str, Compared] = field(default_factory=dict)


Verdict: TypeAlias = Allow | Hold


@dataclass(frozen=True, slots=True)
class Facts:
    """What constraints judge by, all of it as of one instant.

    Attributes:
        satisfied_at: When the job's trigger was satisfied.
        past: Earlier runs of the schedule, as far as its constraints have them remembered.
        loads: What was seen of loads; the one part that is not stored.
    """

    now: Instant
    satisfied_at: Instant
    past: PastRuns = NO_RUNS
    loads: Mapping[LoadKey, LoadSeen] = field(default_factory=dict)


Scope: TypeAlias = Literal["schedule", "program", "group", "key"]


@dataclass(frozen=True, slots=True)
class Claim:
    """Who asks for permits: a job of a schedule, with what its templates can name."""

    namespace: str
    schedule: str
    program: Program
    values: RunValues


@dataclass(frozen=True, slots=True)
class LimitRef:
    """A limit that a job has to have a permit of when it is admitted.

    Attributes:
        scope: Whose runs are counted together.
        namespace: The schedule's.
        name: The schedule's name; the program's name, else its type and file; the group's name; or the resolved key.
        max: Permits, by the admitting schedule's own version.
        on_unmet: Of the constraint that asks for the permit.
        span: Of a rate, whose permits come back by time; None: a permit is held until its run has ended.
    """

    scope: Scope
    namespace: str
    name: str
    max: int
    on_unmet: OnUnmet = "wait"
    span: Span | None = None

    @property
    def is_shared(self) -> bool:
        """Whether runs of other schedules take permits of it as well."""
        return self.scope != "schedule"

    def words(self) -> str:
        """Returns the limit as people call it, in reasons and answers."""
        if self.scope == "schedule":
            return f"schedule {self.namespace}/{self.name}"
        name = shortened(self.name) if self.scope == "key" else self.name
        return f"{self.scope} {name} of namespace {self.namespace}"


class ConstraintSpec(Document, ABC):
    """A condition that a satisfied job waits for.

    Attributes:
        on_unmet: `wait` until it holds, or `abort` the job when it does not hold at once.
        ADMISSIONS_MAX: The most that any constraint may have remembered of earlier admissions.
    """

    ADMISSIONS_MAX: ClassVar[int] = 1_000

    on_unmet: OnUnmet = "wait"

    @abstractmethod
    def check(self, facts: Facts) -> Verdict:
        """Returns whether the job may go, as far as no permit decides it."""

    def limit(self, claim: Claim) -> LimitRef | None:
        """Returns the limit whose permit the admission has to take, if any. Raises Unresolved."""
        return None

    @property
    def admissions_remembered(self) -> int:
        """How many earlier admissions `check` looks at; with 0 nothing is written for it."""
        return 0

    @property
    def only_once(self) -> str | None:
        """What a second constraint would say again; None when several of them make sense."""
        return None
