"""How long a trigger is searched for an instant: exclusions can leave out all that it names, and specs have their own.

No search goes on for ever, because who searches stands still meanwhile, and all others with it. One that comes to the end of its
steps has proven something all the same: up to where nothing is named. Whoever goes on from there finds what a search without
an end would have found, so where it was cut is a matter of cost alone.


How a search passes over what is left out: over all that the trigger does not name, too, and over days of that in one step.

Else a trigger that names every other minute, with exclusions that leave out just those, is walked minute by minute: a second
of the shard's lane for each such year.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_, or_
from typing import Final, NamedTuple

from tidegate_core.language.time.zones import Zone, zone_named
from tidegate_core.language.triggers.exclusions import ALL_MINUTES, DAY_SECONDS, Exclusion, Span, by_zone, minutes_out
from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.instants import LATEST_INSTANT, Instant

STEPS_PER_SEARCH = 50_000
"""Comparisons of an instant with a spec or an exclusion, of some 2 µs each: what is looked at before a definition is taken, what a
search for the instant before takes, and what somebody who asks may have searched."""
STEPS_PER_DECISION = 5_000
"""Of all searches forward of one decision together: 10 to 20 ms, as much as 500 instants of a cron expression cost. The next one goes on."""


class Next(NamedTuple):
    """How far a search came.

    Attributes:
        at: The next instant; None: there is no further one.
        is_bound: It is none, but where the search was cut: no instant lies before it, and what follows is not known.
        since: Behind which nothing lies before `at`; None where that is not known any more.
    """

    at: Instant | None
    is_bound: bool = False
    since: Instant | None = None

    @property
    def found(self) -> Instant | None:
        """The instant, where it is known."""
        return None if self.is_bound else self.at

    def is_due(self, now: Instant) -> bool:
        """Whether an instant may have come: of a bound that is not known."""
        return self.at is not None and self.at <= now


NEVER = Next(None)


@dataclass(slots=True)
class Search:
    """A search for an instant, or several ones, shared by a trigger and its specs.

    Attributes:
        steps: Comparisons that are left; None is without a bound, for who has nobody to keep waiting.
        ahead: How far exclusions are followed; by default to the last instant that there is.
        floor: Of a search for the instant before: one below this is of no interest, and is not searched for.
        cut_at: The last search ended because they were used up: no instant lies before this one.
        left_out: All that the trigger names in ten years is left out.
    """

    steps: int | None = None
    ahead: Duration = LATEST_INSTANT
    floor: Instant = 0
    cut_at: Instant | None = None
    left_out: bool = False

    @classmethod
    def of_a_decision(cls, parts: int = 1) -> Search:
        """Returns a new one with the steps of a decision, or with its part of them where several have to come further."""
        return cls(max(1, STEPS_PER_DECISION // parts))

    @property
    def gave_up(self) -> bool:
        """Whether what the trigger names from `cut_at` on is not known."""
        return self.cut_at is not None

    @property
    def is_used_up(self) -> bool:
        """Whether another search would be cut at once: each takes one step at least."""
        return self.steps is not None and self.steps <= 0

    def takes(self, comparisons: int) -> bool:
        """Counts one instant and what it is compared with; returns whether there was room for it."""
        if self.steps is None:
            return True
        self.steps -= 1 + comparisons
        return self.steps >= 0


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
