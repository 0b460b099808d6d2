"""Zones as segments of constant offset, in plain integers, for the arithmetic of `wall_clock`.

The rules come from the pinned package `tzdata` and never from the host, so that all nodes of a cluster agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import metadata, resources
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Strict, WithJsonSchema

from tidegate_core.language.values.problems import nearest, refused

TZDATA_VERSION = metadata.version("tzdata")

LARGEST_SHIFT_SECONDS = 3 * 3600
"""Largest clock change. A larger jump is a redefinition of the zone: local times in it are not shifted."""

_BLOCK_SECONDS = 1 << 25
"""Length of a block of cached segments, about 388 days."""
_PROBE_SECONDS = 86_400
"""Step of the search for a change: no zone changes its offset twice in a day. A test over all zones checks this against tzdata."""
_REPEAT_SECONDS = 2 * 86_400
"""Distance from a block within which a change can repeat hours of the block; the largest jump back is a day."""
_KEPT_BLOCKS = 8_192
"""Blocks in the cache, about 10 MB: ten years of every zone."""

_FIXED_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})", re.ASCII)
_NAMED_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-5][0-9]))?", re.ASCII | re.IGNORECASE)
"""Offsets as users write them, for hints; only `+05:30` without a prefix is a zone."""
_ABBREVIATION = re.compile(r"[A-Z]{2,5}(?:[+-]?\d{1,2}[A-Z]*)?", re.ASCII)
_COMMON_ABBREVIATIONS = {
    "CET": "Europe/Berlin",
    "CST": "America/Chicago",
    "EET": "Europe/Athens",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "GMT": "UTC or Europe/London",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MST": "America/Denver",
    "PST": "America/Los_Angeles",
    "WET": "Europe/Lisbon",
}


class Segment(NamedTuple):
    """A span of constant offset, in whole seconds since the epoch.

    Attributes:
        start: First second. At the edge of a block the offset need not change.
        end: First second after the span.
        offset: Local time minus UTC.
        offset_before: Offset before `start`.
        fresh_wall: Bound of local times. Lower ones were shown before, so they are the second pass of a repeated hour.
        stale_wall: Bound of local times. From it on they are shown again later, so they are the first pass of a repeated hour.
    """

    start: int
    end: int
    offset: int
    offset_before: int
    fresh_wall: int
    stale_wall: int


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone with an IANA name or a fixed offset, such as `Europe/Rome`, `UTC` or `+05:30`."""

    name: str

    def segment_at(self, second: int) -> Segment:
        for segment in _segments(self.name, second // _BLOCK_SECONDS):
            if second < segment.end:
                return segment
        raise AssertionError("the segments of a block cover it")


def zone_named(name: str) -> Zone:
    """Returns the zone with a name.

    Raises:
        ValueError: The name is neither an IANA name nor a fixed offset. The error's text is a clause about the name;
            `zone_hint` gives the correction.
    """
    _rules(name)
    return Zone(name)


def zone_hint(name: str) -> str:
    if name in _COMMON_ABBREVIATIONS:
        return f"use an IANA name such as {_COMMON_ABBREVIATIONS[name]}"
    offset = _offset_meant(name)
    if offset is not None:
        # The most similar name would mislead: Etc/GMT+2 follows POSIX and is two hours behind UTC.
        return f"write the offset alone: {offset}"
    guess = nearest(name, iana_names())
    return f"did you mean {guess}?" if guess else "use an IANA name such as Europe/Berlin, or an offset such as +05:30"


def _offset_meant(name: str) -> str | None:
    """Returns the offset of a text such as `UTC+2` in the accepted form, or None if the text is no offset."""
    meant = _NAMED_OFFSET.fullmatch(name)
    if meant is None or int(meant[2]) > 14:
        return None
    return f"{meant[1]}{int(meant[2]):02}:{meant[3] or '00'}"


@lru_cache(maxsize=1)
def iana_names() -> frozenset[str]:
    """Returns the accepted names: all names in tzdata except abbreviations, which have several meanings."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(name for name in listed if name == "UTC" or not _ABBREVIATION.fullmatch(name)) - {"Factory"}


@lru_cache(maxsize=1024)
def _rules(name: str) -> tzinfo:
    fixed = _FIXED_OFFSET.fullmatch(name)
    if fixed is not None:
        hours, minutes = int(fixed[2]), int(fixed[3])
        if hours > 14 or minutes > 59:
            raise ValueError("is not an offset between -14:59 and +14:59")
        return timezone((1 if fixed[1] == "+" else -1) * timedelta(hours=hours, minutes=minutes))
    if name not in iana_names():
        if _offset_meant(name) is not None:
            raise ValueError("is unknown")
        if _ABBREVIATION.fullmatch(name):
            raise ValueError("is an abbreviation, which means different zones to different readers")
        raise ValueError("is unknown")
    *folders, leaf = name.split("/")
    with resources.files("tzdata").joinpath("zoneinfo", *folders, leaf).open("rb") as source:
        return ZoneInfo.from_file(source, key=name)


@lru_cache(maxsize=_KEPT_BLOCKS)
def _segments(name: str, block: int) -> tuple[Segment, ...]:
    rules = _rules(name)
    first, last = block * _BLOCK_SECONDS, (block + 1) * _BLOCK_SECONDS
    stretches: list[Segment] = []
    start = first - _REPEAT_SECONDS
    offset_before = offset = _offset_at(rules, start)
    fresh_wall = start + offset
    while start < last + _REPEAT_SECONDS:
        end = _end_of_offset(rules, start, last + _REPEAT_SECONDS)
        stretches.append(Segment(start, end, offset, offset_before, fresh_wall, end + offset))
        # Highest local time shown so far. After a change back the clock shows local times below it again.
        fresh_wall = max(fresh_wall, end + offset)
        start, offset_before, offset = end, offset, _offset_at(rules, end)
    segments = [each for each in _with_stale_walls(stretches) if each.end > first and each.start < last]
    # A change outside the block must not appear as a change at its edge.
    segments[0] = segments[0]._replace(start=first, offset_before=_offset_at(rules, first - 1))
    segments[-1] = segments[-1]._replace(end=last)
    return tuple(segments)


def _with_stale_walls(stretches: Sequence[Segment]) -> list[Segment]:
    """Sets `stale_wall` from the later segments: they determine which local times are shown again."""
    found: list[Segment] = []
    shown_again = stretches[-1].stale_wall
    for stretch in reversed(stretches):
        found.append(stretch._replace(stale_wall=min(stretch.stale_wall, shown_again)))
        shown_again = min(shown_again, stretch.start + stretch.offset)
    return found[::-1]


def _end_of_offset(rules: tzinfo, start: int, last: int) -> int:
    offset = _offset_at(rules, start)
    low = start
    while low < last:
        high = min(low + _PROBE_SECONDS, last)
        if _offset_at(rules, high) != offset:
            return _first_change(rules, low, high, offset)
        low = high
    return last


def _first_change(rules: tzinfo, low: int, high: int, offset: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if _offset_at(rules, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset_at(rules: tzinfo, second: int) -> int:
    shift = (datetime.fromtimestamp(second, UTC).astimezone(rules)).utcoffset()
    assert shift is not None, "the rules of an IANA zone always know the offset"
    return shift.days * 86_400 + shift.seconds


def _checked(name: str) -> str:
    try:
        zone_named(name)
    except ValueError as error:
        raise refused(f'"{name[:64]}" {error}', hint=zone_hint(name[:64])) from error
    return name


ZoneName = Annotated[
    str,
    Strict(),
    AfterValidator(_checked),
    WithJsonSchema({"type": "string", "examples": ["UTC", "Europe/Rome", "+05:30"]}),
]
"""A zone as a field."""
