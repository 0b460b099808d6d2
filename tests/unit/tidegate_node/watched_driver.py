"""A driver whose actors do what a script says, and what it told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidegate_core.engine.actor_inputs import Input, Tick
from tidegate_core.rows.effects import EffectRequest
from tidegate_node.partition_driver import DriverEvents, PartitionDriver

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


class ScriptedActor:
    """Notes what it is given and answers each input with what the script says."""

    def __init__(self, script: Callable[[Input], list[EffectRequest]] = lambda _: []) -> None:
        self.script = script
        self.given: list[Input] = []
        self.at: list[int] = []
        self.wake: int | None = None
        self.is_serving = True
        self.has_ended = False
        self.behind: int | None = 0
        self.inside = False
        self.forgets = False

    def step(self, now: int, incoming: Input) -> list[EffectRequest]:
        assert not self.inside
        self.inside = True
        self.given.append(incoming)
        self.at.append(now)
        if isinstance(incoming, Tick):
            self.wake = None
        asked = self.script(incoming)
        self.inside = False
        return asked

    def next_wake(self) -> int | None:
        return self.wake

    def awaits(self, token: int) -> bool:
        return not self.forgets

    def served_until(self, now: int) -> int | None:
        return None if self.behind is None else now - self.behind


class Watched:
    """A driver, the actors that it made, and what it told."""

    def __init__(self, around: Surroundings, make: Callable[[], Any]) -> None:
        self.actors: list[Any] = []
        self.failures: list[tuple[BaseException, bool]] = []
        self.ended = 0
        self.drained = 0
        events = DriverEvents(
            lambda _, failure, too_many: self.failures.append((failure, too_many)), lambda _: self._count()
        )

        def made() -> Any:
            self.actors.append(make())
            return self.actors[-1]

        self.driver = PartitionDriver(1, made, around.shell(), events, asyncio.get_running_loop())
        self.driver.begin()

    def _count(self) -> None:
        self.ended += 1

    def drain(self) -> None:
        self.driver.drain(self._drained)

    def _drained(self) -> None:
        self.drained += 1
