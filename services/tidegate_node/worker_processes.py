"""`tidegate node --workers N`: several node processes on one machine, for hosts without an orchestrator that could
start them.

A Python process uses one core. Each worker is a complete node with its own share of the shards and its own name
(`<node>-1`, ...).
Each has its own health port: the configured one, the next, and so on. All log to the same standard error. On
Kubernetes use more pods instead.

Orders to end go through a pipe, not through signals. A service manager may signal the workers too (systemd does by
default). A
worker that took both for two orders would end without draining. The pipe also closes if this process dies without a
signal: a
worker without a supervisor drains.
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
"""Status of a worker whose process the system did not start: resources are exhausted, or the interpreter is being
replaced."""
LOOK_EVERY_S: Final = 0.05
"""Time between checks whether a worker has ended. asyncio would wait in a new thread for each process (Python 3.11). If
the host has no thread left, asyncio leaves a running process that is not tracked.
"""
STEADY_S: Final = 60.0
"""A worker that has run this long is restarted after the first, shortest pause."""


class Workers:
    """Starts workers, restarts those that end without an order, and ends all of them with itself.

    Args:
        environments: Environment variables of each worker.
        notices: Log of each worker that ends without an order.
        command: Command of a worker, which reads its orders from standard input (`process_lifecycle.stop_on_signals`).
        pause_first_s: Pause before the first restart; it doubles each time, up to 30 s.
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
        """Returns 0 if a signal has ended all workers cleanly, otherwise the first status that was not 0.

        Status 78 of one worker ends all: they share the settings, and a restart would change nothing.
        """
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._end, number)
        statuses = await asyncio.gather(*map(self._keep, range(len(self._environments))))
        return EXIT_CONFIGURATION if EXIT_CONFIGURATION in statuses else next((each for each in statuses if each), 0)

    async def _keep(self, worker: int) -> int:
        """Runs one worker, with restarts, until the end; returns its last status."""
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
        return 0  # No worker runs, so nothing is handed over.

    async def _live(self, worker: int) -> int:
        """Runs one process of a worker. It has its own session, so that a terminal's Ctrl-C reaches it once, through
        this process.
        """
        try:
            process = self._started(worker)
        except OSError as error:
            # If raised, it would end this process and leave the other workers without a supervisor.
            self._notices("worker_not_started", worker=worker + 1, error=str(error))
            return NOT_STARTED
        self._running[worker] = process
        assert process.stdin is not None
        try:
            with process.stdin:
                while (status := process.poll()) is None:  # noqa: ASYNC110 - without a thread only polling shows the end
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
        """Passes an order on to all workers: the first order drains them, a second one ends them at once."""
        self._ends.set()
        for process in self._running.values():
            _pass_on(process, bytes((number,)))


def _pass_on(process: subprocess.Popen[bytes], order: bytes) -> None:
    """Sends an order to a worker, one byte each; orders fit into a pipe that is not read. An order to a dead worker is
    dropped.
    """
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(order)


def environments_of(count: int, node: str, health_port: int, environment: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns the environment of each worker: that of this process with another name and health port (0 means any free
    one).

    Workers do not wait for the host's programs at their end, because other workers may still serve as the programs'
    host.
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
