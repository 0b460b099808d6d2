"""Samples of how busy something is, as constraints look at them. Nothing of it is stored: a successor asks anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from tidegate_core.model.instants import Instant

LoadKey: TypeAlias = tuple[str, str]
"""Source and resource, such as `("local", "cpu")`."""

KEPT_MS: Final = 10 * 60_000
"""How long a sample plays a part in hysteresis: what was busy so long ago says nothing of now."""
SAMPLES_MAX: Final = 64
SPELL_MS: Final = 60_000
"""Who asks after a longer pause begins anew: nobody has waited for an answer meanwhile."""


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """What an owner has seen of one load.

    Attributes:
        samples: (instant, value), oldest first, of the last ten minutes; at most 64.
        asked_at: When it was asked for last.
        unknown_since: First asking since then that got no answer; None while there are answers.
    """

    samples: tuple[tuple[Instant, float], ...] = ()
    asked_at: Instant = 0
    unknown_since: Instant | None = None

    def asked(self, now: Instant) -> LoadSeen:
        continues = self.unknown_since is not None and now <= self.asked_at + SPELL_MS
        return replace(self, asked_at=now, unknown_since=self.unknown_since if continues else now)

    def answered(self, now: Instant, value: float) -> LoadSeen:
        kept = tuple(sample for sample in self.samples if sample[0] > now - KEPT_MS)[-SAMPLES_MAX + 1 :]
        return replace(self, samples=(*kept, (now, value)), unknown_since=None)

    def is_fresh(self, now: Instant, max_age: int) -> bool:
        return bool(self.samples) and now <= self.samples[-1][0] + max_age


NOTHING_SEEN: Final = LoadSeen()
