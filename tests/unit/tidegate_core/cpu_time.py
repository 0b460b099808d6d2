"""CPU time in units of a calibration that the same process makes beside it: a slow machine is slow at both.

Each is the least of some tries, so that other work on the machine counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final

TRIES: Final = 5
ADDITIONS: Final = 200_000
"""A calibration is so many additions: 9 to 17 ms on the machines that were measured (2026-12-01), the latter busy."""


def least_cpu_s(act: Callable[[], object]) -> float:
    """Returns the least CPU time of some tries, seconds."""
    return min(_cpu_s(act) for _ in range(TRIES))


def calibration_s() -> float:
    """Returns the least CPU time of some calibrations, seconds."""
    return least_cpu_s(_add)


def is_done_within(calibrations: float, act: Callable[[], object]) -> bool:
    """Whether one of some tries takes less CPU time than so many calibrations; no further try is made behind it."""
    return any(_cpu_s(act) < calibrations * calibration_s() for _ in range(TRIES))


def _cpu_s(act: Callable[[], object]) -> float:
    begun = process_time()
    act()
    return process_time() - begun


def _add() -> None:
    total = 0
    for number in range(ADDITIONS):
        total += number
