"""Samples of how busy something is, as constraints look at them. Nothing of it is stored: a successor asks anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, TypeAlias

from tidegate_core.language.values.instants import Instant

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
