"""Maps local times to instants of a zone, through clock changes. Triggers on a wall clock call this.

A schedule at fixed hours fires once per named local time. By default a local time that a clock change skips fires at the
first instant after the gap, and a repeated local time fires in its first pass. A schedule whose hour field begins with `*`
follows real time, with every policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

from tidegate_core.language.time.zones import LARGEST_SHIFT_SECONDS, Segment, Zone
from tidegate_core.language.values.instants import LATEST_INSTANT, Instant

DstGap: TypeAlias = Literal["shift", "skip"]
"""Rule for a local time that a clock change skips."""
DstOverlap: TypeAlias = Literal["first", "last", "both"]
"""Pass in which a repeated local time fires."""
SkipReason: TypeAlias = Literal["dst_gap", "zone_jump"]

_LAST_SECOND = LATEST_INSTANT // 1000


class WallTimes(Protocol):
    """Local times of cron fields or of a calendar period, in seconds since 1970-01-01 on a wall clock."""

    @property
    def real_cadence(self) -> bool:
        """Whether the times follow real time through clock changes."""

    def next_wall(self, wall: int) -> int | None:
        """Returns the first local time strictly after `wall`, or None if there is none until 2286."""

    def previous_wall(self, wall: int) -> int | None:
        """Returns the last local time strictly before `wall`, or None if there is none since 1970."""


class DstPolicy(NamedTuple):
    """Rules for fixed local times that a clock change skips (`gap`) or repeats (`overlap`)."""

    gap: DstGap = "shift"
    overlap: DstOverlap = "first"


class Skip(NamedTuple):
    """Local times in a gap that do not fire at all.

    Attributes:
        instant: First instant after the gap.
        reason: Word `dst_gap` if the schedule's policy is the reason, `zone_jump` if the zone was redefined.
        first, last: First and last of these local times, in wall seconds.
    """

    instant: Instant
    reason: SkipReason
    first: int
    last: int


class WallClock(NamedTuple):
    """Local times on the clock of a zone."""

    times: WallTimes
    zone: Zone
    policy: DstPolicy


DEFAULT_POLICY = DstPolicy()


def next_fire(times: WallTimes, zone: Zone, after: Instant, policy: DstPolicy = DEFAULT_POLICY) -> Instant | None:
    """Returns the first instant strictly after `after` that the times name on the zone's wall clock.

    Args:
        times: Local times.
        zone: Zone of the schedule.
        after: Last scheduled instant. The present would be wrong: a late check would lose an occurrence.
        policy: Rules for fixed times.

    Returns:
        The instant, or None if there is none until 2286.
    """
    second = after // 1000
    segment = zone.segment_at(second)
    found = times.next_wall(max(second + segment.offset, _lowest_wall(times, segment, policy) - 1))
    while found is not None and segment.start <= _LAST_SECOND:
        if found < _highest_wall(times, segment, policy):
            return (found - segment.offset) * 1000
        shown_until = segment.end + segment.offset
        segment = zone.segment_at(segment.end)
        if _shifts(times, segment, policy) and _first_in_gap(times, segment) is not None:
            return segment.start * 1000
        lowest = _lowest_wall(times, segment, policy)
        if lowest != shown_until or found < lowest:
            found = times.next_wall(lowest - 1)
    return None


def previous_fire(times: WallTimes, zone: Zone, before: Instant, policy: DstPolicy = DEFAULT_POLICY) -> Instant | None:
    """Returns the last instant strictly before `before` that the times name, or None if there is none since 1970."""
    end = -(-before // 1000)
    segment = zone.segment_at(end - 1)
    found = times.previous_wall(min(end + segment.offset, _highest_wall(times, segment, policy)))
    while found is not None and segment.end > 0:
        if found >= _lowest_wall(times, segment, policy):
            return (found - segment.offset) * 1000
        if _shifts(times, segment, policy) and _first_in_gap(times, segment) is not None:
            return segment.start * 1000
        shown_from = segment.start + segment.offset
        segment = zone.segment_at(segment.start - 1)
        highest = _highest_wall(times, segment, policy)
        if highest != shown_from:
            found = times.previous_wall(highest)
    return None


def skips_between(
    times: WallTimes, zone: Zone, after: Instant, until: Instant, policy: DstPolicy = DEFAULT_POLICY
) -> Iterator[Skip]:
    """Yields, in order, the skipped local times that do not fire, for each gap that ends in `after < instant <= until`."""
    segment = zone.segment_at(after // 1000)
    while not times.real_cadence and segment.end * 1000 <= until:
        segment = zone.segment_at(segment.end)
        first = None if _shifts(times, segment, policy) else _first_in_gap(times, segment)
        if first is not None:
            last = times.previous_wall(segment.start + segment.offset)
            reason: SkipReason = "zone_jump" if _gap_seconds(segment) > LARGEST_SHIFT_SECONDS else "dst_gap"
            yield Skip(segment.start * 1000, reason, first, first if last is None else last)


def gap_before(zone: Zone, instant: Instant) -> Segment | None:
    """Returns the segment that begins at the instant, if a gap precedes it; otherwise None."""
    second, rest = divmod(instant, 1000)
    segment = zone.segment_at(second)
    return segment if not rest and segment.start == second and _gap_seconds(segment) > 0 else None


def named_in_gap(times: WallTimes, gap: Segment) -> Iterator[int]:
    """Yields, in order, the named local times in the gap before the segment: the first of each minute."""
    found = _first_in_gap(times, gap)
    while found is not None and found < gap.start + gap.offset:
        yield found
        found = times.next_wall(found - found % 60 + 59)


def is_shifted_over(clock: WallClock, gap: Segment) -> bool:
    """Whether the skipped local times fire at the first instant after the gap."""
    return _shifts(clock.times, gap, clock.policy)


def is_named_itself(clock: WallClock, gap: Segment) -> bool:
    """Whether the times also name the local time that the clock shows directly after the gap."""
    times, wall = clock.times, gap.start + gap.offset
    counts = _lowest_wall(times, gap, clock.policy) <= wall < _highest_wall(times, gap, clock.policy)
    return counts and times.next_wall(wall - 1) == wall


def note_on(times: WallTimes, zone: Zone, instant: Instant, policy: DstPolicy = DEFAULT_POLICY) -> str:
    """Returns how a clock change affects a fire, as a text for users; empty if none does."""
    second = instant // 1000
    segment = zone.segment_at(second)
    if second == segment.start and _shifts(times, segment, policy) and _first_in_gap(times, segment) is not None:
        return "a clock change skips the local time; this is the first instant after it"
    wall = second + segment.offset
    if wall < segment.fresh_wall:
        return "second pass of an hour that the clock repeats"
    return "first pass of an hour that the clock repeats" if wall >= segment.stale_wall else ""


def _lowest_wall(times: WallTimes, segment: Segment, policy: DstPolicy) -> int:
    """Returns the first local time of the segment that fires. Repeated times do not, if the first pass fires them."""
    first = segment.start + segment.offset
    return first if times.real_cadence or policy.overlap != "first" else max(first, segment.fresh_wall)


def _highest_wall(times: WallTimes, segment: Segment, policy: DstPolicy) -> int:
    """Returns the end of the local times of the segment that fire. Times that come again do not, if the last pass fires them."""
    end = segment.end + segment.offset
    return end if times.real_cadence or policy.overlap != "last" else min(end, segment.stale_wall)


def _gap_seconds(segment: Segment) -> int:
    return segment.offset - segment.offset_before


def _shifts(times: WallTimes, segment: Segment, policy: DstPolicy) -> bool:
    """Whether local times in the gap before the segment fire after it. A jump above three hours redefines the zone: they do not."""
    return not times.real_cadence and policy.gap == "shift" and 0 < _gap_seconds(segment) <= LARGEST_SHIFT_SECONDS


def _first_in_gap(times: WallTimes, segment: Segment) -> int | None:
    """Returns the first named local time in the gap before the segment, or None."""
    if _gap_seconds(segment) <= 0:
        return None
    found = times.next_wall(segment.start + segment.offset_before - 1)
    return found if found is not None and found < segment.start + segment.offset else None
