"""The node's clock: the machine's wall clock, but for its steps.

A wall clock that steps ahead by an hour would let a node fire all of that hour at once, and write down an outage that lasts until
the hour has passed; the brokers' append times tell it only some seconds later. The clock of the time since boot never steps, so a step is
seen in the moment in which it happens, and the node goes on in the time that it had. Who was right, that time or the machine's, is
for the heartbeats to say, which compare what this clock shows with the brokers' (`heartbeat.py`): a clock that is off ends the node, and
the next one begins with the machine's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidegate_node.liveness.heartbeat import CLOCK_OFFSET_MS_MAX
from tidegate_ports.clock import Clock

STEP_MS_MAX: Final = CLOCK_OFFSET_MS_MAX
"""Smaller ones are followed: what a time service corrects, and what a clock may be off anyway."""
LOOKS_MAX: Final = 3
"""Two clocks are read one after the other: a process that is stopped between them sees a step where there is none, once."""


class SteadyClock:
    """`Clock`, on two clocks of the machine. Of any thread.

    Args:
        machine: Its wall clock and its time since boot.
        stepped: Told each step by how many ms the machine's wall clock is ahead of this one now; 0 where they agree again.
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
            # Slow drift is followed, so that it never adds up to what would be taken for a step.
            self._boot = wall - monotonic
            self._tell(0)
            return wall
        self._tell(ahead)
        return monotonic + self._boot

    def monotonic_ms(self) -> int:
        return self._machine.monotonic_ms()

    def _look(self) -> tuple[int, int]:
        """Returns both clocks of one moment, as far as that can be had."""
        wall, monotonic = self._machine.now_ms(), self._machine.monotonic_ms()
        for _ in range(LOOKS_MAX - 1):
            if abs(wall - monotonic - self._boot) <= STEP_MS_MAX:
                break
            wall, monotonic = self._machine.now_ms(), self._machine.monotonic_ms()
        return wall, monotonic

    def _tell(self, ahead: int) -> None:
        # Not each millisecond by which the two drift: a step is told once, and another one that follows it.
        if (ahead == 0) != (self._told == 0) or abs(ahead - self._told) > STEP_MS_MAX:
            self._told = ahead
            self._stepped(ahead)
