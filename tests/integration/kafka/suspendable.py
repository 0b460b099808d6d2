"""A member in a process of its own, for tests that suspend or kill it: starts `member_process.py` and hears what it says."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from tidegate_kafka.clients.settings import KafkaSettings

PATIENCE_S = 60.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""


class Suspendable:
    """A member in a process of its own, which can be suspended and killed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said: list[dict[str, object]] = []

    @classmethod
    async def join(cls, settings: KafkaSettings) -> Suspendable:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("member_process.py")),
            settings.model_dump_json(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
        )
        return cls(process)

    async def heard(self, *wanted: str, times: int = 1) -> dict[str, object]:
        """Reads on until one of the events was said so often; other events may come before it."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while len(found := [each for each in self._said if each["event"] in wanted]) < times:
                line = await self._process.stdout.readline()
                assert line, f"the process ended without saying {wanted}, but {self._said}"
                self._said.append(json.loads(line))
        return found[-1]

    def suspend(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()

    async def end(self) -> None:
        if self._process.returncode is None:
            self.resume()
            assert self._process.stdin is not None
            self._process.stdin.close()
        await asyncio.wait_for(self._process.communicate(), PATIENCE_S)
