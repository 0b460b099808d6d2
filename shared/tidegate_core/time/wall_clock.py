"""The walk over a wall clock: which instants cron fields name in a zone, through clock changes (SEMANTICS 2).

A schedule at fixed hours fires once per named local time: a time that a clock change skips is shifted to the first instant
after the gap, a repeated one fires in its first pass. A schedule whose hour field begins with `*` keeps its real cadence.
"""

from __future__ import annotations

from tidegate_core.model.instants import TEN_YEARS_MS, Instant
from tidegate_core.time.cron_fields import CronFields
from tidegate_core.time.zones import LARGEST_SHIFT_SECONDS, Segment, Zone

_TEN_YEARS_SECONDS = TEN_YEARS_MS // 1000


def next_fire(fields: CronFields, zone: Zone, after: Instant) -> Instant | None:
    """Returns the first instant strictly after `after` that the fields name on the zone's wall clock.

    Args:
        fields: Expanded cron fields.
        zone: The schedule's zone.
        after: The last scheduled instant, never the present: a late look must not lose an occurrence.

    Returns:
        An instant, or None when nothing follows within ten years.
    """
    second = after // 1000
    segment = zone.segment_at(second)
    wall = max(second + segment.offset, _lowest_wall(fields, segment) - 1)
    found = fields.next_wall(wall)
    while found is not None and segment.start <= second + _TEN_YEARS_SECONDS:
        if found < segment.end + segment.offset:
            return (found - segment.offset) * 1000
        shown_until = segment.end + segment.offset
        segment = zone.segment_at(segment.end)
        if not fields.real_cadence and _is_shifted(segment) and found < segment.start + segment.offset:
            return segment.start * 1000
        lowest = _lowest_wall(fields, segment)
        if lowest != shown_until:
            found = fields.next_wall(lowest - 1)
    return None


def previous_fire(fields: CronFields, zone: Zone, before: Instant) -> Instant | None:
    """Returns the last instant strictly before `before` that the fields name, or None within ten years before it."""
    end = -(-before // 1000)
    segment = zone.segment_at(end - 1)
    found = fields.previous_wall(end + segment.offset)
    while found is not None and segment.end > end - _TEN_YEARS_SECONDS:
        if found >= _lowest_wall(fields, segment):
            return (found - segment.offset) * 1000
        if not fields.real_cadence and _is_shifted(segment):
            skipped = fields.previous_wall(segment.start + segment.offset)
            if skipped is not None and skipped >= segment.start + segment.offset_before:
                return segment.start * 1000
        shown_from = segment.start + segment.offset
        segment = zone.segment_at(segment.start - 1)
        if segment.end + segment.offset != shown_from:
            found = fields.previous_wall(segment.end + segment.offset)
    return None


def _lowest_wall(fields: CronFields, segment: Segment) -> int:
    """Returns the first local time of the segment that counts: a repeated hour's second pass only for a real cadence."""
    first = segment.start + segment.offset
    return first if fields.real_cadence else max(first, segment.fresh_wall)


def _is_shifted(segment: Segment) -> bool:
    """Whether the segment begins after a gap whose times are shifted; a larger jump redefines the zone (SEMANTICS 2.3)."""
    return 0 < segment.offset - segment.offset_before <= LARGEST_SHIFT_SECONDS
