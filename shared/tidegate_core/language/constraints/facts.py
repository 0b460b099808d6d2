"""Samples of how busy something is, as constraints look at them. Nothing of it is stored: a successor asks anew.

The span of time in which a rate counts admissions: sliding, or an hour or day of a zone's wall clock.
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
"""How long a sample plays a part in hysteresis for who asks anew: what was busy so long ago says nothing of now. Who has waited ever since
knows that it was never less busy, however long that takes."""
SAMPLES_MAX: Final = 64
SPELL_MS: Final = 60_000
"""Who asks after a longer pause begins anew: nobody has waited for an answer meanwhile."""


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """What an owner has seen of one load.

    Attributes:
        samples: (instant, value), oldest first: of the last ten minutes, and older ones that decide; at most 64.
        asked_at: When it was asked for last.
        unknown_since: First asking since then that got no answer; None while there are answers.
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
            # One came, so one goes: the last but one where all decide, because those before it are further out.
            kept.remove(next((sample for sample in kept if sample not in deciding), kept[-2]))
        return replace(self, samples=tuple(kept), unknown_since=None)

    def is_fresh(self, now: Instant, max_age: int) -> bool:
        return bool(self.samples) and now <= self.samples[-1][0] + max_age


def _deciding(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yields what is above or below all that follows it: the last one beyond a bound is among them, whatever the bound."""
    least, most = inf, -inf
    for sample in reversed(samples):
        if not least <= sample[1] <= most:
            yield sample
        least, most = min(least, sample[1]), max(most, sample[1])


NOTHING_SEEN: Final = LoadSeen()


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
