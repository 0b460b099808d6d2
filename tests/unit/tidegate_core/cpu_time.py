"""CPU time as bounds mean it: of the machine for which they were written, whichever measures it.

A slower core takes more for the same work, and so does one whose other half computes something else, or a virtual one that its host lent
to others meanwhile: what such a yardstick takes there tells how much more.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final

TRIES: Final = 5
YARDSTICK_S: Final = 0.0035
"""What `_yardstick` takes on that machine while nothing else runs there."""


def least_cpu_s(act: Callable[[], object]) -> float:
    """Returns the least CPU time of some tries, seconds."""
    return min(_cpu_s(act) for _ in range(TRIES))


def slowness() -> float:
    """Returns how many times as long as that machine this one takes at the moment, at least 1."""
    return max(1.0, least_cpu_s(_yardstick) / YARDSTICK_S)


def is_done_within(bound_s: float, act: Callable[[], object]) -> bool:
    """Whether one of some tries takes less CPU time than a bound, in seconds of that machine."""
    return any(_cpu_s(act) < bound_s * slowness() for _ in range(TRIES))


def _cpu_s(act: Callable[[], object]) -> float:
    begun = process_time()
    act()
    return process_time() - begun


def _yardstick() -> None:
    kept: dict[int, tuple[int, str]] = {}
    for number in range(20_000):
        kept[number % 1_000] = (number, str(number))
