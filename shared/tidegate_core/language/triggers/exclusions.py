"""Exclusions of time triggers. An excluded instant is no occurrence, and nothing is written about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, Strict, WithJsonSchema, model_validator

from tidegate_core.language.time.cron_fields import DayRule, parse_cron
from tidegate_core.language.time.cron_items import CronError, Dialect
from tidegate_core.language.time.cron_text import with_zone_of_expression
from tidegate_core.language.time.zones import Segment, ZoneName, zone_named
from tidegate_core.language.values.document import PLATFORM, Document, PlannedKinds, planned
from tidegate_core.language.values.instants import LATEST_INSTANT, Instant
from tidegate_core.language.values.problems import refused

MAX_EXCLUSIONS = 50

DAY_SECONDS = 86_400
ALL_MINUTES = (1 << 1_440) - 1
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class Span(NamedTuple):
    """Excluded instants `begin <= instant < end`. Instants outside the span may be excluded too and need another check."""

    begin: Instant
    end: Instant


def _date_of(value: Any) -> date:
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or len(value) != len("2026-12-24"):
        raise refused("is not a date", hint='write it in quotes, such as "2026-12-24"')
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise refused(f'"{value}" is not a date such as 2026-12-24') from error


DateField = Annotated[
    date,
    BeforeValidator(_date_of),
    PlainSerializer(date.isoformat, return_type=str),
    WithJsonSchema({"type": "string", "format": "date", "examples": ["2026-12-24"]}),
]


@lru_cache(maxsize=2048)
def minutes_named(expression: str, dialect: Dialect, day_rule: DayRule | None, identity: str = "") -> int:
    """Returns the minutes of a day that an expression names, the same on each named day: bit n is minute n."""
    return sum(1 << minute for minute in parse_cron(expression, dialect, day_rule, identity).minutes)


class ExcludedCron(Document):
    """Excludes the minutes that an expression names: `* * 25 12 *` is all of Christmas Day.

    Attributes:
        expression, dialect, day_rule: Fields as in a cron trigger, without `H`. Whole minutes are excluded in every dialect.
        zone: Zone of the wall clock; by default the trigger's.
    """

    EXAMPLE: ClassVar = {"type": "cron", "expression": "* * 25 12 *"}
    FIELD_HINTS: ClassVar = {"tz": "the field is called zone", "timezone": "the field is called zone"}

    type: Literal["cron"] = "cron"
    expression: Annotated[str, Strict()]
    dialect: Dialect = Field(default="unix5")
    day_rule: DayRule | None = None
    zone: ZoneName | None = None

    @model_validator(mode="before")
    @classmethod
    def _own_zone(cls, given: Any) -> Any:
        return with_zone_of_expression(given)

    @model_validator(mode="after")
    def _readable(self) -> Self:
        try:
            parse_cron(self.expression, self.dialect, self.day_rule)
        except CronError as error:
            raise refused(f'"{self.expression[:64]}" {error.problem}', hint=error.hint, field="expression") from error
        return self

    def minutes_out(self, day: int) -> int:
        """Returns the excluded minutes of a local day, counted from 1970-01-01: bit n is minute n."""
        fields = parse_cron(self.expression, self.dialect, self.day_rule)
        return minutes_named(self.expression, self.dialect, self.day_rule) if fields.names_day(day) else 0


class ExcludedDates(Document):
    """Excludes a day, or all days from `first` to `last`.

    Attributes:
        first: First local date.
        last: Last local date, included; by default the same day.
        zone: Zone of the days; by default the trigger's.
    """

    EXAMPLE: ClassVar = {"type": "dates", "first": "2026-12-24", "last": "2027-01-06"}
    FIELD_HINTS: ClassVar = {
        "date": "the field is called first",
        "from": "the field is called first",
        "to": "the field is called last",
        "tz": "the field is called zone",
    }

    type: Literal["dates"] = "dates"
    first: DateField
    last: DateField | None = None
    zone: ZoneName | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last is not None and self.last < self.first:
            raise refused("is before first", field="last", hint="both are included")
        return self

    def minutes_out(self, day: int) -> int:
        """Returns the excluded minutes of a local day, counted from 1970-01-01: bit n is minute n."""
        first, last = self.first.toordinal(), (self.last or self.first).toordinal()
        return ALL_MINUTES if first <= day + _EPOCH_ORDINAL <= last else 0


Exclusion: TypeAlias = Annotated[
    ExcludedCron | ExcludedDates,
    Field(discriminator="type"),
    PlannedKinds(planned(PLATFORM, "calendar", hint="named calendars come later; list the dates here")),
]


def excluded_span(exclusions: tuple[Exclusion, ...], zone: str, instant: Instant) -> Span | None:
    """Returns the span around the instant, within its local day, that exclusions of one zone exclude; or None.

    Args:
        exclusions: Exclusions of a trigger.
        zone: Zone of the trigger, for exclusions that name none.
        instant: Instant that the trigger names.
    """
    return _span_of(by_zone(exclusions, zone), instant)


def _span_of(exclusions: dict[str, list[Exclusion]], instant: Instant) -> Span | None:
    second = instant // 1000
    for name, sharing in exclusions.items():
        segment = zone_named(name).segment_at(second)
        day, rest = divmod(second + segment.offset, DAY_SECONDS)
        minutes = _minutes_around(minutes_out(sharing, day), rest // 60)
        if minutes is not None:
            begin, end = (day * DAY_SECONDS + minute * 60 - segment.offset for minute in minutes)
            # The first instant after a gap may stand for local times that are not excluded, so it is checked separately.
            is_behind_gap = segment.offset > segment.offset_before and second > segment.start
            return Span(max(begin, segment.start + is_behind_gap) * 1000, min(end, segment.end) * 1000)
    return None


def kept_in_gap(exclusions: tuple[Exclusion, ...], zone: str, gap: Segment, walls: Iterable[int]) -> Iterator[int]:
    """Yields the local times in a gap that are not excluded.

    A local time in the gap exists only for zones with the same clock change. Their exclusions are checked for the local
    time itself; exclusions of other zones are checked for the first instant after the gap.

    Args:
        exclusions: Exclusions of a trigger and of the enclosing trigger.
        zone: Zone of the trigger, for exclusions that name none.
        gap: Segment after the gap.
        walls: Local times that the trigger names, in wall seconds.
    """
    by_clock = by_zone(exclusions, zone)
    alike = [name for name in by_clock if _makes_change(name, gap)]
    same = [exclusion for name in alike for exclusion in by_clock.pop(name)]
    if _span_of(by_clock, gap.start * 1000) is not None:
        return
    out: dict[int, int] = {}
    for wall in walls:
        day, rest = divmod(wall, DAY_SECONDS)
        if day not in out:
            out[day] = minutes_out(same, day)
        if not out[day] >> rest // 60 & 1:
            yield wall


def _makes_change(zone: str, gap: Segment) -> bool:
    segment = zone_named(zone).segment_at(gap.start)
    return (segment.start, segment.offset_before, segment.offset) == (gap.start, gap.offset_before, gap.offset)


def excluded_dates(exclusions: tuple[Exclusion, ...], zone: str, instant: Instant) -> Span | None:
    """Returns the span around the instant that one exclusion of many days excludes, without its first and last days; or None.

    The exact beginning and end depend on the zone, so `excluded_span` decides about the days at both ends. The arguments are
    the same.
    """
    second = instant // 1000
    for exclusion in exclusions:
        if isinstance(exclusion, ExcludedDates) and exclusion.last is not None:
            first, last = (each.toordinal() - _EPOCH_ORDINAL for each in (exclusion.first, exclusion.last))
            # No zone is a whole day away from UTC.
            begin, end = (first + 1) * DAY_SECONDS, min((last - 1) * DAY_SECONDS, LATEST_INSTANT // 1000)
            if begin <= second < end:
                return Span(begin * 1000, end * 1000)
    return None


def by_zone(exclusions: Iterable[Exclusion], zone: str) -> dict[str, list[Exclusion]]:
    """Groups exclusions by zone; `zone` is for exclusions that name none."""
    found: dict[str, list[Exclusion]] = {}
    for exclusion in exclusions:
        found.setdefault(exclusion.zone or zone, []).append(exclusion)
    return found


def minutes_out(sharing: Iterable[Exclusion], day: int) -> int:
    """Returns the minutes of a local day that exclusions of one zone exclude together."""
    return reduce(or_, (exclusion.minutes_out(day) for exclusion in sharing), 0)


def _minutes_around(out: int, minute: int) -> tuple[int, int] | None:
    """Returns begin and end of the run of set bits around `minute`, or None if the bit of `minute` is not set."""
    if not out >> minute & 1:
        return None
    kept = ~out & ALL_MINUTES
    behind = kept >> minute
    begin = (kept & ((1 << minute) - 1)).bit_length()
    # The first bit after `minute` that is not excluded. If there is none, the end of the day.
    end = minute + (behind & -behind).bit_length() - 1 if behind else ALL_MINUTES.bit_length()
    return begin, end
