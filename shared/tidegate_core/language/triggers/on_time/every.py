"""The trigger `every`: fires at each multiple of an elapsed period since the Unix epoch, or of days, weeks or months.

The module also converts the cron macro `@every 90m` to this trigger: its period is elapsed time, without zone or dialect.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import Field, PlainSerializer, PlainValidator, ValidationError, WithJsonSchema, model_validator

from tidegate_core.language.time.calendar_periods import DAY_SECONDS, MOST, CalendarPeriod, PeriodTimes, Unit
from tidegate_core.language.time.day_fields import TimeOfDay
from tidegate_core.language.time.wall_clock import WallClock
from tidegate_core.language.time.zones import Zone, ZoneName, zone_named
from tidegate_core.language.triggers.exclusions import ALL_MINUTES
from tidegate_core.language.triggers.on_time.cron import EVERY_MACRO, CronTrigger
from tidegate_core.language.triggers.on_time.wall_clock_trigger import WallClockTrigger
from tidegate_core.language.triggers.search import Search, minutes_named_on
from tidegate_core.language.values.durations import Duration, DurationField, duration_of, format_duration
from tidegate_core.language.values.instants import LATEST_INSTANT, Instant
from tidegate_core.language.values.problems import refused
from tidegate_core.language.values.validation_errors import problems_of

SHORTEST_PERIOD_MS = 1_000
"""Shortest period in any configuration; the setting for the minimum period is usually higher."""

MINUTE_MS = 60_000

_UNITS: tuple[Unit, ...] = get_args(Unit)


def _period_of(value: Any) -> Duration | CalendarPeriod:
    if isinstance(value, CalendarPeriod):
        return value
    if not isinstance(value, dict):
        return duration_of(value)
    if len(value) != 1 or not set(value) <= set(_UNITS):
        raise refused("is not one of days, weeks or months", hint='write {days: 1}, or elapsed time such as "90m"')
    ((unit, count),) = value.items()
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST[unit]:
        raise refused(f"is not a whole number from 1 to {MOST[unit]}", field=unit)
    return CalendarPeriod(unit, count)


def _written(period: Duration | CalendarPeriod) -> Any:
    return {period.unit: period.count} if isinstance(period, CalendarPeriod) else format_duration(period)


PeriodField = Annotated[
    int | CalendarPeriod,
    PlainValidator(_period_of),
    PlainSerializer(_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "examples": ["90s", "15m", "4h", "7d", "1h30m", "PT90M"]},
                {
                    "type": "object",
                    "properties": {
                        unit: {"type": "integer", "minimum": 1, "maximum": most} for unit, most in MOST.items()
                    },
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": False,
                    "examples": [{"days": 1}],
                },
            ]
        }
    ),
]


class EveryTrigger(WallClockTrigger):
    """Fires at each multiple of an elapsed `period` since 1970-01-01T00:00:00Z, or each calendar period at `at`.

    Attributes:
        period: Elapsed time between two occurrences, 1 s or longer; or `{days: n}`, `{weeks: n}` or `{months: n}`, counted
            from the local date of `start`. Without `start` they count from Thursday, 1970-01-01.
        phase: Shift of all occurrences, for elapsed time only; at least 0 and shorter than the period.
        at: Time of day, for calendar periods only; midnight by default.
        zone: Zone by IANA name or fixed offset, for calendar periods only; UTC by default.
    """

    EXAMPLE: ClassVar = {"type": "every", "period": "90m", "phase": "10m"}
    FIELD_HINTS: ClassVar = {
        **WallClockTrigger.FIELD_HINTS,
        "every": "the field is called period",
        "interval": "the field is called period",
    }

    type: Literal["every"] = "every"
    period: PeriodField
    phase: DurationField = Field(default=0, json_schema_extra={"default": "0s"})
    at: TimeOfDay | None = None
    zone: ZoneName | None = None

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if isinstance(self.period, CalendarPeriod):
            if self.phase:
                raise refused("belongs to elapsed time", field="phase", hint="a calendar period has a time of day: at")
            return self
        if self.period < SHORTEST_PERIOD_MS:
            raise refused("is shorter than 1s", field="period", hint="give it at least 1s")
        if self.phase >= self.period:
            raise refused(
                "is not shorter than the period",
                field="phase",
                hint=f"give it less than {format_duration(self.period)}",
            )
        for field in ("at", "zone", "dst_gap", "dst_overlap"):
            if getattr(self, field) is not None:
                hint = "write period: {days: 1} for calendar time, or leave it out"
                raise refused("has no meaning for elapsed time, which has no zone", field=field, hint=hint)
        return self

    @property
    def own_zone(self) -> str:
        return self.zone or "UTC"

    def wall_clock(self, identity: str) -> WallClock | None:
        if not isinstance(self.period, CalendarPeriod):
            return None
        zone = zone_named(self.own_zone)
        times = PeriodTimes(self.period, self._anchor_day(zone), self.at or 0)
        return WallClock(times, zone, self.dst_policy)

    def smallest_gap_ms(self, identity: str = "") -> Duration | None:
        return self.period.shortest_ms if isinstance(self.period, CalendarPeriod) else self.period

    def minutes_of(self, day: int, identity: str) -> int:
        if isinstance(self.period, CalendarPeriod):
            named = 1 << (self.at or 0) // 60
            return minutes_named_on(zone_named(self.own_zone), day, lambda _: named)
        if self.period <= MINUTE_MS:
            return ALL_MINUTES
        begin, end = (each * DAY_SECONDS * 1000 for each in (day, day + 1))
        first = -(-(begin - self.phase) // self.period) * self.period + self.phase
        named = 0
        for at in range(first, end, self.period):
            named |= 1 << (at - begin) // MINUTE_MS
        return named

    def _anchor_day(self, zone: Zone) -> int:
        if self.start is None:
            return 0
        second = self.start // 1000
        return (second + zone.segment_at(second).offset) // DAY_SECONDS

    def _following(self, after: Instant, identity: str, search: Search) -> Instant | None:
        if isinstance(self.period, CalendarPeriod):
            return super()._following(after, identity, search)
        following = ((after - self.phase) // self.period + 1) * self.period + self.phase
        return following if following <= LATEST_INSTANT else None

    def _preceding(self, before: Instant, identity: str, search: Search) -> Instant | None:
        if isinstance(self.period, CalendarPeriod):
            return super()._preceding(before, identity, search)
        preceding = (before - self.phase - 1) // self.period * self.period + self.phase
        return preceding if preceding >= 0 else None


_Trigger = TypeVar("_Trigger")

_KEPT = {"start", "end", "max_fires", "flexible"}


def every_macro_as_every(trigger: _Trigger) -> _Trigger | EveryTrigger:
    """Returns the trigger, or the trigger `every` for the macro `@every`.

    The macro is first read as a cron trigger, so that a wrong zone next to it is reported as well.
    """
    if not isinstance(trigger, CronTrigger) or not trigger.is_every_macro:
        return trigger
    if trigger.exclude is not None:
        # Its dates would be in the cron trigger's zone, and elapsed time has no zone.
        raise refused("is not allowed with @every", field="exclude", hint="write a trigger of type every")
    kept = trigger.model_dump(mode="json", include=_KEPT, exclude_none=True)
    try:
        return EveryTrigger.model_validate({**kept, "period": trigger.expression.removeprefix(EVERY_MACRO).strip()})
    except ValidationError as error:
        first = problems_of(error, EveryTrigger)[0]
        raise refused(first.problem, field="expression", hint=first.hint) from error
