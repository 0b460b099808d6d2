from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tidegate_cli.dev.component_supervisor import Supervisor
from tidegate_cli.dev.console import StackConsole
from tidegate_cli.dev.errors import StackFailed


class Recording(StackConsole, Protocol):
    @property
    def notices(self) -> list[str]: ...


@dataclass
class FakeComponent:
    """A component that crashes when the test says so."""

    name: str = "node-1"
    log: Path = Path("node-1.log")
    running: bool = True
    ready: bool = False
    starts: int = 0
    failure: str | None = None
    ending: str = "ended with status 70"

    def start(self) -> None:
        self.starts += 1
        if self.failure is not None:
            raise StackFailed(self.failure)
        self.running = True


@dataclass
class ManualClock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_given_a_crash_then_the_component_starts_again_after_its_back_off_and_the_console_is_told(
    console: Recording,
) -> None:
    clock, node = ManualClock(), FakeComponent()
    supervisor = Supervisor(console, clock)
    supervisor.watch(node)
    node.running = False
    supervisor.check()
    clock.now += 0.9
    supervisor.check()
    assert node.starts == 0
    clock.now += 0.2
    supervisor.check()
    assert node.starts == 1
    node.ready = True
    clock.now += 2.5
    supervisor.check()
    supervisor.check()
    assert console.notices == [
        "node-1 ended with status 70; starting it again in 1 s; its log is node-1.log",
        "node-1 is back after 2.5 s",
    ]


def test_given_a_start_that_fails_then_it_is_tried_again_later(console: Recording) -> None:
    clock, node = ManualClock(), FakeComponent(running=False, failure="no more processes\nand a long log")
    supervisor = Supervisor(console, clock)
    supervisor.watch(node)
    for _ in range(4):
        supervisor.check()
        clock.now += 2
    assert node.starts == 2
    assert (
        console.notices[1]
        == "node-1 could not be started: no more processes; starting it again in 2 s; its log is node-1.log"
    )


def test_given_a_released_component_then_its_end_is_nobodys_business(console: Recording) -> None:
    clock, node = ManualClock(), FakeComponent()
    supervisor = Supervisor(console, clock)
    supervisor.watch(node)
    supervisor.release("node-1")
    node.running = False
    supervisor.check()
    clock.now += 60
    supervisor.check()
    assert (node.starts, console.notices) == (0, [])


def test_given_components_that_run_then_nothing_is_said(console: Recording) -> None:
    supervisor = Supervisor(console, ManualClock())
    supervisor.watch(FakeComponent())
    supervisor.check()
    assert console.notices == []
