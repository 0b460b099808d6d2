"""Calendar arithmetic: special days of a month, periods of days, weeks or months, and the hours and days of a zone."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, NamedTuple, TypeAlias

from tidegate_core.language.time.zones import Segment, Zone
from tidegate_core.language.values.durations import Duration

SpecialKind: TypeAlias = Literal["last", "last_weekday", "nearest_weekday", "nth_of_week", "last_of_week"]

_SUNDAY, _SATURDAY = 0, 6


class SpecialDay(NamedTuple):
    """A day that a month has at most once, such as its last day or its third Friday. Quartz expressions name such days.

    Attributes:
        kind: Kind of the day, in Quartz `L` and `L-n`, `LW` and `L-nW`, `nW`, `n#k`, and `nL`, in this order.
        number: Days before the last day (`last`, `last_weekday`), date (`nearest_weekday`), or weekday from 0 for Sunday.
        nth: Week from 1 to 5, for `nth_of_week`.
    """

    kind: SpecialKind
    number: int = 0
    nth: int = 0

    def day_in(self, year: int, month: int) -> int | None:
        """Returns the day of the month, or None if the month has no such day."""
        length = monthrange(year, month)[1]
        match self.kind:
            case "last":
                return length - self.number if self.number < length else None
            case "last_weekday":
                return _nearest_weekday(year, month, length - self.number, length) if self.number < length else None
            case "nearest_weekday":
                # A month without the date has no nearest weekday: 31W does not mean 30 June.
                return _nearest_weekday(year, month, self.number, length) if self.number <= length else None
            case "nth_of_week":
                day = 1 + (self.number - _weekday(year, month, 1)) % 7 + 7 * (self.nth - 1)
                return day if day <= length else None
            case "last_of_week":
                return length - (_weekday(year, month, length) - self.number) % 7


def _nearest_weekday(year: int, month: int, day: int, length: int) -> int:
    """Returns the weekday nearest to a day, within the month: if the 1st is a Saturday, 1W is Monday the 3rd."""
    weekday = _weekday(year, month, day)
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day


def _weekday(year: int, month: int, day: int) -> int:
    return date(year, month, day).isoweekday() % 7


Unit: TypeAlias = Literal["days", "weeks", "months"]

DAY_SECONDS = 86_400
MOST: dict[Unit, int] = {"days": 3_650, "weeks": 520, "months": 120}
"""Ten years in each unit: a longer period would exceed the horizon of definitions and never fire."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_SHORTEST_DAYS: dict[Unit, int] = {"days": 1, "weeks": 7, "months": 28}


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """A number of days, weeks or months on the calendar. It is no elapsed time: a day may have 23 or 25 hours."""

    unit: Unit
    count: int

    @property
    def shortest_ms(self) -> Duration:
        return self.count * _SHORTEST_DAYS[self.unit] * DAY_SECONDS * 1000


@dataclass(frozen=True, slots=True)
class PeriodTimes:
    """The local times of a calendar period: every n days, weeks or months at a time of day.

    Attributes:
        period: Period between two of the times.
        anchor_day: Day of one of the times, counted from 1970-01-01. Months keep its day of the month. A shorter month uses
            its last day, and later months return to the anchor's day.
        second: Second of the day.
    """

    period: CalendarPeriod
    anchor_day: int
    second: int

    @property
    def real_cadence(self) -> bool:
        return False

    def next_wall(self, wall: int) -> int | None:
        step = self._step_near(wall)
        while self._wall(step) > wall:
            step -= 1
        while self._wall(step) <= wall:
            step += 1
        return self._wall(step)

    def previous_wall(self, wall: int) -> int | None:
        step = self._step_near(wall)
        while self._wall(step) < wall:
            step += 1
        while self._wall(step) >= wall:
            step -= 1
        return self._wall(step)

    def _step_near(self, wall: int) -> int:
        """Returns the number of a step near `wall`, at most two steps away."""
        days = wall // DAY_SECONDS - self.anchor_day
        match self.period.unit:
            case "days":
                return days // self.period.count
            case "weeks":
                return days // (7 * self.period.count)
            case "months":
                months = _month_of(wall // DAY_SECONDS) - _month_of(self.anchor_day)
                return months // self.period.count

    def _wall(self, step: int) -> int:
        return self._day(step * self.period.count) * DAY_SECONDS + self.second

    def _day(self, units: int) -> int:
        if self.period.unit != "months":
            return self.anchor_day + units * (7 if self.period.unit == "weeks" else 1)
        anchor = date.fromordinal(self.anchor_day + _EPOCH_ORDINAL)
        year, month = divmod(_month_of(self.anchor_day) + units, 12)
        day = min(anchor.day, monthrange(year, month + 1)[1])
        return date(year, month + 1, day).toordinal() - _EPOCH_ORDINAL


def _month_of(day: int) -> int:
    when = date.fromordinal(day + _EPOCH_ORDINAL)
    return when.year * 12 + when.month - 1


_DAY: Final = 86_400


def period_start(zone: Zone, second: int, length: int) -> int:
    """Returns the second at which the zone's hour or day around `second` began.

    Args:
        zone: Zone of the wall clock.
        second: Seconds since the epoch.
        length: Length of an hour (3,600) or of a day (86,400). At a clock change the real span is longer or shorter. A whole
            hour that is shown twice counts as two hours. A day counts once, even if its first or last hour is shown twice.
    """
    segment = zone.segment_at(second)
    edge = second + segment.offset - (second + segment.offset) % length
    # A day with a repeated hour continues after the clock change, also if the second pass begins exactly at the day's edge.
    while edge - segment.offset < segment.start or (length == _DAY and edge - segment.offset == segment.start):
        before = zone.segment_at(segment.start - 1)
        if before.end + before.offset <= edge:
            return segment.start  # The clock change skipped the beginning of the hour or day.
        segment = before
    return edge - segment.offset


def period_end(zone: Zone, second: int, length: int) -> int:
    """Returns the first second after the zone's hour or day around `second`. An hour that is shown twice ends after each pass."""
    segment = zone.segment_at(second)
    edge = second + segment.offset - (second + segment.offset) % length + length
    while edge - segment.offset > segment.end or (
        edge - segment.offset == segment.end and _goes_on(zone.segment_at(segment.end), edge, length)
    ):
        segment = zone.segment_at(segment.end)
        if segment.start + segment.offset >= edge:
            return segment.start
    return edge - segment.offset


def _goes_on(following: Segment, edge: int, length: int) -> bool:
    """Whether the segment, which begins at the edge with a clock set back, still belongs to the same day or hour.

    A whole hour that is shown twice counts as two hours, so it does not continue.
    """
    begins = following.start + following.offset
    return begins < edge and (length == _DAY or begins > edge - length)
