"""The walk over wall clocks against a walker that looks at every minute, around the clock changes of many zones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim

from tests.support.tier import at_night
from tidegate_core.language.time.cron_fields import parse_cron
from tidegate_core.language.time.wall_clock import next_fire, previous_fire
from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.values.instants import as_datetime, format_instant, from_datetime, parse_instant

ZONES = (
    "Europe/Rome",
    "Europe/London",
    "Europe/Istanbul",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Caracas",
    "America/Havana",  # changes at midnight
    "America/Scoresbysund",
    "Asia/Tehran",
    "Asia/Gaza",
    "Asia/Pyongyang",  # half an hour
    "Asia/Amman",
    "Africa/Casablanca",
    "Africa/Khartoum",
    "Australia/Lord_Howe",  # half an hour each year
    "Antarctica/Troll",  # two hours
    "Antarctica/Casey",
    "Pacific/Norfolk",
    "Pacific/Apia",
    "Asia/Kolkata",
)
EXPRESSIONS = (
    "30 2 * * *",
    "0 0 * * *",
    "*/15 1-3 * * *",
    "59 23 * * *",
    "0 3 * * sun",
    "*/20 * * * *",
    "0 * * * *",
    "15 */2 * * *",
    "30 1,2 * * mon-fri",
    "5 0 1,15 * fri",
    "30 2-2 * * *",
    "15 1 * * sun-sun",
)
SPAN = timedelta(days=3)
"""Before and after a change: wide enough for a previous occurrence, narrow enough to look at every minute."""


@lru_cache
def rules_of(zone: str) -> ZoneInfo:
    """The pinned rules, as the code reads them: the host's may be of another year."""
    with resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as source:
        return ZoneInfo.from_file(source, key=zone)


@lru_cache
def changes(zone: str) -> tuple[datetime, ...]:
    """Hours from 2015 to 2037 in which the zone's offset changes, found by looking at every day, then at its hours."""
    rules, found = rules_of(zone), []
    days = [datetime(2015, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(23 * 365)]
    for day in days:
        hours = [day, day + timedelta(days=1)]
        if len({hour.astimezone(rules).utcoffset() for hour in hours}) > 1:
            hours = [day + timedelta(hours=hour) for hour in range(25)]
        for earlier, later in itertools.pairwise(hours):
            if earlier.astimezone(rules).utcoffset() != later.astimezone(rules).utcoffset():
                found.append(later)
    return tuple(found)


class Reading(NamedTuple):
    """An expression as this file reads it, so that a fault of the production parser shows, too."""

    minutes: set[int]
    hours: set[int]
    days: set[int]
    months: set[int]
    weekdays: set[int]
    either_day: bool
    real_cadence: bool

    def names(self, local: datetime) -> bool:
        if not (local.minute in self.minutes and local.hour in self.hours and local.month in self.months):
            return False
        of_month, of_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (of_month or of_week) if self.either_day else (of_month and of_week)


def reading(expression: str) -> Reading:
    minute, hour, day, month, weekday = expression.split()
    return Reading(
        plainly(minute, 0, 59),
        plainly(hour, 0, 23),
        plainly(day, 1, 31),
        plainly(month, 1, 12),
        plainly(weekday, 0, 6),
        either_day=day[0] != "*" and weekday[0] != "*",
        real_cadence=hour[0] == "*",
    )


def plainly(field: str, low: int, high: int) -> set[int]:
    """Expands what `EXPRESSIONS` are written with: numbers, names of weekdays, ranges, steps, lists."""
    for number, name in enumerate("sun mon tue wed thu fri sat".split()):
        field = field.replace(name, str(number))
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def looked_up(meant: Reading, rules: ZoneInfo, around: datetime) -> list[int]:
    """Every instant around a change that the rules of SEMANTICS 2 name, by looking at each minute."""
    if meant.real_cadence:
        minutes = minutes_from(around - SPAN, around + SPAN)
        return [from_datetime(moment) for moment in minutes if meant.names(moment.astimezone(rules))]
    found: set[int] = set()
    begin = (around - SPAN).astimezone(rules).replace(tzinfo=None)
    for local in minutes_from(begin, begin + 2 * SPAN):
        if meant.names(local):
            found.update(mapped(local, rules))
    return sorted(found)


def minutes_from(begin: datetime, end: datetime) -> Iterator[datetime]:
    moment = begin.replace(second=0, microsecond=0)
    while moment < end:
        yield moment
        moment += timedelta(minutes=1)


def mapped(local: datetime, rules: ZoneInfo) -> list[int]:
    """The instant of a local time at fixed hours: its first pass, or the first instant after the gap that skips it."""
    first = local.replace(tzinfo=rules, fold=0).astimezone(UTC)
    if first.astimezone(rules).replace(tzinfo=None) == local:
        return [from_datetime(first)]
    after_gap = local.replace(tzinfo=rules, fold=1).astimezone(UTC)
    for moment in minutes_from(after_gap, first + timedelta(minutes=1)):
        if moment.astimezone(rules).replace(tzinfo=None) > local:
            gap = moment.astimezone(rules).utcoffset()
            before = (moment - timedelta(minutes=1)).astimezone(rules).utcoffset()
            assert gap is not None
            assert before is not None
            return [from_datetime(moment)] if gap - before <= timedelta(hours=3) else []
    raise AssertionError("a gap ends")


SAMPLES = at_night(250, else_=25)


def sampled() -> list[tuple[str, datetime, str]]:
    triples = [(zone, change, text) for zone in ZONES for change in changes(zone) for text in EXPRESSIONS]
    return random.Random(20150101).sample(triples, SAMPLES)


def test_given_clock_changes_of_many_zones_then_walk_equals_looking_at_every_minute() -> None:
    compared = 0
    for zone, change, expression in sampled():
        fields, rules = parse_cron(expression), rules_of(zone)
        expected = looked_up(reading(expression), rules, change)
        inner = [instant for instant in expected if abs(as_datetime(instant) - change) < SPAN - timedelta(days=1)]
        for before, after in itertools.pairwise(expected):
            if before not in inner and after not in inner:
                continue
            story = f"{zone} {expression} after {format_instant(before)}"
            assert next_fire(fields, zone_named(zone), before) == after, story
            assert next_fire(fields, zone_named(zone), after - 1) == after, story
            assert previous_fire(fields, zone_named(zone), after) == before, story
            compared += 1
    assert compared > 12 * SAMPLES


@pytest.mark.parametrize("zone", ["Europe/Rome", "America/New_York", "UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("expression", ["0 6 * * *", "*/7 9-17 * * 1-5", "0 0 1 */3 *", "30 12 13 * 5", "0 12 29 2 *"])
def test_given_no_clock_change_at_the_hour_then_croniter_and_cronsim_agree(zone: str, expression: str) -> None:
    start = datetime(2024, 1, 1, tzinfo=rules_of(zone))
    ours, instant = [], from_datetime(start)
    for _ in range(60):
        following = next_fire(parse_cron(expression), zone_named(zone), instant)
        assert following is not None
        instant = following
        ours.append(instant)
        if instant > from_datetime(start + timedelta(days=3000)):
            break
    by_cronsim = CronSim(expression, start)
    by_croniter = croniter(expression, start)
    for instant in ours:
        assert from_datetime(next(by_cronsim)) == instant
        assert from_datetime(by_croniter.get_next(datetime)) == instant


def times(expression: str, zone: str, after: str, count: int) -> list[str]:
    instant, found = parse_instant(after), []
    for _ in range(count):
        following = next_fire(parse_cron(expression), zone_named(zone), instant)
        assert following is not None
        found.append(format_instant(following))
        instant = following
    return found


def test_given_fixed_time_in_a_gap_then_it_fires_at_the_first_instant_after_it() -> None:
    assert times("30 2 * * *", "Europe/Rome", "2026-03-28T12:00:00Z", 2) == [
        "2026-03-29T01:00:00Z",
        "2026-03-30T00:30:00Z",
    ]


def test_given_several_fixed_times_in_a_gap_then_they_collapse_into_one() -> None:
    assert times("*/15 2 * * *", "Europe/Rome", "2026-03-28T12:00:00Z", 3) == [
        "2026-03-29T01:00:00Z",
        "2026-03-30T00:00:00Z",
        "2026-03-30T00:15:00Z",
    ]


def test_given_fixed_time_that_comes_twice_then_its_first_pass_fires() -> None:
    assert times("30 2 * * *", "Europe/Rome", "2026-10-24T12:00:00Z", 2) == [
        "2026-10-25T00:30:00Z",
        "2026-10-26T01:30:00Z",
    ]


def test_given_start_inside_the_second_pass_then_nothing_of_that_hour_fires_again() -> None:
    assert times("45 2 * * *", "Europe/Rome", "2026-10-25T01:10:00Z", 1) == ["2026-10-26T01:45:00Z"]


def test_given_wildcard_hour_then_real_cadence_goes_on_through_both_changes() -> None:
    assert times("0 * * * *", "Europe/Rome", "2026-03-29T00:00:00Z", 2) == [
        "2026-03-29T01:00:00Z",
        "2026-03-29T02:00:00Z",
    ]
    assert times("30 * * * *", "Europe/Rome", "2026-10-24T23:30:00Z", 3) == [
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:30:00Z",
        "2026-10-25T02:30:00Z",
    ]


def test_given_a_day_that_a_zone_left_out_then_it_is_not_shifted() -> None:
    """Samoa had no 30 December 2011: a jump of 24 hours is a new definition of the zone, no clock change."""
    assert times("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 2) == [
        "2011-12-29T22:00:00Z",
        "2011-12-30T22:00:00Z",
    ]


def test_given_fixed_offset_then_nothing_ever_shifts() -> None:
    assert times("0 6 * * *", "+05:30", "2026-03-29T00:00:00Z", 2) == ["2026-03-29T00:30:00Z", "2026-03-30T00:30:00Z"]


def test_given_seconds_then_they_are_walked() -> None:
    fields, zone = parse_cron("*/8 * * * * *", "unix6"), zone_named("UTC")
    base = parse_instant("2026-01-01T00:00:50Z")

    assert next_fire(fields, zone, base) == base + 6_000
    assert next_fire(fields, zone, base + 6_000) == base + 10_000
    assert previous_fire(fields, zone, base + 10_000) == base + 6_000


def test_given_milliseconds_then_after_is_strict_and_before_too() -> None:
    fields, zone = parse_cron("0 6 * * *"), zone_named("UTC")
    six = parse_instant("2026-01-01T06:00:00Z")

    assert next_fire(fields, zone, six - 1) == six
    assert next_fire(fields, zone, six) == six + 86_400_000
    assert previous_fire(fields, zone, six + 1) == six
    assert previous_fire(fields, zone, six) == six - 86_400_000


def test_given_leap_day_then_it_is_found_over_years_also_over_more_than_ten() -> None:
    """That a schedule's first time lies within ten years is the apply's to check; a later one must not get lost."""
    after = parse_instant("2026-01-01T00:00:00Z")

    assert times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 1) == ["2028-02-29T00:00:00Z"]
    mondays, utc = parse_cron("0 0 29 2 1", day_rule="and"), zone_named("UTC")
    assert next_fire(mondays, utc, after) == parse_instant("2044-02-29T00:00:00Z")
    assert previous_fire(mondays, utc, after) == parse_instant("2016-02-29T00:00:00Z")
    never = parse_cron("0 0 0 29 2 ? 2021", "quartz")
    assert next_fire(never, utc, after) is None
    assert previous_fire(never, utc, after) is None
