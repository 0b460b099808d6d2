"""Both launchers keep the port's rules: the local launcher with real processes, and the launcher in memory."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.conformance.launcher_suite import GRACE_S, Does, HeldSubmission, LauncherConformance, LauncherRig
from tests.support.memory_launcher import AskedToEnd, EndedBySignal, MemoryLauncher, MemoryPlatform, Program
from tests.support.recording_gate import ARRIVAL_TIMEOUT_S, RecordingGate, recording_gate
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.common.program_file_check import FileLooks
from tidegate_ports.launcher import Launch

EXIT_TERMINATED = 143


def a_launch(does: Does, file: str, *args: str, gate_url: str = "") -> Launch:
    """Returns attempt 1 of a new run: the processes of a host are known by their run, also those of another worker's tests."""
    return Launch(
        run_id=f"0007-{secrets.token_hex(13)}",
        attempt=1,
        program_type="python",
        file=file,
        args=(does, *args),
        conf={},
        context={},
        gate_url=gate_url,
        token="secret-of-the-test",
    )


# -- in memory --------------------------------------------------------------------------------------------------------


class MemoryRig:
    """Programs are tasks of the test's loop."""

    place = "place-1"
    other_place = "place-2"

    def __init__(self) -> None:
        programs: dict[str, Program | None] = {
            "exits": self._exits,
            "holds": self._holds,
            "is killed": self._is_killed,
            "ignores the request": self._ignores_the_request,
            "cannot begin": None,
        }
        self.platform = MemoryPlatform(programs)
        self._begun: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._free: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._starts: Counter[tuple[str, int]] = Counter()

    def launcher(self, *, place: str | None = None, grace_s: float = GRACE_S) -> MemoryLauncher:
        return MemoryLauncher(self.platform, place or self.place, grace_s)

    def launch(self, does: Does, code: int = 0) -> Launch:
        return a_launch(does, does, str(code))

    async def began(self, launch: Launch) -> None:
        await self._begun[launch.run_id].wait()

    async def let_go(self, launch: Launch) -> None:
        self._free[launch.run_id].set()

    def starts(self, launch: Launch) -> int:
        return self._starts[(launch.run_id, launch.attempt)]

    def silent(self, launch: Launch) -> AbstractContextManager[None]:
        return self.platform.silent()

    async def asked(self, launch: Launch) -> None:
        await self.platform.attempts[(launch.run_id, launch.attempt)].asked.wait()

    @asynccontextmanager
    async def submission_held(self, launch: Launch) -> AsyncIterator[HeldSubmission]:
        self.platform.accepts.clear()
        launcher = self.launcher()
        submission = asyncio.create_task(launcher.submit(launch))
        await asyncio.sleep(0)
        yield HeldSubmission(launcher, submission)
        self.platform.accepts.set()

    def age_cancel(self, launch: Launch, seconds: float) -> None:
        attempt = self.platform.attempts[(launch.run_id, launch.attempt)]
        assert attempt.asked_at is not None
        attempt.asked_at -= seconds

    def _note(self, launch: Launch) -> None:
        self._starts[(launch.run_id, launch.attempt)] += 1
        self._begun[launch.run_id].set()

    async def _exits(self, launch: Launch, asked: AskedToEnd) -> int:
        self._note(launch)
        return int(launch.args[1])

    async def _is_killed(self, launch: Launch, asked: AskedToEnd) -> int:
        self._note(launch)
        raise EndedBySignal(signal.SIGKILL)

    async def _holds(self, launch: Launch, asked: AskedToEnd) -> int:
        self._note(launch)
        free, request = (asyncio.create_task(each.wait()) for each in (self._free[launch.run_id], asked))
        try:
            done, _ = await asyncio.wait({free, request}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            free.cancel()
            request.cancel()
        return 0 if free in done else EXIT_TERMINATED

    async def _ignores_the_request(self, launch: Launch, asked: AskedToEnd) -> int:
        self._note(launch)
        await asyncio.Event().wait()
        return 0


class TestMemoryLauncher(LauncherConformance):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[LauncherRig]:
        rig = MemoryRig()
        yield rig
        await rig.platform.close()


# -- local ------------------------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys
from tidegate_spark import set_output

does, code, latch = sys.argv[1:]
if does == "exits":
    sys.exit(int(code))
if does == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
if does == "ignores the request":
    signal.signal(signal.SIGTERM, lambda *_: set_output("said", "asked"))
set_output("said", "began")
while does == "ignores the request":
    signal.pause()
open(latch).read()
"""


class HeldLooks(FileLooks):
    """A look at a program's file that takes as long as the test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def problem_with(self, file: str, who: str) -> str | None:
        self.begun.set()
        await self.may_end.wait()
        return await super().problem_with(file, who)


class LocalRig:
    """Programs are processes of this host, under the wrapper; a gate in the test's own process admits them all."""

    place = "node-1"
    other_place = "node-2"

    def __init__(self, folder: Path, gate: RecordingGate) -> None:
        self._folder = folder
        self._gate = gate
        self._program = folder / "program.py"
        self._program.write_text(PROGRAM, encoding="utf-8")
        self._launched: list[Launch] = []

    def launcher(self, *, place: str | None = None, grace_s: float = GRACE_S) -> LocalLauncher:
        return LocalLauncher(self._settings(place or self.place, grace_s))

    def _settings(self, place: str, grace_s: float) -> LocalSettings:
        # Both places share one data folder, as hosts do that mount the same one.
        return LocalSettings(
            data_dir=self._folder / "data",
            host=place,
            gate_wait_s=ARRIVAL_TIMEOUT_S,
            report_wait_s=ARRIVAL_TIMEOUT_S,
            submit_timeout_s=ARRIVAL_TIMEOUT_S,
            cancel_grace_s=grace_s,
            kill_repeat_s=0.05,
            poll_interval_s=0.02,
        )

    def launch(self, does: Does, code: int = 0) -> Launch:
        file = "/gone/program.py" if does == "is missing" else str(self._program)
        latch = self._folder / f"latch-{len(self._launched)}"
        os.mkfifo(latch)
        # No process can take an argument with a NUL.
        last = "\0" if does == "cannot begin" else str(latch)
        launch = a_launch(does, file, str(code), last, gate_url=self._gate.url)
        self._launched.append(launch)
        return launch

    async def began(self, launch: Launch) -> None:
        await self._says(launch, "began")

    async def asked(self, launch: Launch) -> None:
        await self._says(launch, "asked")

    async def let_go(self, launch: Launch) -> None:
        await asyncio.to_thread(lambda: Path(launch.args[-1]).open("w").close())

    def starts(self, launch: Launch) -> int:
        drivers = {body["driver"] for body in self._gate.of("start") if _is_of(body, launch)}
        return len(drivers)

    @contextmanager
    def silent(self, launch: Launch) -> Iterator[None]:
        folder = self._run_folder(launch)
        folder.make()
        record, aside = folder.path / "supervisor.json", folder.path / "aside.json"
        if record.exists():
            record.rename(aside)
        record.write_text("{")
        yield
        record.unlink()
        if aside.exists():
            aside.rename(record)

    @asynccontextmanager
    async def submission_held(self, launch: Launch) -> AsyncIterator[HeldSubmission]:
        looks = HeldLooks()
        launcher = LocalLauncher(self._settings(self.place, GRACE_S), looks)
        submission = asyncio.create_task(launcher.submit(launch))
        await looks.begun.wait()
        yield HeldSubmission(launcher, submission)
        looks.may_end.set()

    def age_cancel(self, launch: Launch, seconds: float) -> None:
        folder = self._run_folder(launch)
        first = folder.cancelled_at()
        assert first is not None
        folder.write_cancel(first - round(seconds * 1000))

    async def close(self) -> None:
        """Kills everything."""
        launchers = [self.launcher(place=place, grace_s=0) for place in (self.place, self.other_place)]
        for launch in self._launched:
            for launcher in launchers:
                await launcher.cancel(launch.run_id, launch.attempt)

    def _run_folder(self, launch: Launch) -> RunFolder:
        return RunFolder.within(self._folder / "data", launch.run_id, launch.attempt)

    async def _says(self, launch: Launch, word: str) -> None:
        def fits(body: Mapping[str, object]) -> bool:
            return body["outputs"] == {"said": word}

        await asyncio.to_thread(self._gate.wait_for, "outputs", lambda body: _is_of(body, launch) and fits(body))


def _is_of(body: Mapping[str, object], launch: Launch) -> bool:
    return (body["run_id"], body["attempt"]) == (launch.run_id, launch.attempt)


class TestLocalLauncher(LauncherConformance):
    @pytest.fixture
    async def rig(self, tmp_path: Path) -> AsyncIterator[LauncherRig]:
        with recording_gate() as gate:
            rig = LocalRig(tmp_path, gate)
            yield rig
            await rig.close()
