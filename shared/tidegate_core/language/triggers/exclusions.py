"""What a time trigger leaves out: an excluded instant is no occurrence, and nothing is written about it (SEMANTICS 1.6)."""

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
    """Instants `begin <= instant < end` that are left out; what lies beside them is to be asked again."""

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
    """Returns the minutes that an expression names on each of its days: bit n is minute n."""
    return sum(1 << minute for minute in parse_cron(expression, dialect, day_rule, identity).minutes)


class ExcludedCron(Document):
    """Leaves out the minutes that an expression names: `* * 25 12 *` is all of Christmas Day.

    Attributes:
        expression, dialect, day_rule: As of a cron trigger, without `H`; whole minutes count, also where the dialect has seconds.
        zone: Whose wall clock is read; the trigger's own by default.
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
        """Returns the minutes of a local day, counted from 1970-01-01, that are left out: bit n is minute n."""
        fields = parse_cron(self.expression, self.dialect, self.day_rule)
        return minutes_named(self.expression, self.dialect, self.day_rule) if fields.names_day(day) else 0


class ExcludedDates(Document):
    """Leaves out a day, or all days from `first` to `last`.

    Attributes:
        first: A local date.
        last: Included; the same day by default.
        zone: Whose days; the trigger's own by default.
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
        """Returns the minutes of a local day, counted from 1970-01-01, that are left out: bit n is minute n."""
        first, last = self.first.toordinal(), (self.last or self.first).toordinal()
        return ALL_MINUTES if first <= day + _EPOCH_ORDINAL <= last else 0


Exclusion: TypeAlias = Annotated[
    ExcludedCron | ExcludedDates,
    Field(discriminator="type"),
    PlannedKinds(planned(PLATFORM, "calendar", hint="named calendars come later; list the dates here")),
]


def excluded_span(exclusions: tuple[Exclusion, ...], zone: str, instant: Instant) -> Span | None:
    """Returns the span around the instant, within its local day, that the exclusions of one zone leave out; or None.

    Args:
        exclusions: Of a trigger.
        zone: The trigger's own, for those that name none.
        instant: An instant that the trigger names.
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
            # The first instant after a gap may stand for local times that are not left out: it is to be asked by itself.
            is_behind_gap = segment.offset > segment.offset_before and second > segment.start
            return Span(max(begin, segment.start + is_behind_gap) * 1000, min(end, segment.end) * 1000)
    return None


def kept_in_gap(exclusions: tuple[Exclusion, ...], zone: str, gap: Segment, walls: Iterable[int]) -> Iterator[int]:
    """Yields those of the local times in a gap that are not left out.

    A clock that makes the same change is asked for the local time, which no other one knows: those are asked for the first
    instant after the gap.

    Args:
        exclusions: Of a trigger, and of what it is a part of.
        zone: The trigger's own, for those that name none.
        gap: The stretch behind the gap.
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
    """Returns most of the dates around the instant that one exclusion leaves out, where those are many days; or None.

    Arguments as of `excluded_span`. A day or two at either end are left to that: where they begin and end is the zone's to say.
    """
    second = instant // 1000
    for exclusion in exclusions:
        if isinstance(exclusion, ExcludedDates) and exclusion.last is not None:
            first, last = (each.toordinal() - _EPOCH_ORDINAL for each in (exclusion.first, exclusion.last))
            # No clock is a day away from UTC.
            begin, end = (first + 1) * DAY_SECONDS, min((last - 1) * DAY_SECONDS, LATEST_INSTANT // 1000)
            if begin <= second < end:
                return Span(begin * 1000, end * 1000)
    return None


def by_zone(exclusions: Iterable[Exclusion], zone: str) -> dict[str, list[Exclusion]]:
    """Returns them by whose days they mean; `zone` for those that name none."""
    found: dict[str, list[Exclusion]] = {}
    for exclusion in exclusions:
        found.setdefault(exclusion.zone or zone, []).append(exclusion)
    return found


def minutes_out(sharing: Iterable[Exclusion], day: int) -> int:
    """Returns the minutes of a local day that exclusions of one zone leave out together: morning and afternoon are a day."""
    return reduce(or_, (exclusion.minutes_out(day) for exclusion in sharing), 0)


def _minutes_around(out: int, minute: int) -> tuple[int, int] | None:
    """Returns first and end of the bits around `minute` that are set without a gap, or None where it is not."""
    if not out >> minute & 1:
        return None
    kept = ~out & ALL_MINUTES
    behind = kept >> minute
    begin = (kept & ((1 << minute) - 1)).bit_length()
    # The lowest bit that is kept behind the minute; none is the end of the day.
    end = minute + (behind & -behind).bit_length() - 1 if behind else ALL_MINUTES.bit_length()
    return begin, end
