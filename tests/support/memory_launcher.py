"""A platform in memory, and the launcher for it: the second implementation of the launcher port, beside the local launcher.

A program is an asyncio task of the test's own loop. The platform outlives its launchers, as hosts outlive nodes: tests drop a launcher and
build another one for the restart of a node. It promises what the port promises and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tidegate_ports.common.refused_conf import refused_conf
from tidegate_ports.launcher import (
    Absent,
    Elsewhere,
    Ended,
    Found,
    Launch,
    LaunchRejected,
    LaunchUnavailable,
    Lookup,
    Placement,
    ProgramType,
    class_of_exit,
    launch_name,
)

EXIT_CANNOT_BEGIN: Final = 78
SIGNAL_BASE: Final = 128
KILL: Final = 9

Key: TypeAlias = tuple[str, int]
AskedToEnd: TypeAlias = asyncio.Event
Program: TypeAlias = Callable[[Launch, AskedToEnd], Awaitable[int]]
"""Returns its exit code, or raises `EndedBySignal`."""


class EndedBySignal(Exception):
    """The program's own signal ended it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass
class Attempt:
    """One started attempt.

    Attributes:
        process: Ends with the attempt's end.
        asked: Set by the first cancel.
        asked_at: When that was, on the monotonic clock, in seconds.
    """

    placement: Placement
    process: asyncio.Task[Ended]
    asked: AskedToEnd
    asked_at: float | None = None


@dataclass
class MemoryPlatform:
    """What exists apart from launchers.

    Attributes:
        programs: By file; None for a file that the platform accepts and cannot begin.
        attempts: Those that started, by run and attempt.
        withdrawn: Attempts that were cancelled during their submission.
        submitting: Submissions under way.
        answers: Whether the platform answers.
        accepts: Submissions wait for it before they start anything.
    """

    programs: dict[str, Program | None] = field(default_factory=dict)
    attempts: dict[Key, Attempt] = field(default_factory=dict)
    withdrawn: set[Key] = field(default_factory=set)
    submitting: list[Key] = field(default_factory=list)
    answers: bool = True
    accepts: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.accepts.set()

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """The platform gives no answer until the block ends."""
        self.answers = False
        yield
        self.answers = True

    def ask(self) -> None:
        if not self.answers:
            raise LaunchUnavailable("the platform gives no answer; ask again")

    def start(self, launch: Launch, place: str) -> Attempt:
        asked = AskedToEnd()
        process = asyncio.get_running_loop().create_task(_run(self.programs[launch.file], launch, asked))
        placement = Placement(launch.name, place, f"process-{len(self.attempts)}")
        attempt = self.attempts[(launch.run_id, launch.attempt)] = Attempt(placement, process, asked)
        return attempt

    async def close(self) -> None:
        """Kills everything."""
        for attempt in self.attempts.values():
            attempt.process.cancel()
        await asyncio.gather(*(attempt.process for attempt in self.attempts.values()), return_exceptions=True)


async def _run(program: Program | None, launch: Launch, asked: AskedToEnd) -> Ended:
    if program is None:
        return Ended(EXIT_CANNOT_BEGIN, None, "config", f"{launch.file} cannot be started")
    try:
        code = await program(launch, asked)
    except EndedBySignal as ended:
        return _by_signal(ended.number)
    except asyncio.CancelledError:
        return _by_signal(KILL)
    return Ended(code, None, class_of_exit(code), f"exit code {code}" if code else "")


def _by_signal(number: int) -> Ended:
    return Ended(SIGNAL_BASE + number, number, "transient", f"ended by signal {number}")


class MemoryLauncher:
    """Implements `tidegate_ports.launcher.Launcher` for one place of a `MemoryPlatform`."""

    def __init__(self, platform: MemoryPlatform, place: str, grace_s: float) -> None:
        self._platform = platform
        self._place = place
        self._grace_s = grace_s

    def refuses(self, program_type: ProgramType, conf: Mapping[str, str]) -> str | None:
        return refused_conf(conf) if program_type == "pyspark" else None

    async def submit(self, launch: Launch) -> Placement:
        platform, key = self._platform, (launch.run_id, launch.attempt)
        platform.ask()
        platform.submitting.append(key)
        try:
            await platform.accepts.wait()
        finally:
            platform.submitting.remove(key)
        if key in platform.attempts:
            return platform.attempts[key].placement
        if key in platform.withdrawn:
            raise LaunchRejected("config", f"{launch.name} was cancelled before it started")
        if launch.file not in platform.programs:
            raise LaunchRejected("config", f"{launch.file} does not exist at {self._place}")
        return platform.start(launch, self._place).placement

    async def lookup(self, run_id: str, attempt: int, place: str | None, instance: str | None) -> Lookup:
        self._platform.ask()
        if place is not None and place != self._place:
            return Elsewhere(place)
        known = self._platform.attempts.get((run_id, attempt))
        if known is None:
            return Absent()
        return Found(known.placement) if known.placement.place == self._place else Elsewhere(known.placement.place)

    async def wait_until_gone(self, run_id: str, attempt: int) -> Ended:
        match await self.lookup(run_id, attempt, None, None):
            case Found():
                # Shielded: the end of a wait is not the end of the program.
                return await asyncio.shield(self._platform.attempts[(run_id, attempt)].process)
            case Absent():
                return Ended(None, None, "transient", "it never started here")
            case Elsewhere(place):
                raise LaunchUnavailable(f"{launch_name(run_id, attempt)} was started at {place}")

    async def cancel(self, run_id: str, attempt: int) -> Ended | Absent | Elsewhere:
        key = (run_id, attempt)
        known = await self.lookup(run_id, attempt, None, None)
        if isinstance(known, Absent) and key in self._platform.submitting:
            self._platform.withdrawn.add(key)
            return Ended(None, None, "transient", "it never started here")
        if not isinstance(known, Found):
            return known
        found, now = self._platform.attempts[key], time.monotonic()
        if found.asked_at is None:
            found.asked_at = now
        found.asked.set()
        left_s = max(0.0, found.asked_at + self._grace_s - now)
        await asyncio.wait({found.process}, timeout=left_s)
        found.process.cancel()  # Nothing happens to one that has ended.
        return await asyncio.shield(found.process)
