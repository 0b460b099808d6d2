"""The command `tidegate dev`. It reads options and signals, and runs a `Stack`."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from tidegate_cli.dev.console import StackConsole, console_for
from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.dev.options import NODES_MAX, StackOptions, default_data_dir
from tidegate_cli.dev.stack import Stack
from tidegate_cli.dev.stack_events import Failed

CHECK_INTERVAL_S = 0.25
"""Seconds until a crash is noticed; a check costs a few system calls."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

app = typer.Typer(help="Run everything on this machine.", add_completion=False)


@app.command(name="dev")
def dev(
    nodes: Annotated[int, typer.Option(min=1, max=NODES_MAX, help="Number of nodes to start.")] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of all data.", show_default="~/.local/share/tidegate/dev")
    ] = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Use a temporary folder and remove all data at the stop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line, for scripts.")] = False,
) -> None:
    """Start a real Kafka broker, DynamoDB Local, nodes and the API on this machine, and restart them after a crash.

    If your settings name an endpoint (TIDEGATE_KAFKA__BOOTSTRAP_SERVERS, TIDEGATE_DYNAMODB__ENDPOINT_URL), it is used instead of a
    local server. TIDEGATE_API__PORT is the port of the API. A wrong setting ends the command with exit code 2.
    Ctrl-C drains and stops everything. Data are kept unless --ephemeral is given.
    """
    if ephemeral and data_dir is not None:
        raise typer.BadParameter("--ephemeral keeps no data; leave --data-dir out")
    folder = None if ephemeral else (data_dir or default_data_dir())
    console = console_for(sys.stdout, sys.stderr, as_json=as_json)
    raise typer.Exit(run_until_stopped(StackOptions(data_dir=folder, nodes=nodes), console))


def run_until_stopped(options: StackOptions, console: StackConsole) -> int:
    """Runs a stack until a signal ends it. Returns the exit code: 0 after a signal, 2 for a wrong setting, otherwise 1."""
    interrupts = Interrupts()
    stack = Stack(options, console)
    try:
        stack.start()
        while True:
            stack.check()
            time.sleep(CHECK_INTERVAL_S)
    except KeyboardInterrupt:
        return 0
    except StackFailed as failure:
        console.show(Failed(problem=failure.problem, remedy=failure.remedy))
        return failure.code
    finally:
        interrupts.only_count()
        console.close()
        stack.stop(hurry=interrupts.hurry)


class Interrupts:
    """Signal handler for Ctrl-C, SIGTERM and a closed terminal: the first signal stops the stack, the second skips the drain."""

    def __init__(self) -> None:
        self._count = 0
        self._raises = True
        for number in STOP_SIGNALS:
            signal.signal(number, self._arrived)

    def only_count(self) -> None:
        """From now on signals are only counted, because the stop has begun."""
        self._raises = False
        self._count = min(self._count, 1)

    def hurry(self) -> bool:
        return self._count > 1

    def _arrived(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._raises and self._count == 1:
            raise KeyboardInterrupt


if __name__ == "__main__":
    app()
