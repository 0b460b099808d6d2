"""The span of time in which a rate counts admissions: sliding, or an hour or day of a zone's wall clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate_core.language.time.periods import period_end
from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.values.durations import format_duration
from tidegate_core.language.values.instants import Instant

EXACT_MAX: Final = 50
"""Admissions of a sliding span that are counted each by its own instant. What comes above is counted by slices of the span, so
that the item of a rate has at most about 100 numbers (3 KB), whatever its `max`."""
SLICES: Final = 50
"""Of a span: above `EXACT_MAX` an admission counts up to a fiftieth of the span longer than it has to, never shorter."""


@dataclass(frozen=True, slots=True)
class Span:
    """Rates that several schedules share are one where scope, name and span are the same.

    Attributes:
        per: Milliseconds.
        zone: Whose hours or days count; None: any span of that length does.
    """

    per: int
    zone: str | None = None

    @property
    def window(self) -> str:
        return "sliding" if self.zone is None else "calendar"

    def counts_until(self, now: Instant, known: int) -> Instant:
        """Returns from when an admission counts no more.

        Args:
            now: When it is admitted.
            known: Different such instants that are known of others.
        """
        if self.zone is not None:
            return period_end(zone_named(self.zone), now // 1000, self.per // 1000) * 1000
        if known < EXACT_MAX:
            return now + self.per
        slice_ms = -(-self.per // SLICES)
        return -(-now // slice_ms) * slice_ms + self.per

    def words(self) -> str:
        where = "" if self.zone is None else f" of the calendar of {self.zone}"
        return f"{format_duration(self.per)}{where}"
