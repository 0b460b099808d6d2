"""Restarts crashed components, each after its back-off, and reports it on the console.

The stack calls `check` from one thread, several times a second. Nothing happens between the calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tidegate_bricks import BrickFailed, BrickUnavailable
from tidegate_cli.dev.console import StackConsole
from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.dev.stack_events import Notice

FIRST_WAIT_S = 1.0
WAIT_S_MAX = 30.0
"""Short enough that a user who has fixed the cause sees the restart."""

HEALTHY_AFTER_S = 60.0
"""A component that ran this long starts well, so its next crash counts as the first."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """Waits of 1, 2, 4 … 30 s; after a healthy run 1 s again.

    Attributes:
        crashes: Number of crashes in a row.
    """

    crashes: int = 0

    def after_crash(self, lived_s: float) -> BackOff:
        return BackOff(1 if lived_s >= HEALTHY_AFTER_S else self.crashes + 1)

    @property
    def wait_s(self) -> float:
        """Seconds until the next start."""
        if self.crashes == 0:
            return 0.0
        # The exponent is bounded too: after a night of crashes the power would overflow.
        return min(WAIT_S_MAX, FIRST_WAIT_S * 2.0 ** min(self.crashes - 1, 10))


class Component(Protocol):
    """A component that the supervisor can restart."""

    @property
    def name(self) -> str: ...

    @property
    def log(self) -> Path: ...

    @property
    def running(self) -> bool: ...

    @property
    def ready(self) -> bool:
        """Whether the component answers; called only after a restart."""

    @property
    def ending(self) -> str:
        """Clause that says how the component ended; read only after its end."""

    def start(self) -> None:
        """Starts the component; raises one of `START_ERRORS`."""


START_ERRORS = (StackFailed, BrickFailed, BrickUnavailable, OSError)


@dataclass(slots=True)
class _Life:
    """State of one supervised component.

    Attributes:
        restart_at: Time of the next start; None while the component runs.
        awaited: Whether the component was restarted and has not answered since.
    """

    component: Component
    started_at: float
    back_off: BackOff = field(default_factory=BackOff)
    restart_at: float | None = None
    awaited: bool = False


class Supervisor:
    """Restarts crashed components.

    Args:
        console: Console for a notice of each crash and each return.
        clock: Monotonic clock, in seconds.
    """

    def __init__(self, console: StackConsole, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._lives: dict[str, _Life] = {}

    def watch(self, component: Component) -> None:
        """Adds a running component."""
        self._lives[component.name] = _Life(component, self._clock())

    def release(self, name: str) -> None:
        """Removes a component: from now on its end causes no restart."""
        self._lives.pop(name, None)

    def check(self) -> None:
        """Checks each component once, and restarts the ones that are due."""
        for life in list(self._lives.values()):
            if life.component.running:
                self._report_return(life)
            elif life.restart_at is None:
                self._plan_restart(life, life.component.ending)
            elif self._clock() >= life.restart_at:
                self._restart(life)

    def _plan_restart(self, life: _Life, what: str) -> None:
        now = self._clock()
        life.back_off = life.back_off.after_crash(now - life.started_at)
        life.restart_at = now + life.back_off.wait_s
        life.awaited = False
        self._say(life, f"{what}; starting it again in {life.back_off.wait_s:g} s; its log is {life.component.log}")

    def _restart(self, life: _Life) -> None:
        life.started_at = self._clock()
        try:
            life.component.start()
        except START_ERRORS as error:
            self._plan_restart(life, f"could not be started: {str(error).splitlines()[0]}")
            return
        life.restart_at = None
        life.awaited = True

    def _report_return(self, life: _Life) -> None:
        if life.awaited and life.component.ready:
            life.awaited = False
            self._say(life, f"is back after {self._clock() - life.started_at:.1f} s")

    def _say(self, life: _Life, text: str) -> None:
        self._console.show(Notice(component=life.component.name, text=text))
