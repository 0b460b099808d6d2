"""Calendar periods: every n days, weeks or months at a time of day, counted from an anchor (SEMANTICS 1.4)."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from typing import Literal, TypeAlias

from tidegate_core.language.values.durations import Duration

Unit: TypeAlias = Literal["days", "weeks", "months"]

DAY_SECONDS = 86_400
MOST: dict[Unit, int] = {"days": 3_650, "weeks": 520, "months": 120}
"""Ten years each: beyond that nothing would ever fire."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_SHORTEST_DAYS: dict[Unit, int] = {"days": 1, "weeks": 7, "months": 28}


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """A number of days, weeks or months; never an elapsed time: a day may have 23 or 25 hours."""

    unit: Unit
    count: int

    @property
    def shortest_ms(self) -> Duration:
        return self.count * _SHORTEST_DAYS[self.unit] * DAY_SECONDS * 1000


@dataclass(frozen=True, slots=True)
class PeriodTimes:
    """The local times of a calendar period.

    Attributes:
        period: What lies between two of them.
        anchor_day: Days since 1970-01-01 of one of them. Months count from its day of the month: where one is too short,
            its last day is taken, and the next month's is not moved by that.
        second: Of the day.
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
        """Returns a number that is wrong by a step or two at most."""
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
