"""The trigger `times`: fires at each instant that any of its specs names, and once if several specs name the same instant.

The trigger `any_of` combines triggers that are satisfied separately, each with its evidence. `times` is one sequence of
instants, with one cursor, one data interval between two instants, and one count of fires.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from heapq import heapify, heappop, heapreplace
from operator import or_
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from tidegate_core.language.time.wall_clock import Skip, SkipReason
from tidegate_core.language.triggers.exclusions import ALL_MINUTES, Exclusion, Span
from tidegate_core.language.triggers.on_time.at import AtTrigger
from tidegate_core.language.triggers.on_time.cron import CronTrigger
from tidegate_core.language.triggers.on_time.every import EveryTrigger, every_macro_as_every
from tidegate_core.language.triggers.search import ONE_DAY, Search, ahead, back
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.document import AtMost
from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import refused

MAX_SPECS = 50

TimeSpec: TypeAlias = Annotated[
    CronTrigger | EveryTrigger | AtTrigger, Field(discriminator="type"), AfterValidator(every_macro_as_every)
]


class TimesTrigger(TimeTrigger):
    """Fires at each instant of its specs.

    Attributes:
        specs: List of 1 to 50 triggers `cron`, `every` or `at`, each with its own zone, bounds and exclusions. An `at` that
            has passed when the schedule is applied does not fire.
    """

    EXAMPLE: ClassVar = {
        "type": "times",
        "specs": [
            {"type": "cron", "expression": "0 6 * * mon-fri", "zone": "Europe/Rome"},
            {"type": "cron", "expression": "0 9 * * sat,sun", "zone": "Europe/Rome"},
        ],
        "exclude": [{"type": "dates", "first": "2026-12-24", "last": "2027-01-06", "zone": "Europe/Rome"}],
    }
    FIELD_HINTS: ClassVar = {
        **TimeTrigger.FIELD_HINTS,
        "zone": "each of the specs has its own",
        "triggers": "the field is called specs",
        "expressions": "the field is called specs, of type cron",
    }

    type: Literal["times"] = "times"
    specs: Annotated[tuple[TimeSpec, ...], Field(min_length=1), AtMost(MAX_SPECS)]

    @model_validator(mode="after")
    def _one_sequence(self) -> Self:
        for place, spec in enumerate(self.specs):
            for field in ("max_fires", "flexible"):
                if getattr(spec, field) is not None:
                    raise refused(
                        "belongs to all times together",
                        field=f"specs[{place}].{field}",
                        hint=f"write {field} next to specs",
                    )
        for place, exclusion in enumerate(self.exclude or ()):
            if exclusion.zone is None:
                hint = "write the zone whose days are meant, or exclude within one of the specs"
                raise refused(
                    "is missing: each of the specs has its own zone", field=f"exclude[{place}].zone", hint=hint
                )
        return self

    def smallest_gap_ms(self, identity: str = "") -> Duration | None:
        """Returns the shortest time between two occurrences of one spec. Occurrences of two specs may be closer."""
        gaps = [spec.smallest_gap_ms(identity) for spec in self.specs]
        return min((gap for gap in gaps if gap is not None), default=None)

    def excluded_at(self, instant: Instant, identity: str = "", inherited: tuple[Exclusion, ...] = ()) -> Span | None:
        span = super().excluded_at(instant, identity, inherited)
        exclusions = (*(self.exclude or ()), *inherited)
        if not exclusions or not self.is_behind_gap(instant):
            return span
        naming = list(self._naming(instant, identity))
        if any(spec.excluded_at(instant, identity, exclusions) is None for spec in naming):
            return None
        return span or (Span(instant, instant + 1) if naming else None)

    def is_behind_gap(self, instant: Instant) -> bool:
        return any(spec.is_behind_gap(instant) for spec in self.specs)

    def gap_ends_on(self, day: int) -> int:
        return reduce(or_, (spec.gap_ends_on(day) for spec in self.specs))

    def skips(
        self, after: Instant, until: Instant, identity: str, inherited: tuple[Exclusion, ...] = ()
    ) -> tuple[Skip, ...]:
        exclusions = (*(self.exclude or ()), *inherited)
        by_gap: dict[tuple[Instant, SkipReason], list[Skip]] = {}
        for spec in self.specs:
            for skip in spec.skips(after, until, identity, exclusions):
                by_gap.setdefault((skip.instant, skip.reason), []).append(skip)
        return tuple(
            Skip(instant, reason, min(skip.first for skip in found), max(skip.last for skip in found))
            for (instant, reason), found in sorted(by_gap.items())
            if self.is_within(instant)
        )

    def minutes_of(self, day: int, identity: str) -> int:
        minutes = 0
        for spec in self.specs:
            minutes |= spec.kept(identity)(day)
            if minutes == ALL_MINUTES:
                break
        return minutes

    def reading(self) -> str:
        return " | ".join(text for text in (spec.reading() for spec in self.specs) if text)

    def zone_at(self, instant: Instant, identity: str) -> str:
        return next((spec.own_zone for spec in self._naming(instant, identity)), self.own_zone)

    def note(self, instant: Instant, identity: str) -> str:
        notes = (spec.note(instant, identity) for spec in self._naming(instant, identity))
        return next((note for note in notes if note), "")

    def would_name(self, instant: Instant, identity: str) -> bool:
        return any(True for _ in self._naming(instant, identity))

    @property
    def comparisons(self) -> int:
        return super().comparisons + sum(1 + spec.comparisons for spec in self.specs)

    def _naming(self, instant: Instant, identity: str) -> Iterator[TimeTrigger]:
        return (spec for spec in self.specs if spec.names(instant, identity))

    def _cost_of(self, spec: TimeTrigger) -> int:
        """Returns the number of comparisons for a spec's instant: with other specs, or with its exclusions.

        It is the larger of both numbers: the other specs are in a heap, so that each costs far less than an exclusion.
        """
        return max(len(self.specs), spec.comparisons)

    def _following(self, after: Instant, identity: str, search: Search) -> Instant | None:
        # The earliest instant of all specs is checked first, so that no spec is searched beyond another spec's instant. A
        # spec that excludes years then costs nothing if another spec fires today.
        heads = [(spec.named_after(after, identity, search), place) for place, spec in enumerate(self.specs)]
        waiting = [(instant, place) for instant, place in heads if instant is not None]
        heapify(waiting)
        while waiting:
            instant, place = waiting[0]
            spec = self.specs[place]
            if not search.takes(self._cost_of(spec)) and instant > after + 1:
                search.cut_at = instant
                return None
            span = spec.excluded_at(instant, identity)
            if span is None:
                return instant
            if instant > after + search.ahead:
                search.left_out = True
                return None
            # One day at a time: the next instant may be another spec's.
            end = ahead(span, spec.kept(identity), search, 0, ONE_DAY).end
            following = spec.named_after(end - 1, identity, search)
            if following is None:
                heappop(waiting)
            else:
                heapreplace(waiting, (following, place))
        return None

    def _preceding(self, before: Instant, identity: str, search: Search) -> Instant | None:
        # An instant outside of a spec's own bounds was never an occurrence.
        heads = [(spec.named_before(before, identity, search), place) for place, spec in enumerate(self.specs)]
        waiting = [(-instant, place) for instant, place in heads if instant is not None]
        heapify(waiting)
        while waiting:
            negated, place = waiting[0]
            spec = self.specs[place]
            if -negated < search.floor or not search.takes(self._cost_of(spec)):
                return None
            span = spec.excluded_at(-negated, identity)
            if span is None:
                return -negated
            begin = back(span, spec.kept(identity), search, 0, ONE_DAY).begin
            preceding = spec.named_before(begin, identity, search)
            if preceding is None:
                heappop(waiting)
            else:
                heapreplace(waiting, (-preceding, place))
        return None
