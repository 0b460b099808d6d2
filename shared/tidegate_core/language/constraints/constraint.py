"""Why a job waits: the closed list of codes, for metrics and programs, each with what it means.

A verdict carries one of these words, the values that were compared, and the next instant at which it can change. `docs/schedules.md`
has a row for each; a test holds the two against each other.


What every constraint answers about a job that waits: may it go now, if not until when, and which limits it takes part in.
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
    "concurrency": "as many runs as the limit lets run are open, or others wait for it since longer",
    "window_closed": "no window is open",
    "delayed": "the delay after satisfaction has not passed",
    "ran_recently": "the last start, finish or success is too recent",
    "still_running": "a run whose end counts is still open",
    "rate_reached": "as many runs as the rate allows were admitted in its span",
    "load_high": "the load is at its bound, or has not fallen far enough since",
    "load_unknown": "there is no fresh sample of the load",
    "flexible_window": "the occurrence's own place in the flexible window of its time trigger is still to come",
    "catch_up_pacing": "runs that make up for missed instants start one at a time, and another of them is open",
}


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
