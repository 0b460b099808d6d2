"""Starts components again that have crashed, each after its back-off, and says so.

One thread calls `look` again and again; nothing happens between the calls.
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


class Component(Protocol):
    """What can be supervised."""

    @property
    def name(self) -> str: ...

    @property
    def log(self) -> Path: ...

    @property
    def running(self) -> bool: ...

    @property
    def ready(self) -> bool:
        """Whether it answers; asked only after a restart."""

    @property
    def ending(self) -> str:
        """How it ended, as a clause; asked only once it has."""

    def start(self) -> None:
        """Starts it; raises what `START_ERRORS` lists."""


START_ERRORS = (StackFailed, BrickFailed, BrickUnavailable, OSError)


@dataclass(slots=True)
class _Life:
    """One component between its crashes.

    Attributes:
        restart_at: When it is to be started again; None while it runs.
        awaited: Whether its first answer after a restart is still to come.
    """

    component: Component
    started_at: float
    back_off: BackOff = field(default_factory=BackOff)
    restart_at: float | None = None
    awaited: bool = False


class Supervisor:
    """Watches components.

    Args:
        console: Told of each crash and return.
        clock: Monotonic seconds.
    """

    def __init__(self, console: StackConsole, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._lives: dict[str, _Life] = {}

    def watch(self, component: Component) -> None:
        """Takes a component that runs into care."""
        self._lives[component.name] = _Life(component, self._clock())

    def release(self, name: str) -> None:
        """From now on the component may end without being started again."""
        self._lives.pop(name, None)

    def look(self) -> None:
        """Looks at each component once, and starts those whose time has come."""
        for life in list(self._lives.values()):
            if life.component.running:
                self._welcome(life)
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

    def _welcome(self, life: _Life) -> None:
        if life.awaited and life.component.ready:
            life.awaited = False
            self._say(life, f"is back after {self._clock() - life.started_at:.1f} s")

    def _say(self, life: _Life, text: str) -> None:
        self._console.show(Notice(component=life.component.name, text=text))
