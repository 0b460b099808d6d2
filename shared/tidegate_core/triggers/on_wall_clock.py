"""What triggers on a wall clock have in common: what becomes of local times that a clock change leaves out or repeats."""

from __future__ import annotations

from typing import ClassVar

from tidegate_core.model.instants import Instant
from tidegate_core.time.wall_clock import DstGap, DstOverlap, DstPolicy, next_fire, previous_fire
from tidegate_core.triggers.base import TimeTrigger
from tidegate_core.triggers.search import Search


class WallClockTrigger(TimeTrigger):
    """A time trigger on a zone's wall clock.

    Attributes:
        dst_gap: `shift` (the default): a local time that does not exist fires at the first instant after the gap; `skip`:
            it does not fire, and the ledger says so.
        dst_overlap: Of a local time that comes twice, the `first` fires (the default), the `last`, or `both`.
    """

    FIELD_HINTS: ClassVar = {
        **TimeTrigger.FIELD_HINTS,
        "gap": "the field is called dst_gap",
        "overlap": "the field is called dst_overlap",
        "dst": "the fields are called dst_gap and dst_overlap",
    }

    # No default is spelled out in the stored form: where the times keep a real cadence neither has a meaning.
    dst_gap: DstGap | None = None
    dst_overlap: DstOverlap | None = None

    @property
    def dst_policy(self) -> DstPolicy:
        return DstPolicy(self.dst_gap or "shift", self.dst_overlap or "first")

    def _following(self, after: Instant, identity: str, search: Search) -> Instant | None:
        clock = self.wall_clock(identity)
        return None if clock is None else next_fire(clock.times, clock.zone, after, clock.policy)

    def _preceding(self, before: Instant, identity: str, search: Search) -> Instant | None:
        clock = self.wall_clock(identity)
        return None if clock is None else previous_fire(clock.times, clock.zone, before, clock.policy)
