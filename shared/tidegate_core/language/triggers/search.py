"""Bounded searches for the next instant of a time trigger, and steps over days without any occurrence.

Exclusions can exclude all instants that a trigger names. An unlimited search would block the shard, so each search has a
number of steps. When they are used up, the search returns a bound: no instant precedes it. A later search continues there
and finds the same instant as one long search. So the limit affects cost only.

Without steps over whole days, a trigger on every other minute with all of these excluded would cost a second of the shard
writer per year. So `ahead` and `back` skip days without a named minute that is not excluded.
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
"""Comparisons of an instant with a spec or an exclusion, about 2 µs each. The limit holds for the check of a definition, for a
search for the previous instant, and for a query by a user."""
STEPS_PER_DECISION = 5_000
"""Comparisons of all forward searches of one decision: 10 to 20 ms, the cost of 500 instants of a cron expression. The next
decision continues the search."""


class Next(NamedTuple):
    """Result of a search.

    Attributes:
        at: Next instant or bound; None if there is no further instant.
        is_bound: Whether `at` is a bound: the search was cut there, no instant precedes it, and later instants are unknown.
        since: Instant after which no instant precedes `at`; None if unknown.
    """

    at: Instant | None
    is_bound: bool = False
    since: Instant | None = None

    @property
    def found(self) -> Instant | None:
        """The next instant; None if there is none or it is unknown."""
        return None if self.is_bound else self.at

    def is_due(self, now: Instant) -> bool:
        """Whether the instant is reached; for a bound, whether an instant may be reached."""
        return self.at is not None and self.at <= now


NEVER = Next(None)


@dataclass(slots=True)
class Search:
    """Steps and results of searches that share one limit, such as the searches of a trigger and its specs.

    Attributes:
        steps: Remaining comparisons; None for no limit, if nothing waits for the search.
        ahead: Time for which excluded instants are followed; by default up to the last instant.
        floor: Lowest instant of interest in a search for the previous instant.
        cut_at: Bound if the last search used up its steps: no instant precedes it. Otherwise None.
        left_out: Whether all named instants within `ahead` are excluded.
    """

    steps: int | None = None
    ahead: Duration = LATEST_INSTANT
    floor: Instant = 0
    cut_at: Instant | None = None
    left_out: bool = False

    @classmethod
    def of_a_decision(cls, parts: int = 1) -> Search:
        """Returns a search with the steps of a decision, or with an equal part if several searches must all get further."""
        return cls(max(1, STEPS_PER_DECISION // parts))

    @property
    def gave_up(self) -> bool:
        """Whether the search was cut, so that instants from `cut_at` on are unknown."""
        return self.cut_at is not None

    @property
    def is_used_up(self) -> bool:
        """Whether no steps remain, so that another search would be cut at once."""
        return self.steps is not None and self.steps <= 0

    def takes(self, comparisons: int) -> bool:
        """Takes the steps for one instant and its comparisons; returns whether enough steps remained."""
        if self.steps is None:
            return True
        self.steps -= 1 + comparisons
        return self.steps >= 0


ONE_DAY: Final = 1
DAYS_PASSED_OVER: Final = 366
"""Days that one step skips. After each step the search compares its result with its own end."""

Minutes = Callable[[int], int]
"""Function from a UTC day, counted from 1970-01-01, to some of its minutes: bit n is minute n."""


def minutes_named_on(zone: Zone, day: int, of_local_day: Minutes) -> int:
    """Returns the minutes of a UTC day at which the trigger's local times may occur. The UTC day overlaps two local days."""
    masks, changes = _by_offset(zone, day, of_local_day, ALL_MINUTES)
    return reduce(or_, masks, changes)  # Skipped local times fire at the instant of the clock change.


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
    """Returns the minutes of a UTC day that the exclusions of any zone certainly exclude."""
    out = 0
    for name, sharing in by_zone(exclusions, zone).items():
        masks, _ = _by_offset(zone_named(name), day, partial(minutes_out, sharing), 0)
        out |= reduce(and_, masks)
        if out == ALL_MINUTES:
            break
    return out


def _by_offset(zone: Zone, day: int, of_local_day: Minutes, odd: int) -> tuple[list[int], int]:
    """Returns the minutes of a UTC day under each offset of that day, and the minutes of the offset's changes.

    Args:
        zone: Zone of the local days.
        day: UTC day, counted from 1970-01-01.
        of_local_day: Function that returns the minutes of a local day.
        odd: Result for an offset with seconds, as some zones had until 1972.
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
    """Returns the minutes of the 24 h from a local time on, from the minutes of the two local days."""
    local_day, rest = divmod(local, DAY_SECONDS)
    if not rest:
        return of_local_day(local_day)
    shift = rest // 60
    later = of_local_day(local_day + 1) << (ALL_MINUTES.bit_length() - shift)
    return (of_local_day(local_day) >> shift | later) & ALL_MINUTES


def ahead(span: Span, kept: Minutes, search: Search, comparisons: int, days: int) -> Span:
    """Returns the span, extended over following minutes without an occurrence, by at most `days` days."""
    day, rest = divmod(span.end // 1000, DAY_SECONDS)
    # The minute in which the span ends may have an occurrence; then the span stays as it is.
    left = kept(day) >> rest // 60 << rest // 60
    while not left and days > 1 and search.takes(comparisons):
        day, days = day + 1, days - 1
        left = kept(day)
    end = day * DAY_SECONDS + (_lowest(left) * 60 if left else DAY_SECONDS)
    return Span(span.begin, max(span.end, end * 1000))


def back(span: Span, kept: Minutes, search: Search, comparisons: int, days: int) -> Span:
    """Returns the span, extended over preceding minutes without an occurrence, by at most `days` days."""
    day, rest = divmod(span.begin // 1000 - 1, DAY_SECONDS)
    left = kept(day) & ((2 << rest // 60) - 1)
    while not left and days > 1 and search.takes(comparisons):
        day, days = day - 1, days - 1
        left = kept(day)
    begin = day * DAY_SECONDS + left.bit_length() * 60
    return Span(min(span.begin, begin * 1000), span.end)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
