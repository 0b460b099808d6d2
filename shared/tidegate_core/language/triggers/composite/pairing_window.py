"""Pairing by the day: evidence of one local day never meets another's (SEMANTICS 6.4)."""

from __future__ import annotations

from datetime import date
from typing import ClassVar, Literal

from tidegate_core.language.time.zones import ZoneName, zone_named
from tidegate_core.language.values.document import Document
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.planned_features import PLATFORM, planned

_DAY_SECONDS = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class PairingWindow(Document):
    """Tumbling windows by append time.

    Attributes:
        every: `day`: from midnight to midnight, so of 23, 24 or 25 hours.
        zone: Whose midnight.
    """

    EXAMPLE: ClassVar = {"every": "day", "zone": "Europe/Rome"}
    PLANNED_VALUES: ClassVar = {"every": planned(PLATFORM, "hour", "week", "month")}
    FIELD_HINTS: ClassVar = {"tz": "the field is called zone", "timezone": "the field is called zone"}

    every: Literal["day"]
    zone: ZoneName = "UTC"

    def name_of(self, at: Instant) -> str:
        """Returns the local date of an instant, as text."""
        return date.fromordinal(_EPOCH_ORDINAL + self._day_of(at)).isoformat()

    def end_of(self, at: Instant) -> Instant:
        """Returns the first instant after `at` whose local date is a later one, wherever a clock change puts midnight."""
        zone = zone_named(self.zone)
        next_day = (self._day_of(at) + 1) * _DAY_SECONDS
        segment = zone.segment_at(at // 1000)
        while True:
            begins = max(segment.start, next_day - segment.offset)
            if begins < segment.end:
                return begins * 1000
            segment = zone.segment_at(segment.end)

    def _day_of(self, at: Instant) -> int:
        second = at // 1000
        return (second + zone_named(self.zone).segment_at(second).offset) // _DAY_SECONDS
