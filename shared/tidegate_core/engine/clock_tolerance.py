"""What may have come in time and is not counted yet: events that nobody has read, ends of runs that nobody has handed on.

A time-out that one of them could still prevent waits for them, at most 5 minutes (SEMANTICS 6.2, DESIGN 8).
"""

from __future__ import annotations

CLOCK_OFF_MS_MAX = 500
"""A node whose clock is further off the broker's does not serve (DESIGN 3)."""


CLOCKS_APART_MS_MAX = 2 * CLOCK_OFF_MS_MAX
"""So far two of their clocks may be apart: events are dated by the broker's, ends of runs by that of who saw them (an owner, or an API)."""
