"""How rates and periods are drawn."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

Period: TypeAlias = tuple[int, int]
"""From and to, milliseconds after the start."""


def rate(chance: Random, most: float) -> float:
    """Off in half of the worlds, else spread over three orders of two."""
    return most * 2.0 ** -chance.uniform(0, 3) if chance.random() < 0.5 else 0.0


def period(chance: Random, busy_ms: int, shortest: int, longest: int) -> Period:
    begin = chance.randint(3_000, busy_ms)
    return begin, begin + chance.randint(shortest, longest)


def lies_in(periods: tuple[Period, ...], elapsed: int) -> bool:
    # Asked at each call of the store, and most worlds have no such period.
    return bool(periods) and any(begin <= elapsed < end for begin, end in periods)
