"""Random questions: an expression with its meaning, a zone, and an instant, often close to a change of its clock."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from random import Random
from typing import TypeAlias

from tests.oracles.calendar.brute_force_walker import Meaning, changes_of, rules_of
from tidegate_core.language.time.cron_items import Dialect
from tidegate_core.language.time.wall_clock import DstPolicy
from tidegate_core.language.time.zones import iana_names

FIRST_YEAR, LAST_YEAR = 2015, 2037
ODD_ZONES = ("Antarctica/Casey", "Antarctica/Troll", "Antarctica/Vostok", "Australia/Lord_Howe", "America/Caracas")
"""Whose clocks change by other than an hour; some also without a season."""
MOST_TIMES_A_DAY = 1_500
"""More would take the walker seconds around a change, and show nothing that fewer do not."""

_MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
_WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()
Field: TypeAlias = tuple[str, frozenset[int]]
Days: TypeAlias = Callable[[date], bool]


@dataclass(frozen=True)
class Triple:
    """A question. Its text says all that is needed to ask it again."""

    expression: str
    dialect: Dialect
    policy: DstPolicy
    zone: str
    after: int
    meaning: Meaning

    def __str__(self) -> str:
        return f"{self.expression!r} {self.dialect} {tuple(self.policy)} {self.zone} after {self.after}"


@lru_cache(maxsize=1)
def zones() -> tuple[str, ...]:
    return tuple(sorted(iana_names()))


@lru_cache(maxsize=1024)
def _changes(zone: str) -> list[int]:
    return changes_of(zone, FIRST_YEAR, LAST_YEAR)


def triple(chance: Random) -> Triple:
    """Returns the next question of a generator of random numbers."""
    zone = chance.choice(ODD_ZONES if chance.random() < 0.05 else zones())
    after, hour = _instant(chance, zone)
    dialect: Dialect = chance.choice(("unix5", "unix5", "unix6", "quartz"))
    policy = DstPolicy()
    clock, text, real_cadence = _clock(chance, dialect, hour)
    if not real_cadence and chance.random() < 0.5:
        policy = DstPolicy(chance.choice(("shift", "skip")), chance.choice(("first", "last", "both")))
    days_text, names_day = _quartz_days(chance, after) if dialect == "quartz" else _unix_days(chance)
    meaning = Meaning(clock, names_day, real_cadence, policy.gap, policy.overlap)
    return Triple(f"{text} {days_text}", dialect, policy, zone, after, meaning)


def _instant(chance: Random, zone: str) -> tuple[int, int]:
    """Returns an instant, and the local hour in which the clock changes near it; any hour where none does."""
    begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (FIRST_YEAR, LAST_YEAR + 1))
    changes = _changes(zone)
    if not changes or chance.random() < 0.3:
        return chance.randrange(begin * 1000, end * 1000), chance.randint(0, 23)
    change = chance.choice(changes)
    hour = datetime.fromtimestamp(change - 1, rules_of(zone)).hour
    hours_ms = 3_600_000
    near = (0, -1, 1, chance.randint(-8 * hours_ms, 3 * hours_ms), chance.randint(-48 * hours_ms, 24 * hours_ms))
    return change * 1000 + chance.choice(near), hour


def _clock(chance: Random, dialect: Dialect, around: int) -> tuple[tuple[int, ...], str, bool]:
    while True:
        second = ("0", frozenset({0})) if chance.random() < 0.6 else _field(chance, 0, 59, dialect)
        minute, hour = _field(chance, 0, 59, dialect), _field(chance, 0, 23, dialect)
        if chance.random() < 0.6:
            hour = _field(
                chance, max(0, around - 2), min(23, around + 3), dialect, star=False
            )  # Where the clock changes.
        seconds = frozenset({0}) if dialect == "unix5" else second[1]
        clock = sorted(h * 3600 + m * 60 + s for h in hour[1] for m in minute[1] for s in seconds)
        if len(clock) <= MOST_TIMES_A_DAY:
            text = f"{minute[0]} {hour[0]}" if dialect == "unix5" else f"{second[0]} {minute[0]} {hour[0]}"
            return tuple(clock), text, hour[0].startswith("*")


def _field(
    chance: Random, low: int, high: int, dialect: Dialect, names: Sequence[str] = (), *, star: bool = True
) -> Field:
    """Returns a field's text with what it names: a star, or a list of values, ranges and steps."""
    if star and chance.random() < 0.4:
        step = chance.choice((1, 1, chance.randint(1, high - low)))
        return ("*" if step == 1 else f"*/{step}"), frozenset(range(low, high + 1, step))
    items = [_item(chance, low, high, dialect, names) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return ",".join(text for text, _ in items), frozenset().union(*(values for _, values in items))


def _item(chance: Random, low: int, high: int, dialect: Dialect, names: Sequence[str]) -> Field:
    def written(number: int) -> str:
        return (
            chance.choice((names[number - low].lower(), names[number - low]))
            if names and chance.random() < 0.5
            else str(number)
        )

    first, last = chance.randint(low, high), chance.randint(low, high)
    form = chance.choice(("value", "value", "range", "step"))
    if form == "value":
        return written(first), frozenset({first})
    if last < first:
        first, last = last, first
    step = chance.randint(1, high - low) if form == "step" else 1
    suffix = f"/{step}" if form == "step" else ""
    return f"{written(first)}-{written(last)}{suffix}", frozenset(range(first, last + 1, step))


def _unix_days(chance: Random) -> tuple[str, Days]:
    day = ("*", frozenset(range(1, 32))) if chance.random() < 0.6 else _field(chance, 1, 31, "unix5")
    week = ("*", frozenset(range(7))) if chance.random() < 0.6 else _field(chance, 0, 6, "unix5", _WEEKDAYS)
    month = ("*", frozenset(range(1, 13))) if chance.random() < 0.7 else _field(chance, 1, 12, "unix5", _MONTHS)
    if min(day[1]) > 28:
        day = ("28", frozenset({28}))  # Else it may name a date that no month has.
    both = day[0][0] == "*" or week[0][0] == "*"

    def names(when: date) -> bool:
        of_month, of_week = when.day in day[1], when.isoweekday() % 7 in week[1]
        return when.month in month[1] and ((of_month and of_week) if both else (of_month or of_week))

    return f"{day[0]} {month[0]} {week[0]}", names


def _quartz_days(chance: Random, after: int) -> tuple[str, Days]:
    month = ("*", frozenset(range(1, 13))) if chance.random() < 0.7 else _field(chance, 1, 12, "quartz", _MONTHS)
    day, week, names_day = _quartz_of_month(chance) if chance.random() < 0.5 else _quartz_of_week(chance)
    year_text, years = "", frozenset(range(1970, 2100))
    if chance.random() < 0.2:
        year = datetime.fromtimestamp(after // 1000, UTC).year
        first, last = year - chance.randint(0, 2), year + chance.randint(0, 3)
        year_text, years = f" {first}-{last}", frozenset(range(first, last + 1))
    return (
        f"{day} {month[0]} {week}{year_text}",
        lambda when: when.year in years and when.month in month[1] and names_day(when),
    )


def _quartz_of_month(chance: Random) -> tuple[str, str, Days]:
    number = chance.randint(1, 28)
    before = chance.randint(1, 20)
    match chance.choice(("star", "plain", "plain", "L", "L-n", "LW", "nW")):
        case "L":
            return "L", "?", lambda when: _after(when, 1).month != when.month
        case "L-n":
            return (
                f"L-{before}",
                "?",
                lambda when: _after(when, before).month == when.month and _after(when, before + 1).month != when.month,
            )
        case "LW":
            return "LW", "?", lambda when: when.day == max(_workdays(when))
        case "nW":
            return (
                f"{number}W",
                "?",
                lambda when: when.day == min(_workdays(when), key=lambda day: (abs(day - number), day)),
            )
        case "plain":
            values = frozenset({number, min(28, number + before)})
            return ",".join(str(day) for day in values), "?", lambda when: when.day in values
        case "star":
            return "*", "?", lambda when: True


def _quartz_of_week(chance: Random) -> tuple[str, str, Days]:
    weekday, nth = chance.randint(0, 6), chance.randint(1, 5)
    name = chance.choice((str(weekday + 1), _WEEKDAYS[weekday]))

    def is_it(when: date) -> bool:
        return when.isoweekday() % 7 == weekday

    match chance.choice(("plain", "plain", "nL", "n#k", "wrapped")):
        case "nL":
            return "?", f"{name}L", lambda when: is_it(when) and _after(when, 7).month != when.month
        case "n#k":
            return "?", f"{name}#{nth}", lambda when: is_it(when) and (when.day - 1) // 7 + 1 == nth
        case "wrapped":
            end = (weekday + nth) % 7
            return "?", f"{name}-{end + 1}", lambda when: (when.isoweekday() % 7 - weekday) % 7 <= nth
        case "plain":
            return "?", name, is_it


def _after(when: date, days: int) -> date:
    return when + timedelta(days=days)


@lru_cache(maxsize=4096)
def _workdays_of(year: int, month: int) -> tuple[int, ...]:
    length = calendar.monthrange(year, month)[1]
    return tuple(day for day in range(1, length + 1) if date(year, month, day).isoweekday() < 6)


def _workdays(when: date) -> tuple[int, ...]:
    return _workdays_of(when.year, when.month)
