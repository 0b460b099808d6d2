"""Constraint on how busy something is: the host, or a cluster whose number a node knows how to ask for."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, Strict, model_validator

from tidegate_core.language.constraints.constraint import Allow, ConstraintSpec, Hold, Verdict
from tidegate_core.language.constraints.facts import KEPT_MS, NOTHING_SEEN, Facts, LoadKey, LoadSeen
from tidegate_core.language.values.document import Flag
from tidegate_core.language.values.durations import DurationField, format_duration
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.names import Name
from tidegate_core.language.values.problems import refused

DEFAULT_MAX_AGE_MS: Final = 60_000
UNKNOWN_PATIENCE_MS: Final = 5 * 60_000
"""SEMANTICS 7.6: a metrics system that is down must not stop production."""

LOCAL: Final = "local"
"""The source that every node has: its own host."""
LOCAL_MOST: Final = {"cpu": 10.0, "memory": 1.0}
"""What a host has, and the highest bound that says something of it. `memory` is a share, which no host exceeds. `cpu` is what runs or wants
to for each processor, 1.0 where all are busy: ten that want each one is a host past use, and a higher bound a slip for a percentage."""

Amount = Annotated[float, Strict(), Field(gt=0, le=1e12)]


class LoadConstraint(ConstraintSpec):
    """Lets jobs go while a load is below a bound; once the bound was reached, not before it has fallen to a lower one.

    A load that cannot be sampled is waited for 5 minutes; then jobs go without it, unless the constraint is `strict`.

    Attributes:
        source: `local` (the host of the node that decides), or a name of the nodes' settings (`load.sources`).
        resource: Of the source; `cpu` and `memory` of `local`, as shares of what there is (1.0 = all of it; bounds of `cpu` up to 10,
            of `memory` up to 1). Numbers of other sources are what they are there.
        below: Jobs go while the load is below it.
        resume: After that bound was reached they go again below this one.
        max_age: A sample that is older is none. 1 s to 10 min.
        strict: Whether jobs wait on while the load is unknown.
    """

    EXAMPLE: ClassVar = {"type": "load", "source": "local", "resource": "cpu", "below": 0.85, "resume": 0.75}
    FIELD_HINTS: ClassVar = {
        "url": "a node's settings know where a source is: load.sources",
        "max": "the field is called below",
        "above": "the field is called below",
    }

    type: Literal["load"] = "load"
    source: Name = LOCAL
    resource: Name = "cpu"
    below: Amount = 0.85
    resume: Amount | None = None
    max_age: DurationField = Field(
        default=DEFAULT_MAX_AGE_MS, ge=1_000, le=KEPT_MS, json_schema_extra={"default": "1m"}
    )
    strict: Flag = False

    @model_validator(mode="after")
    def _resumes_below(self) -> Self:
        if self.resume is not None and self.resume > self.below:
            raise refused("is above below", field="resume", hint="jobs go again once the load has fallen to it")
        return self

    @property
    def key(self) -> LoadKey:
        return self.source, self.resource

    def check(self, facts: Facts) -> Verdict:
        seen = facts.loads.get(self.key, NOTHING_SEEN)
        if not seen.is_fresh(facts.now, self.max_age):
            return self._of_unknown(seen, facts.now)
        if not self._is_high(seen):
            return Allow()
        at, value = seen.samples[-1]
        reason = f"{self.resource} of {self.source} is {value:g} at {format_instant(at)}"
        return Hold(
            until=None,  # The next sample says.
            reason_code="load_high",
            reason=f"{reason}; it was at {self.below:g} and has not fallen below {self._resume:g} since",
            values={"source": self.source, "resource": self.resource, "value": value, "below": self.below},
        )

    def _of_unknown(self, seen: LoadSeen, now: int) -> Verdict:
        since = seen.unknown_since
        if since is not None and now >= since + UNKNOWN_PATIENCE_MS and not self.strict:
            return Allow()
        waits = "it is waited for" if self.strict else f"it is waited for {format_duration(UNKNOWN_PATIENCE_MS)}"
        return Hold(
            until=None,
            reason_code="load_unknown",
            reason=f"{self.resource} of {self.source} is not known; {waits}",
            values={"source": self.source, "resource": self.resource},
        )

    @property
    def _resume(self) -> float:
        return self.below if self.resume is None else self.resume

    def _is_high(self, seen: LoadSeen) -> bool:
        """The latest sample beyond either bound decides; between them all stays as it was."""
        for _, value in reversed(seen.samples):
            if value >= self.below:
                return True
            if value < self._resume:
                return False
        return False

    @property
    def only_once(self) -> str | None:
        return f"looks at {self.resource} of {self.source}"
