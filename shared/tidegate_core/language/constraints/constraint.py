"""Base class of constraints, their verdicts, and the reason codes of waiting jobs.

A constraint says whether a waiting job may start now, when the answer can change, and which limit the job needs. A verdict
`Hold` has a reason code for metrics and programs. docs/schedules.md has a row for each code; a test compares both lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, TypeAlias

from tidegate_core.language.constraints.facts import Facts, Span
from tidegate_core.language.targets.argument_templates import RunValues
from tidegate_core.language.targets.programs import Program
from tidegate_core.language.values.document import Document
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import shortened

ReasonCode: TypeAlias = Literal[
    "concurrency",
    "window_closed",
    "delayed",
    "ran_recently",
    "still_running",
    "rate_reached",
    "load_high",
    "load_unknown",
    "flexible_window",
    "catch_up_pacing",
]

REASONS: Final[Mapping[ReasonCode, str]] = {
    "concurrency": "the limit's number of runs is open, or jobs that wait longer come first",
    "window_closed": "no window is open",
    "delayed": "the delay after satisfaction has not passed",
    "ran_recently": "the last start, finish or success is too recent",
    "still_running": "a run whose end counts is still open",
    "rate_reached": "the rate's number of runs was admitted in its span",
    "load_high": "the load is at its bound, or has not fallen far enough since",
    "load_unknown": "there is no fresh sample of the load",
    "flexible_window": "the occurrence's instant in the flexible window of its time trigger has not come",
    "catch_up_pacing": "catch-up runs start one at a time, and another one is open",
}


OnUnmet: TypeAlias = Literal["wait", "abort"]
Compared: TypeAlias = str | int | float


@dataclass(frozen=True, slots=True)
class Allow:
    """The constraint does not block the job."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The constraint blocks the job.

    Attributes:
        until: Next instant at which the answer can change; None if only an event can change it.
        reason_code: Stable word for metrics and programs, such as `window_closed`.
        reason: Text for users, with the compared values.
        values: Compared values for programs: instants as RFC 3339, durations in milliseconds.
    """

    until: Instant | None
    reason_code: ReasonCode
    reason: str
    values: Mapping[str, Compared] = field(default_factory=dict)


Verdict: TypeAlias = Allow | Hold


Scope: TypeAlias = Literal["schedule", "program", "group", "key"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that needs permits, with the values for templates.

    Attributes:
        namespace: Namespace of the job's schedule.
        schedule: Name of the job's schedule.
        program: Program that the job starts.
        values: Values of the template variables.
    """

    namespace: str
    schedule: str
    program: Program
    values: RunValues


@dataclass(frozen=True, slots=True)
class LimitRef:
    """A limit of which a job needs a permit at its admission.

    Attributes:
        scope: Kind of runs that the limit counts together.
        namespace: Namespace of the schedule.
        name: Name of the schedule or group, identity of the program, or the resolved key.
        max: Number of permits, by the version of the schedule that is admitted.
        on_unmet: Rule of the constraint if no permit is free.
        span: Span of a rate, whose permits return by time; None if a run keeps its permit until its end.
    """

    scope: Scope
    namespace: str
    name: str
    max: int
    on_unmet: OnUnmet = "wait"
    span: Span | None = None

    @property
    def is_shared(self) -> bool:
        """Whether runs of other schedules use the limit as well."""
        return self.scope != "schedule"

    def words(self) -> str:
        """Returns the limit's name in reasons and answers."""
        if self.scope == "schedule":
            return f"schedule {self.namespace}/{self.name}"
        name = shortened(self.name) if self.scope == "key" else self.name
        return f"{self.scope} {name} of namespace {self.namespace}"


class ConstraintSpec(Document, ABC):
    """A rule that a satisfied job must meet before it runs.

    Attributes:
        on_unmet: Rule if the constraint is not met: `wait` until it is, or `abort` the job at once.
        ADMISSIONS_MAX: Most earlier admissions that a constraint may need.
    """

    ADMISSIONS_MAX: ClassVar[int] = 1_000

    on_unmet: OnUnmet = "wait"

    @abstractmethod
    def check(self, facts: Facts) -> Verdict:
        """Returns whether the job may start. A permit is not checked here: the admission's write does that."""

    def limit(self, claim: Claim) -> LimitRef | None:
        """Returns the limit of which the admission must take a permit, or None. Raises Unresolved."""
        return None

    @property
    def admissions_remembered(self) -> int:
        """Number of earlier admissions that `check` needs; with 0 no history is written."""
        return 0

    @property
    def only_once(self) -> str | None:
        """Text that is equal for constraints of which a schedule may have only one; None if it may have several."""
        return None
