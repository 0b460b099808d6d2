"""`tidegate node --workers N`: a node process for each core of a machine that has nobody else to start several.

A Python process uses one core. Each worker is a node of its own, with its own share, name (`<node>-1`, ...), health port (the
set one, the next, ...) and log lines on the same standard error. On Kubernetes take more pods instead.

Orders to end go through a pipe and not by signals: a service manager may signal the workers as well (systemd does by default), and
a worker that took both for two orders would end without draining. A pipe also tells of an end of this process that no signal tells of:
a worker whom nobody looks after any more drains.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from tidegate_node.process_lifecycle import EXIT_SIGNAL_BASE, STOP_SIGNALS
from tidegate_node.startup_checks import EXIT_CONFIGURATION
from tidegate_ports.bus import Notices

ORDERS_ON_STDIN: Final = "--orders-on-stdin"
COMMAND: Final = (sys.executable, "-P", "-m", "tidegate_node", ORDERS_ON_STDIN)
PAUSE_FIRST_S: Final = 1.0
PAUSE_LAST_S: Final = 30.0
NOT_STARTED: Final = 71
"""Status of a worker whose process the system did not start: no room for one more, or its interpreter is being replaced."""
LOOK_EVERY_S: Final = 0.05
"""Whether a worker has ended. By looks: asyncio waits for a process with a thread of its own (Python 3.11), and where the host has none left it
leaves one behind that runs and of which nobody knows.
"""
STEADY_S: Final = 60.0
"""A worker that has run so long is started again after the first pause."""


class Workers:
    """Starts workers, starts those again that end by themselves, and ends all of them with itself.

    Args:
        environments: Of each worker.
        notices: Told of each worker that ends by itself.
        command: Starts one, which finds its orders on its standard input (`process.stop_on_signals`).
        pause_first_s: Before a worker is started again; twice as long each next time, up to 30 s.
    """

    def __init__(
        self,
        environments: Sequence[Mapping[str, str]],
        notices: Notices,
        command: Sequence[str] = COMMAND,
        pause_first_s: float = PAUSE_FIRST_S,
    ) -> None:
        self._environments = environments
        self._notices = notices
        self._command = command
        self._pause_first_s = pause_first_s
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._ends = asyncio.Event()

    async def run(self) -> int:
        """Returns 0 when a signal has ended all of them well, else the first status that was not 0.

        78 of any ends all: the settings are the same for each of them, and another start would change nothing.
        """
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._end, number)
        statuses = await asyncio.gather(*map(self._keep, range(len(self._environments))))
        return EXIT_CONFIGURATION if EXIT_CONFIGURATION in statuses else next((each for each in statuses if each), 0)

    async def _keep(self, worker: int) -> int:
        """Runs one worker until the end; returns the status that it ended with."""
        pause_s = self._pause_first_s
        while not self._ends.is_set():
            begun = asyncio.get_running_loop().time()
            status = await self._live(worker)
            if self._ends.is_set():
                return status
            self._notices("worker_ended", worker=worker + 1, status=status)
            if status == EXIT_CONFIGURATION:
                self._end(signal.SIGTERM)
                return status
            if asyncio.get_running_loop().time() - begun >= STEADY_S:
                pause_s = self._pause_first_s
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ends.wait(), pause_s)
            pause_s = min(2 * pause_s, PAUSE_LAST_S)
        return 0  # There is nothing to hand over.

    async def _live(self, worker: int) -> int:
        """One life of a worker. Its own session: a terminal's Ctrl-C reaches it once, from here."""
        try:
            process = self._started(worker)
        except OSError as error:
            # Let out, it would end this process, and leave the others behind without anybody who ends them.
            self._notices("worker_not_started", worker=worker + 1, error=str(error))
            return NOT_STARTED
        self._running[worker] = process
        assert process.stdin is not None
        try:
            with process.stdin:
                while (status := process.poll()) is None:  # noqa: ASYNC110 - nobody tells of a process's end without a thread
                    await asyncio.sleep(LOOK_EVERY_S)
        finally:
            del self._running[worker]
        return status if status >= 0 else EXIT_SIGNAL_BASE - status

    def _started(self, worker: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - the command is ours
            self._command,
            bufsize=0,
            stdin=subprocess.PIPE,
            env=dict(self._environments[worker]),
            start_new_session=True,
        )

    def _end(self, number: signal.Signals) -> None:
        """Passes an order on to all: the first one drains them, a second one ends them at once."""
        self._ends.set()
        for process in self._running.values():
            _pass_on(process, bytes((number,)))


def _pass_on(process: subprocess.Popen[bytes], order: bytes) -> None:
    """Tells a worker; one that is gone hears nothing. It is a byte an order: they fit into a pipe that nobody has read yet."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(order)


def environments_of(count: int, node: str, health_port: int, environment: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns what each worker is told: the same as this process, but for its name and its health port (0: any free one). Programs of
    the host are none of its business when it ends: others may serve on, and be their host.
    """
    return [
        {
            **environment,
            "TIDEGATE_NODE": f"{node}-{number + 1}",
            "TIDEGATE_HEALTH__PORT": str(health_port + number if health_port else 0),
            "TIDEGATE_LAUNCHER__END_WAIT_S": "0",
        }
        for number in range(count)
    ]
