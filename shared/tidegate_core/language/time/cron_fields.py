"""Cron expressions as the local times that they name. `wall_clock` maps these times to instants of a zone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal, TypeAlias

from tidegate_core.language.time import cron_text, quartz_text
from tidegate_core.language.time.calendar_periods import SpecialDay
from tidegate_core.language.time.cron_items import CronError, Dialect, FieldText, read_with_hint
from tidegate_core.language.values.instants import LATEST_INSTANT

DayRule: TypeAlias = Literal["and", "or"]

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_SECONDS = 86_400
_MONTH_LENGTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_MONTH_NAMES = "January February March April May June July August September October November December".split()
_LAST_DAY = LATEST_INSTANT // (_DAY_SECONDS * 1000)
"""Last day of a search, in 2286. An earlier end would lose occurrences for ever: a Monday of 29 February comes after 28 or 40 years."""


@dataclass(frozen=True, slots=True)
class CronFields:
    """The local times that an expression names. Days count from 1970-01-01; a wall is a local time in seconds since then.

    Attributes:
        seconds: Seconds of a minute, ascending.
        minutes: Minutes of a day (hours and minutes together, at most 1,440), ascending.
        days_of_month: Days from 1 to 31.
        months: Months from 1 to 12.
        days_of_week: Days from 0 to 6, with 0 for Sunday.
        either_day: Whether one of the two day fields suffices (Vixie's rule if both are restricted).
        real_cadence: Whether the hour field begins with `*`. Then the times follow real time through clock changes.
        special_days: Further days, at most one a month each (Quartz).
        years: Years (Quartz); None for every year.
    """

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    days_of_month: frozenset[int]
    months: frozenset[int]
    days_of_week: frozenset[int]
    either_day: bool
    real_cadence: bool
    special_days: tuple[SpecialDay, ...] = ()
    years: frozenset[int] | None = None

    def next_wall(self, wall: int) -> int | None:
        """Returns the first named local time strictly after `wall`, or None if there is none until 2286."""
        day, second = divmod(wall, _DAY_SECONDS)
        if self.names_day(day):
            later = self._next_in_day(second)
            if later is not None:
                return day * _DAY_SECONDS + later
        following = self._next_day(day)
        return None if following is None else following * _DAY_SECONDS + self.minutes[0] * 60 + self.seconds[0]

    def previous_wall(self, wall: int) -> int | None:
        """Returns the last named local time strictly before `wall`, or None if there is none since 1970."""
        day, second = divmod(wall, _DAY_SECONDS)
        if self.names_day(day):
            earlier = self._previous_in_day(second)
            if earlier is not None:
                return day * _DAY_SECONDS + earlier
        preceding = self._previous_day(day)
        return None if preceding is None else preceding * _DAY_SECONDS + self.minutes[-1] * 60 + self.seconds[-1]

    def _next_in_day(self, second: int) -> int | None:
        minute, rest = divmod(second, 60)
        place = bisect_left(self.minutes, minute)
        if place < len(self.minutes) and self.minutes[place] == minute:
            if rest < self.seconds[-1]:
                return minute * 60 + self.seconds[bisect_right(self.seconds, rest)]
            place += 1
        return self.minutes[place] * 60 + self.seconds[0] if place < len(self.minutes) else None

    def _previous_in_day(self, second: int) -> int | None:
        minute, rest = divmod(second, 60)
        place = bisect_left(self.minutes, minute)
        if place < len(self.minutes) and self.minutes[place] == minute and rest > self.seconds[0]:
            return minute * 60 + self.seconds[bisect_left(self.seconds, rest) - 1]
        return self.minutes[place - 1] * 60 + self.seconds[-1] if place > 0 else None

    def names_day(self, day: int) -> bool:
        """Whether the expression names a day, counted from 1970-01-01."""
        when = date.fromordinal(day + _EPOCH_ORDINAL)
        if not self._names_month(when):
            return False
        by_month, by_week = when.day in self.days_of_month, (day + 4) % 7 in self.days_of_week
        if by_month or by_week if self.either_day else by_month and by_week:
            return True
        return any(special.day_in(when.year, when.month) == when.day for special in self.special_days)

    def _names_month(self, when: date) -> bool:
        return when.month in self.months and (self.years is None or when.year in self.years)

    def _next_day(self, day: int) -> int | None:
        day += 1
        while day <= _LAST_DAY:
            if self.names_day(day):
                return day
            when = date.fromordinal(day + _EPOCH_ORDINAL)
            # Skips a month that is not named in one step, so that yearly expressions stay fast.
            day = day + 1 if self._names_month(when) else _first_of_next_month(when)
        return None

    def _previous_day(self, day: int) -> int | None:
        day -= 1
        while day >= 0:
            if self.names_day(day):
                return day
            when = date.fromordinal(day + _EPOCH_ORDINAL)
            day = day - 1 if self._names_month(when) else day - when.day
        return None


def _first_of_next_month(when: date) -> int:
    following = date(when.year + when.month // 12, when.month % 12 + 1, 1)
    return following.toordinal() - _EPOCH_ORDINAL


@lru_cache(maxsize=2048)
def parse_cron(
    expression: str, dialect: Dialect = "unix5", day_rule: DayRule | None = None, identity: str = ""
) -> CronFields:
    """Returns the expanded fields of an expression.

    Args:
        expression: At most 256 characters: five fields (`unix5`), six with seconds first (`unix6`), six or seven
            (`quartz`), or a macro.
        dialect: Number and meaning of the fields.
        day_rule: Rule for two restricted day fields: both must match (`and`) or one (`or`). The default is Vixie's rule.
        identity: Input of the hash for `H`. It is a key of the cache, so pass it only for an expression with `H`.

    Raises:
        CronError: The expression is invalid. The error has the place and, if one exists, the nearest valid expression.

    Source: the day rule is Vixie cron's: OR when both day fields are restricted, AND when one begins with `*`.
    """
    return read_with_hint(lambda text: _parsed(text, dialect, day_rule, identity), expression)


def _parsed(expression: str, dialect: Dialect, day_rule: DayRule | None, identity: str) -> CronFields:
    if dialect == "quartz":
        return _quartz(quartz_text.checked_fields(expression), day_rule)
    texts = cron_text.checked_fields(expression, dialect, identity)
    minutes, hours, days_of_month, months, days_of_week = (text.values for text in texts[-5:])
    seconds = texts[0].values if dialect == "unix6" else frozenset({0})
    hour, day, week = texts[-4].text, texts[-3].text, texts[-1].text
    either_day = _either_day(day, week, day_rule)
    if not either_day:
        _refuse_impossible_date(days_of_month, months)
    return CronFields(
        seconds=tuple(sorted(seconds)),
        minutes=_minutes_of_day(hours, minutes),
        days_of_month=days_of_month,
        months=months,
        days_of_week=frozenset(number % 7 for number in days_of_week),
        either_day=either_day,
        real_cadence=hour.startswith("*"),
    )


def _quartz(texts: tuple[FieldText, ...], day_rule: DayRule | None) -> CronFields:
    """Returns the fields of a Quartz expression. One of its day fields is `?` and has no values, so either field suffices."""
    if day_rule is not None:
        raise CronError("of dialect quartz names days by one field only", hint="leave day_rule out")
    second, minute, hour, day, month, week, *year = texts
    if day.values and not day.special:
        _refuse_impossible_date(day.values, month.values)
    return CronFields(
        seconds=tuple(sorted(second.values)),
        minutes=_minutes_of_day(hour.values, minute.values),
        days_of_month=day.values,
        months=month.values,
        days_of_week=week.values,
        either_day=True,
        real_cadence=hour.text.startswith("*"),
        special_days=(*day.special, *week.special),
        years=None if not year or year[0].text == "*" else year[0].values,
    )


def _minutes_of_day(hours: frozenset[int], minutes: frozenset[int]) -> tuple[int, ...]:
    return tuple(sorted(hour * 60 + minute for hour in hours for minute in minutes))


def _either_day(day: str, week: str, rule: DayRule | None) -> bool:
    if day == "*" or week == "*":
        # A plain star restricts nothing, so "either field" would mean every day, which no user intends.
        return False
    if rule is not None:
        return rule == "or"
    return not (day.startswith("*") or week.startswith("*"))


def _refuse_impossible_date(days: frozenset[int], months: frozenset[int]) -> None:
    longest = max(_MONTH_LENGTHS.get(month, 31) for month in months)
    if min(days) > longest:
        named = ", ".join(_MONTH_NAMES[month - 1] for month in sorted(months))
        raise CronError(f"names an impossible date: {named} has no day {min(days)}", hint=f"its last day is {longest}")


def smallest_gap_seconds(fields: CronFields) -> int:
    """Returns a lower bound of the time between two occurrences. It is exact unless the named days are never adjacent."""
    gaps = [b - a for a, b in zip(fields.seconds, fields.seconds[1:], strict=False)]
    across = fields.seconds[-1] - fields.seconds[0]
    gaps += [(b - a) * 60 - across for a, b in zip(fields.minutes, fields.minutes[1:], strict=False)]
    if _has_adjacent_days(fields):
        span = fields.minutes[-1] * 60 + fields.seconds[-1] - fields.minutes[0] * 60 - fields.seconds[0]
        gaps.append(_DAY_SECONDS - span)
    return min(gaps, default=_DAY_SECONDS)


def _has_adjacent_days(fields: CronFields) -> bool:
    of_week = any((day + 1) % 7 in fields.days_of_week for day in fields.days_of_week)
    ends = {28, 29, 30, 31}
    of_month = any(day + 1 in fields.days_of_month for day in fields.days_of_month) or (
        1 in fields.days_of_month and not ends.isdisjoint(fields.days_of_month)
    )
    if not fields.either_day:
        return of_week and of_month
    # Days that two fields or a special day name together are not computed; they may be adjacent.
    return of_week or of_month or bool(fields.special_days) or bool(fields.days_of_week and fields.days_of_month)
