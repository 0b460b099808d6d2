"""Base class of triggers on a wall clock: rules for local times that a clock change skips or repeats."""

from __future__ import annotations

from typing import ClassVar

from tidegate_core.language.time.wall_clock import (
    DstGap,
    DstOverlap,
    DstPolicy,
    Skip,
    gap_before,
    is_named_itself,
    is_shifted_over,
    named_in_gap,
    next_fire,
    previous_fire,
    skips_between,
)
from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.triggers.exclusions import Exclusion, Span, kept_in_gap
from tidegate_core.language.triggers.search import Search, gap_ends_on
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant


class WallClockTrigger(TimeTrigger):
    """A time trigger on a zone's wall clock.

    Attributes:
        dst_gap: Rule for a local time that a clock change skips. `shift` (the default): it fires at the first instant after
            the gap. `skip`: it does not fire, and the ledger says so.
        dst_overlap: Pass of a repeated local time that fires: `first` (the default), `last` or `both`.
    """

    FIELD_HINTS: ClassVar = {
        **TimeTrigger.FIELD_HINTS,
        "gap": "the field is called dst_gap",
        "overlap": "the field is called dst_overlap",
        "dst": "the fields are called dst_gap and dst_overlap",
    }

    # The stored form has no defaults for these two: neither has a meaning for times that follow real time.
    dst_gap: DstGap | None = None
    dst_overlap: DstOverlap | None = None

    @property
    def dst_policy(self) -> DstPolicy:
        return DstPolicy(self.dst_gap or "shift", self.dst_overlap or "first")

    def is_behind_gap(self, instant: Instant) -> bool:
        return gap_before(zone_named(self.own_zone), instant) is not None

    def gap_ends_on(self, day: int) -> int:
        return gap_ends_on(zone_named(self.own_zone), day)

    def excluded_at(self, instant: Instant, identity: str = "", inherited: tuple[Exclusion, ...] = ()) -> Span | None:
        span = super().excluded_at(instant, identity, inherited)
        exclusions = (*(self.exclude or ()), *inherited)
        gap = gap_before(zone_named(self.own_zone), instant) if exclusions else None
        clock = None if gap is None else self.wall_clock(identity)
        if gap is None or clock is None or not is_shifted_over(clock, gap):
            return span
        walls = list(named_in_gap(clock.times, gap))
        if not walls or (span is None and is_named_itself(clock, gap)):
            return span
        if any(True for _ in kept_in_gap(exclusions, self.own_zone, gap, walls)):
            return None
        return span or Span(instant, instant + 1)

    def skips(
        self, after: Instant, until: Instant, identity: str, inherited: tuple[Exclusion, ...] = ()
    ) -> tuple[Skip, ...]:
        clock = self.wall_clock(identity)
        if clock is None:
            return ()
        exclusions = (*(self.exclude or ()), *inherited)
        found: list[Skip] = []
        for skip in skips_between(clock.times, clock.zone, after, until, clock.policy):
            gap = clock.zone.segment_at(skip.instant // 1000)
            kept = list(kept_in_gap(exclusions, self.own_zone, gap, named_in_gap(clock.times, gap)))
            if kept and self.is_within(skip.instant):
                last = clock.times.previous_wall(min(kept[-1] - kept[-1] % 60 + 60, skip.last + 1))
                found.append(skip._replace(first=kept[0], last=kept[-1] if last is None else last))
        return tuple(found)

    def _following(self, after: Instant, identity: str, search: Search) -> Instant | None:
        clock = self.wall_clock(identity)
        return None if clock is None else next_fire(clock.times, clock.zone, after, clock.policy)

    def _preceding(self, before: Instant, identity: str, search: Search) -> Instant | None:
        clock = self.wall_clock(identity)
        return None if clock is None else previous_fire(clock.times, clock.zone, before, clock.policy)
