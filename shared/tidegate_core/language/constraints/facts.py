"""Facts by which constraints judge a job: earlier runs, samples of a load, and the span in which a rate counts admissions.

The owner of a shard collects the facts. Load samples are in memory only: a new owner samples again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Protocol, TypeAlias

from tidegate_core.language.time.calendar_periods import period_end
from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.values.durations import format_duration
from tidegate_core.language.values.instants import Instant


class RunHistory(Protocol):
    """Earlier runs of one schedule. The row `PastRuns` has these attributes; constraints know no rows."""

    @property
    def admitted(self) -> Sequence[Instant]:
        """Instants of the latest admissions, oldest first, as many as the schedule's constraints need."""
        ...

    @property
    def open(self) -> int:
        """Number of counted runs that have not ended."""
        ...

    @property
    def finished(self) -> Instant | None:
        """End of the last run that ended after its program started, with any outcome."""
        ...

    @property
    def succeeded(self) -> Instant | None:
        """End of the last run that succeeded."""
        ...


@dataclass(frozen=True, slots=True)
class _NoRuns:
    """History of a schedule that has not run, or whose constraints need none."""

    admitted: tuple[Instant, ...] = ()
    open: int = 0
    finished: Instant | None = None
    succeeded: Instant | None = None


Sample: TypeAlias = tuple[Instant, float]
LoadKey: TypeAlias = tuple[str, str]
"""Source and resource, such as `("local", "cpu")`."""

KEPT_MS: Final = 10 * 60_000
"""Age up to which a sample counts after a pause in the queries: older ones say nothing about the present load. Without a pause,
older samples that decide the hysteresis count for any time."""
SAMPLES_MAX: Final = 64
SPELL_MS: Final = 60_000
"""Pause after which a query starts again: no job has waited for the load in between."""


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """Samples of one load that an owner has taken.

    Attributes:
        samples: Pairs of instant and value, oldest first, at most 64: samples of the last ten minutes, and older ones that decide.
        asked_at: Instant of the last query.
        unknown_since: First query without an answer since the last answer; None while queries are answered.
    """

    samples: tuple[Sample, ...] = ()
    asked_at: Instant = 0
    unknown_since: Instant | None = None

    def asked(self, now: Instant) -> LoadSeen:
        if now <= self.asked_at + SPELL_MS:
            return replace(self, asked_at=now, unknown_since=now if self.unknown_since is None else self.unknown_since)
        kept = tuple(sample for sample in self.samples if sample[0] > now - KEPT_MS)
        return LoadSeen(samples=kept, asked_at=now, unknown_since=now)

    def answered(self, now: Instant, value: float) -> LoadSeen:
        samples = (*self.samples, (now, value))
        deciding = set(_deciding(samples))
        kept = [sample for sample in samples if sample[0] > now - KEPT_MS or sample in deciding]
        if len(kept) > SAMPLES_MAX:
            # One sample too many. If all of them decide, the last but one goes, because earlier ones are further out.
            kept.remove(next((sample for sample in kept if sample not in deciding), kept[-2]))
        return replace(self, samples=tuple(kept), unknown_since=None)

    def is_fresh(self, now: Instant, max_age: int) -> bool:
        return bool(self.samples) and now <= self.samples[-1][0] + max_age


def _deciding(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yields the samples that are above or below all later ones. For every bound, the last sample beyond it is among them."""
    least, most = inf, -inf
    for sample in reversed(samples):
        if not least <= sample[1] <= most:
            yield sample
        least, most = min(least, sample[1]), max(most, sample[1])


NOTHING_SEEN: Final = LoadSeen()


EXACT_MAX: Final = 50
"""Admissions of a sliding span that are counted by their exact instant. Further ones are counted by slices of the span. So the
item of a rate has at most about 100 numbers (3 KB) for every `max`."""
SLICES: Final = 50
"""Slices of a span. Above `EXACT_MAX` an admission counts up to a fiftieth of the span too long, never too short."""


@dataclass(frozen=True, slots=True)
class Span:
    """Span of a rate. Schedules share a rate if scope, name and span are the same.

    Attributes:
        per: Length in milliseconds.
        zone: Zone of the hours or days for a calendar window; None for a sliding window.
    """

    per: int
    zone: str | None = None

    @property
    def window(self) -> str:
        return "sliding" if self.zone is None else "calendar"

    def counts_until(self, now: Instant, known: int) -> Instant:
        """Returns the instant from which an admission no longer counts.

        Args:
            now: Instant of the admission.
            known: Number of different such instants of earlier admissions.
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


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts by which constraints judge a job, all as of the same instant.

    Attributes:
        now: The instant of the check.
        satisfied_at: Instant at which the job's trigger was satisfied.
        past: Earlier runs of the schedule, as far as its constraints need them.
        loads: Load samples that the owner has taken. They are in memory only; the other facts are stored.
    """

    now: Instant
    satisfied_at: Instant
    past: RunHistory = _NoRuns()
    loads: Mapping[LoadKey, LoadSeen] = field(default_factory=dict)
