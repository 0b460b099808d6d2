"""The node's clock: the machine's wall clock without its steps.

If the wall clock stepped ahead by an hour, a node would fire all of that hour at once, and record an outage that lasts
until the hour has passed. The brokers' append times would reveal the step only seconds later. The clock of the time
since boot never steps. So a step is seen at once, and the node continues with its previous time. The heartbeats then
compare this clock with the brokers' (`heartbeat.py`). If this clock is off, the node ends, and the next process starts
with the machine's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidegate_node.liveness.heartbeat import CLOCK_OFFSET_MS_MAX
from tidegate_ports.clock import Clock

STEP_MS_MAX: Final = CLOCK_OFFSET_MS_MAX
"""Differences up to this are followed: they are corrections of a time service, or normal drift."""
LOOKS_MAX: Final = 3
"""Reads of both clocks. They are read one after the other, so a process that is paused between them would see a false
step."""


class SteadyClock:
    """`Clock` built on two clocks of the machine. Safe for any thread.

    Args:
        machine: Wall clock and time since boot of the machine.
        stepped: Callback at each step, with the ms by which the machine's wall clock is now ahead; 0 if they agree
            again.
    """

    def __init__(self, machine: Clock, stepped: Callable[[int], None]) -> None:
        self._machine = machine
        self._stepped = stepped
        self._boot = machine.now_ms() - machine.monotonic_ms()
        self._told = 0

    def now_ms(self) -> int:
        wall, monotonic = self._look()
        ahead = wall - monotonic - self._boot
        if abs(ahead) <= STEP_MS_MAX:
            # Slow drift is followed, so that it never adds up to a false step.
            self._boot = wall - monotonic
            self._tell(0)
            return wall
        self._tell(ahead)
        return monotonic + self._boot

    def monotonic_ms(self) -> int:
        return self._machine.monotonic_ms()

    def _look(self) -> tuple[int, int]:
        """Returns both clocks, read as close together as possible."""
        wall, monotonic = self._machine.now_ms(), self._machine.monotonic_ms()
        for _ in range(LOOKS_MAX - 1):
            if abs(wall - monotonic - self._boot) <= STEP_MS_MAX:
                break
            wall, monotonic = self._machine.now_ms(), self._machine.monotonic_ms()
        return wall, monotonic

    def _tell(self, ahead: int) -> None:
        # A step is reported once. Drift after it is not reported, but another step is.
        if (ahead == 0) != (self._told == 0) or abs(ahead - self._told) > STEP_MS_MAX:
            self._told = ahead
            self._stepped(ahead)
