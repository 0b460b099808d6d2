"""The brute-force walker: the first fire after an instant, by looking at each day and each named time of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

SEARCHED_DAYS = 3_655
LARGEST_SHIFT = 3 * 3600
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Meaning:
    """What an expression was made of.

    Attributes:
        clock: Seconds of the day that it names, ascending.
        names_day: Whether it names a local date.
        real_cadence: Its hour field begins with a star.
        gap: `shift` or `skip`.
        overlap: `first`, `last` or `both`.
    """

    clock: tuple[int, ...]
    names_day: Callable[[date], bool]
    real_cadence: bool
    gap: str = "shift"
    overlap: str = "first"


@lru_cache(maxsize=1024)
def rules_of(zone: str) -> ZoneInfo:
    """The pinned rules, as the code reads them: the host's may be of another year."""
    with resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as source:
        return ZoneInfo.from_file(source, key=zone)


def first_fire_after(meaning: Meaning, rules: tzinfo, after_ms: int) -> int | None:
    """Returns the first instant after `after_ms`, both in milliseconds; None when nothing follows within ten years."""
    today = datetime.fromtimestamp(after_ms // 1000, rules).date() - _DAY
    for _ in range(SEARCHED_DAYS):
        found = [second * 1000 for second in _instants_of(meaning, rules, today) if second * 1000 > after_ms]
        if found:
            # The next day's times may come before those of this one where the clock is set forward by hours.
            found += [
                second * 1000 for second in _instants_of(meaning, rules, today + _DAY) if second * 1000 > after_ms
            ]
            return min(found)
        today += _DAY
    return None


def _instants_of(meaning: Meaning, rules: tzinfo, day: date) -> Iterator[int]:
    if not meaning.names_day(day):
        return
    midnight_utc = datetime(day.year, day.month, day.day, tzinfo=UTC)
    midnight, as_utc = midnight_utc.replace(tzinfo=None), int(midnight_utc.timestamp())
    offsets = {_offset(rules, as_utc + hours * 3600) for hours in (-36, 0, 24, 60)}
    if len(offsets) == 1:
        offset = offsets.pop()
        yield from (as_utc + second - offset for second in meaning.clock)
        return
    for second in meaning.clock:
        yield from mapped(midnight + timedelta(seconds=second), meaning, rules)


def mapped(local: datetime, meaning: Meaning, rules: tzinfo) -> list[int]:
    """Returns the instants at which a local time fires."""
    earlier, later = (int(local.replace(tzinfo=rules, fold=fold).timestamp()) for fold in (0, 1))
    passes = [second for second in sorted({earlier, later}) if _shown(rules, second) == local]
    if passes and (meaning.real_cadence or meaning.overlap == "both"):
        return passes
    if passes:
        return [passes[0] if meaning.overlap == "first" else passes[-1]]
    # It does not exist: read with the offset before the gap it lies after the change, read with the one behind it before.
    is_clock_change = earlier - later <= LARGEST_SHIFT
    if meaning.real_cadence or meaning.gap == "skip" or not is_clock_change:
        return []
    return [_change_between(rules, later, earlier)]


def _change_between(rules: tzinfo, low: int, high: int) -> int:
    """Returns the first second of `low < second <= high` at which the offset is that of `high`."""
    offset = _offset(rules, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset(rules, middle) == offset else (middle, high)
    return high


def changes_of(zone: str, first_year: int, last_year: int) -> list[int]:
    """Returns the seconds at which a zone's offset changes, found by looking at every fourth day."""
    rules, step = rules_of(zone), 4 * 86_400
    begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (first_year, last_year + 1))
    offsets = [(second, _offset(rules, second)) for second in range(begin, end + step, step)]
    return [
        _change_between(rules, earlier, later)
        for (earlier, before), (later, after) in itertools.pairwise(offsets)
        if before != after
    ]


def _shown(rules: tzinfo, second: int) -> datetime:
    return datetime.fromtimestamp(second, rules).replace(tzinfo=None, fold=0)


def _offset(rules: tzinfo, second: int) -> int:
    offset = datetime.fromtimestamp(second, rules).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())
