"""CPU time, the least of some tries: what else the machine does counts for nothing."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final

TRIES: Final = 5


def least_cpu_s(act: Callable[[], object]) -> float:
    """Returns the least CPU time of some tries, seconds."""
    return min(_cpu_s(act) for _ in range(TRIES))


def is_done_within(bound_s: float, act: Callable[[], object]) -> bool:
    """Whether one of some tries takes less CPU time than a bound, seconds; none is made behind it."""
    return any(_cpu_s(act) < bound_s for _ in range(TRIES))


def _cpu_s(act: Callable[[], object]) -> float:
    begun = process_time()
    act()
    return process_time() - begun
