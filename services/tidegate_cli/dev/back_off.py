"""How long a crashed component waits before it is started again. Pure: the supervisor brings the clock."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_WAIT_S = 1.0
WAIT_S_MAX = 30.0
"""Still short enough that a mended cause shows while one is looking."""

HEALTHY_AFTER_S = 60.0
"""Who lived so long had no trouble with starting: its next crash counts as the first."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """Waits of 1, 2, 4 … 30 s, and 1 s again after a healthy life.

    Attributes:
        crashes: In a row.
    """

    crashes: int = 0

    def after_crash(self, lived_s: float) -> BackOff:
        return BackOff(1 if lived_s >= HEALTHY_AFTER_S else self.crashes + 1)

    @property
    def wait_s(self) -> float:
        """Seconds until the next start."""
        if self.crashes == 0:
            return 0.0
        # The exponent is bounded, too: after a night of crashes it would be a number with thousands of digits.
        return min(WAIT_S_MAX, FIRST_WAIT_S * 2.0 ** min(self.crashes - 1, 10))
