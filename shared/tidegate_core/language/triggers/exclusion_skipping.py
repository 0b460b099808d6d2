"""How a search passes over what is left out: over all that the trigger does not name, too, and over days of that in one step.

Else a trigger that names every other minute, with exclusions that leave out just those, is walked minute by minute: a second
of the shard's lane for each such year.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import and_, or_
from typing import Final

from tidegate_core.language.time.zones import Zone, zone_named
from tidegate_core.language.triggers.exclusions import ALL_MINUTES, DAY_SECONDS, Exclusion, Span, by_zone, minutes_out
from tidegate_core.language.triggers.search import Search

ONE_DAY: Final = 1
DAYS_PASSED_OVER: Final = 366
"""In one step: a search compares what it finds with its own end after each."""

Minutes = Callable[[int], int]
"""From a day of UTC, counted from 1970-01-01, to some of its minutes: bit n is minute n."""


def minutes_named_on(zone: Zone, day: int, of_local_day: Minutes) -> int:
    """Returns the minutes of a day that local times may mean, from those of the two local days that it has a part in."""
    masks, changes = _by_offset(zone, day, of_local_day, ALL_MINUTES)
    return reduce(or_, masks, changes)  # What a change has shifted fires at its very instant.


def gap_ends_on(zone: Zone, day: int) -> int:
    """Returns the minutes of a day at which a gap of the zone ends."""
    begin = day * DAY_SECONDS
    segment = zone.segment_at(begin)
    found = 1 if segment.start == begin and segment.offset > segment.offset_before else 0
    while segment.end < begin + DAY_SECONDS:
        segment = zone.segment_at(segment.end)
        if segment.offset > segment.offset_before:
            found |= 1 << (segment.start - begin) // 60
    return found


def minutes_left_out(exclusions: tuple[Exclusion, ...], zone: str, day: int) -> int:
    """Returns the minutes of a day of UTC that are certainly left out, whichever zones' exclusions it takes."""
    out = 0
    for name, sharing in by_zone(exclusions, zone).items():
        masks, _ = _by_offset(zone_named(name), day, partial(minutes_out, sharing), 0)
        out |= reduce(and_, masks)
        if out == ALL_MINUTES:
            break
    return out


def _by_offset(zone: Zone, day: int, of_local_day: Minutes, odd: int) -> tuple[list[int], int]:
    """Returns a day's minutes as each offset of the zone on that day has them, and the minutes of its changes.

    Args:
        zone: Whose local days they are.
        day: Of UTC, counted from 1970-01-01.
        of_local_day: The minutes of its days.
        odd: What is returned for an offset with seconds, as some zones had until 1972.
    """
    begin = day * DAY_SECONDS
    segment = zone.segment_at(begin)
    offsets, changes = [segment.offset], 0
    if segment.start == begin and segment.offset != segment.offset_before:
        changes |= 1
    while segment.end < begin + DAY_SECONDS:
        segment = zone.segment_at(segment.end)
        if segment.offset != offsets[-1]:
            offsets.append(segment.offset)
            changes |= 1 << (segment.start - begin) // 60
    return [odd if offset % 60 else _moved(begin + offset, of_local_day) for offset in offsets], changes


def _moved(local: int, of_local_day: Minutes) -> int:
    """Returns the minutes of the 24 h from a local time on, from those of the two local days."""
    local_day, rest = divmod(local, DAY_SECONDS)
    if not rest:
        return of_local_day(local_day)
    shift = rest // 60
    later = of_local_day(local_day + 1) << (ALL_MINUTES.bit_length() - shift)
    return (of_local_day(local_day) >> shift | later) & ALL_MINUTES


def ahead(span: Span, kept: Minutes, search: Search, comparisons: int, days: int) -> Span:
    """Returns the span, and what follows it of which nothing is kept, for so many days at most."""
    day, rest = divmod(span.end // 1000, DAY_SECONDS)
    # The minute in which the span ends may be kept: its end is asked for again then.
    left = kept(day) >> rest // 60 << rest // 60
    while not left and days > 1 and search.takes(comparisons):
        day, days = day + 1, days - 1
        left = kept(day)
    end = day * DAY_SECONDS + (_lowest(left) * 60 if left else DAY_SECONDS)
    return Span(span.begin, max(span.end, end * 1000))


def back(span: Span, kept: Minutes, search: Search, comparisons: int, days: int) -> Span:
    """Returns the span, and what comes before it of which nothing is kept, for so many days at most."""
    day, rest = divmod(span.begin // 1000 - 1, DAY_SECONDS)
    left = kept(day) & ((2 << rest // 60) - 1)
    while not left and days > 1 and search.takes(comparisons):
        day, days = day - 1, days - 1
        left = kept(day)
    begin = day * DAY_SECONDS + left.bit_length() * 60
    return Span(min(span.begin, begin * 1000), span.end)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
