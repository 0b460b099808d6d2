"""The constraint `rate`: bounds the runs per time of the schedule, its program, a named group, or one value of a key."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from tidegate_core.language.constraints.constraint import Allow, Claim, ConstraintSpec, Hold, LimitRef, Verdict
from tidegate_core.language.constraints.facts import Facts, Span
from tidegate_core.language.constraints.limit_scope import ScopedConstraint
from tidegate_core.language.time.calendar_periods import period_end, period_start
from tidegate_core.language.time.zones import ZoneName, zone_named
from tidegate_core.language.values.document import Whole
from tidegate_core.language.values.durations import DurationField, format_duration
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.language.values.problems import refused

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
LONGEST_MS = 366 * DAY_MS
MOST_RUNS = ConstraintSpec.ADMISSIONS_MAX
"""Most runs of a rate. Each is an instant in one item that every admission writes: 1,000 instants are 9 KB."""


class RateConstraint(ScopedConstraint):
    """Lets at most `max` runs be admitted within `per`.

    A run that is cancelled before its program starts does not count. The rate does not know runs that were admitted before the
    constraint existed, or more runs of a schedule than an earlier, smaller `max` needed.

    Attributes:
        max: Number of runs, 1 to 1,000. Each schedule compares all runs with its own `max`.
        per: Length of the span, 1 ms to 366 days; one hour or one day with `window: calendar`.
        window: Kind of span. `sliding`: any span of that length. `calendar`: each hour or day of the zone's wall clock.
        zone: Zone of the calendar.
        scope: Runs that count. `schedule`: runs of this schedule. `program`, `group`, `key`: as for `concurrency`, among
            schedules with a rate of the same scope, `per`, `window` and `zone`.
        group: Name of the group, for `scope: group`.
        key: Template for `scope: key`, such as `load ${correlation}`; it is resolved for each job.
    """

    EXAMPLE: ClassVar = {"type": "rate", "max": 1, "per": "1d", "window": "calendar", "zone": "Europe/Rome"}
    FIELD_HINTS: ClassVar = {"tz": "the field is called zone", "limit": "the field is called max"}

    type: Literal["rate"] = "rate"
    max: Whole = Field(ge=1, le=MOST_RUNS)
    per: DurationField = Field(gt=0)
    window: Literal["sliding", "calendar"] = "sliding"
    zone: ZoneName | None = None

    @model_validator(mode="after")
    def _a_span(self) -> Self:
        if self.per > LONGEST_MS:
            raise refused("is longer than 366 days", field="per", hint="give it at most 366d")
        if self.window == "calendar" and self.per not in {HOUR_MS, DAY_MS}:
            raise refused("is no span of the calendar", field="per", hint="write 1h or 1d, or window: sliding")
        if self.window == "sliding" and self.zone is not None:
            raise refused(
                "has no effect with a sliding window", field="zone", hint="leave it out, or write window: calendar"
            )
        return self

    def check(self, facts: Facts) -> Verdict:
        if self.scope != "schedule":
            return Allow()  # As for `concurrency`, the permit is a condition of the admission's own write.
        begin = self._begin(facts.now)
        counted = [instant for instant in facts.past.admitted if instant > begin]
        if len(counted) < self.max:
            return Allow()
        until = self._end(facts.now) if self.window == "calendar" else counted[-self.max] + self.per
        return Hold(
            until=until,
            reason_code="rate_reached",
            reason=f"{len(counted)} runs were admitted since {format_instant(begin + 1)}, "
            f"{self.max} per {format_duration(self.per)} are allowed; the next may start at {format_instant(until)}",
            values={"max": self.max, "per": self.per, "admitted": len(counted), "window": self.window},
        )

    def _begin(self, now: Instant) -> Instant:
        """Returns the last instant that no longer counts."""
        if self.window == "sliding":
            return now - self.per
        return period_start(zone_named(self.zone or "UTC"), now // 1000, self.per // 1000) * 1000 - 1

    def _end(self, now: Instant) -> Instant:
        return period_end(zone_named(self.zone or "UTC"), now // 1000, self.per // 1000) * 1000

    def limit(self, claim: Claim) -> LimitRef | None:
        if self.scope == "schedule":
            return None
        return LimitRef(
            scope=self.scope,
            namespace=claim.namespace,
            name=self.scope_name(claim),
            max=self.max,
            on_unmet=self.on_unmet,
            span=Span(self.per, (self.zone or "UTC") if self.window == "calendar" else None),
        )

    @property
    def admissions_remembered(self) -> int:
        return self.max if self.scope == "schedule" else 0

    @property
    def only_once(self) -> str | None:
        whose = "" if self.scope == "schedule" else f" of the same {self.scope_words}"
        return f"counts the runs{whose} of each {format_duration(self.per)} ({self.window})"
