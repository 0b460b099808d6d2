"""How slow this machine is at this moment: the factor of every bound in seconds that a test asserts.

The bounds were measured on an idle machine. The suite also runs on machines of a third of that speed, and beside other processes. So
a test measures the machine in the same run, and states its bound as a multiple of the result. `Starvation`
(`tests/support/cluster/cpu_starvation.py`) says more of processes that a test knows: how long they themselves waited for cores.
"""

from __future__ import annotations

import hashlib
import time
from typing import Final

ROUND_S: Final = 0.010
"""A machine that needs more for a round is slow. The one on which the bounds were measured needs 6.4 ms (two cores, 2026-12-01)."""
ROUNDS: Final = 25
"""A quarter of a second: longer than a turn of the scheduler, so that processes beside this one count."""
HASHES_A_ROUND: Final = 95_000


def slowness() -> float:
    """Returns how many times longer a fixed computation takes here and now than `ROUND_S` allows; at least 1."""
    begun = time.perf_counter()
    for _ in range(ROUNDS):
        _compute()
    return max(1.0, (time.perf_counter() - begun) / (ROUNDS * ROUND_S))


def _compute() -> None:
    digest = hashlib.sha256()
    for number in range(HASHES_A_ROUND):
        digest.update(number.to_bytes(4, "big"))
