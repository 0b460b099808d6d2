"""Hours and days of a zone's wall clock as spans of real time, through clock changes (SEMANTICS 2)."""

from __future__ import annotations

from typing import Final

from tidegate_core.language.time.zones import Segment, Zone

_DAY: Final = 86_400


def period_start(zone: Zone, second: int, length: int) -> int:
    """Returns the second at which the zone's hour or day around `second` began.

    Args:
        zone: Whose wall clock is read.
        second: Since the epoch.
        length: 3,600 or 86,400. Where clocks change, the span in real time is longer or shorter; an hour that is shown twice
            as a whole is two hours, and a day is one also if its first or its last hour is shown twice.
    """
    segment = zone.segment_at(second)
    edge = second + segment.offset - (second + segment.offset) % length
    # A day of which an hour comes twice goes on at the change itself, also where the second pass begins at its very edge.
    while edge - segment.offset < segment.start or (length == _DAY and edge - segment.offset == segment.start):
        before = zone.segment_at(segment.start - 1)
        if before.end + before.offset <= edge:
            return segment.start  # The clock change skipped its beginning.
        segment = before
    return edge - segment.offset


def period_end(zone: Zone, second: int, length: int) -> int:
    """Returns the first second after the zone's hour or day around `second`; of an hour that is shown twice, after its pass."""
    segment = zone.segment_at(second)
    edge = second + segment.offset - (second + segment.offset) % length + length
    while edge - segment.offset > segment.end or (
        edge - segment.offset == segment.end and _goes_on(zone.segment_at(segment.end), edge, length)
    ):
        segment = zone.segment_at(segment.end)
        if segment.start + segment.offset >= edge:
            return segment.start
    return edge - segment.offset


def _goes_on(following: Segment, edge: int, length: int) -> bool:
    """Whether a clock that is put back at the very edge shows more of the same day, or of an hour that does not come twice as a whole."""
    begins = following.start + following.offset
    return begins < edge and (length == _DAY or begins > edge - length)
