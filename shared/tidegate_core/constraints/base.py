"""What every constraint answers about a job that waits: may it go now, if not until when, and which limits it takes part in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tidegate_core.model.document import Document
from tidegate_core.model.instants import Instant
from tidegate_core.model.programs import Program

OnUnmet: TypeAlias = Literal["wait", "abort"]


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
    """

    until: Instant | None
    reason_code: str
    reason: str


Verdict: TypeAlias = Allow | Hold


@dataclass(frozen=True, slots=True)
class LimitRef:
    """A limit that a job has to have a permit of when it is admitted.

    Attributes:
        scope: Whose runs are counted together.
        namespace: The schedule's.
        name: The schedule's name; or the program's name, else its type and file.
        max: Permits, by the admitting schedule's own version.
        on_unmet: Of the constraint that asks for the permit.
    """

    scope: Literal["schedule", "program"]
    namespace: str
    name: str
    max: int
    on_unmet: OnUnmet = "wait"

    def text(self) -> str:
        """Returns the limit's key. Neither namespaces nor names contain `#`, so only the last part may."""
        return f"{self.namespace}#{self.scope}#{self.name}"

    def words(self) -> str:
        """Returns the limit as people call it, in reasons and answers."""
        if self.scope == "schedule":
            return f"schedule {self.namespace}/{self.name}"
        return f"program {self.name} of namespace {self.namespace}"


class ConstraintSpec(Document, ABC):
    """A condition that a satisfied job waits for.

    Attributes:
        on_unmet: `wait` until it holds, or `abort` the job when it does not hold at once.
    """

    on_unmet: OnUnmet = "wait"

    @abstractmethod
    def check(self, now: Instant) -> Verdict:
        """Returns whether the clock lets a job go."""

    @abstractmethod
    def limits(self, namespace: str, schedule: str, program: Program) -> tuple[LimitRef, ...]:
        """Returns the limits whose permits the admission has to take."""
