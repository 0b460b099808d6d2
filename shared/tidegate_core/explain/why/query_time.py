"""The instant that somebody asks about: with an offset, or as a local time on the trigger's own wall clock.

A local time may come twice, or not at all; `02:30 on 29 March` in Rome is the question that people have, and no instant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from tidegate_core.language.time.zones import LARGEST_SHIFT_SECONDS, Segment, Zone, zone_named
from tidegate_core.language.triggers.preview import local_text
from tidegate_core.language.values.instants import Instant, from_datetime, parse_instant

_LOCAL = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?", re.ASCII)
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class QueryTime:
    """What was asked about.

    Attributes:
        instants: One; two of a local time that the clock repeats, in their order; of one that it leaves out the first after
            the gap.
        wall: The local time, in wall seconds; None where an instant was asked about.
        gap: The stretch behind the gap in which the local time lies, or None.
        local: In words.
    """

    instants: tuple[Instant, ...]
    wall: int | None
    gap: Segment | None
    local: str


def asked(text: str, zone: str) -> QueryTime:
    """Returns what a text asks about.

    Args:
        text: RFC 3339 with an offset, or a local time such as `2026-03-29T02:30`.
        zone: Whose wall clock is meant by a local time.

    Raises:
        ValueError: It is neither. The text says which and what to write.
    """
    if _LOCAL.fullmatch(text) is None:
        try:
            instant = parse_instant(text)
        except ValueError as error:
            # An instant that cannot be is none of another form.
            other = "" if "lies outside" in str(error) else ", nor a local time such as 2026-03-29T02:30"
            raise ValueError(f"{error}{other}") from error
        return QueryTime((instant,), None, None, local_text(instant, zone))
    try:
        wall = from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC)) // 1000
    except ValueError as error:
        raise ValueError(f"names no date and time that exists ({error})") from error
    return of_wall(wall, zone)


def of_wall(wall: int, zone: str) -> QueryTime:
    """Returns when a zone's clock shows a local time, in wall seconds. Raises ValueError: before 1970 by UTC."""
    known = zone_named(zone)
    first = _segment_before(known, wall)
    found: list[Instant] = []
    gap: Segment | None = None
    segment = first
    while segment.start <= wall + _DAY_SECONDS:
        if segment.start + segment.offset <= wall < segment.end + segment.offset:
            found.append((wall - segment.offset) * 1000)
        elif segment.start + segment.offset_before <= wall < segment.start + segment.offset:
            gap = segment
        segment = known.segment_at(segment.end)
    if found:
        return QueryTime(tuple(found), wall, None, f"{_wall_text(wall)} {zone}")
    if gap is None:
        raise ValueError("lies before 1970-01-01T00:00:00Z: ask about a later time")
    return QueryTime((gap.start * 1000,), wall, gap, f"{_wall_text(wall)} {zone}, which does not exist")


def _segment_before(zone: Zone, wall: int) -> Segment:
    """No offset is further from UTC than a day."""
    return zone.segment_at(max(0, wall - _DAY_SECONDS))


def _wall_text(wall: int) -> str:
    return f"{datetime.fromtimestamp(wall, UTC):%a %Y-%m-%d %H:%M:%S}"


def is_jump(segment: Segment) -> bool:
    """Whether the change at the segment's start defined the zone anew (SEMANTICS 2.3)."""
    return segment.offset - segment.offset_before > LARGEST_SHIFT_SECONDS
