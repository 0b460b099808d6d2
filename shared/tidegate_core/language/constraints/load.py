"""The constraint `load`: holds jobs while the node's host, or a cluster that nodes can query, is too busy."""

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
"""Longest wait for an unknown load. A metrics system that is down must not stop production."""

LOCAL: Final = "local"
"""Source that every node has: its host."""
LOCAL_MOST: Final = {"cpu": 10.0, "memory": 1.0}
"""Resources of a host with their highest useful bound. `memory` is a share, at most 1.0. `cpu` is the number of processes per
processor that run or wait; 1.0 means that all processors are busy, and a bound above 10 is probably meant as a percentage."""

Amount = Annotated[float, Strict(), Field(gt=0, le=1e12)]


class LoadConstraint(ConstraintSpec):
    """Lets jobs start while a load is below a bound. After the load has reached the bound, it must fall below a second bound.

    If the load cannot be sampled, jobs wait for 5 minutes and then start, unless the constraint is `strict`.

    Attributes:
        source: Source of the load: `local` for the host of the deciding node, or a name in the nodes' setting `load.sources`.
        resource: Resource of the source. For `local`: `cpu` or `memory` as a share, 1.0 for all of it. The bound of `cpu` is at
            most 10, the bound of `memory` at most 1. Other sources have their own resources and units.
        below: Bound of the load; jobs start while the load is below it.
        resume: Bound below which the load must fall after it has reached `below`; by default `below`.
        max_age: Age up to which a sample is used, 1 s to 10 min.
        strict: Whether jobs keep waiting while the load is unknown.
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
            raise refused("is above below", field="resume", hint="jobs start again once the load has fallen to it")
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
            until=None,  # The next sample decides.
            reason_code="load_high",
            reason=f"{reason}; it was at {self.below:g} and has not fallen below {self._resume:g} since",
            values={"source": self.source, "resource": self.resource, "value": value, "below": self.below},
        )

    def _of_unknown(self, seen: LoadSeen, now: int) -> Verdict:
        since = seen.unknown_since
        if since is not None and now >= since + UNKNOWN_PATIENCE_MS and not self.strict:
            return Allow()
        waits = "the job waits" if self.strict else f"the job waits for at most {format_duration(UNKNOWN_PATIENCE_MS)}"
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
        """Whether the load is high. The latest sample outside of the two bounds decides; samples between them change nothing."""
        for _, value in reversed(seen.samples):
            if value >= self.below:
                return True
            if value < self._resume:
                return False
        return False

    @property
    def only_once(self) -> str | None:
        return f"looks at {self.resource} of {self.source}"
