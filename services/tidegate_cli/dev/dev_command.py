"""The command `tidegate dev`. It only reads options and signals; the stack does the rest."""

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

LOOK_INTERVAL_S = 0.25
"""How soon a crash is seen; one look costs a few system calls."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

app = typer.Typer(help="Run everything on this machine.", add_completion=False)


@app.command(name="dev")
def dev(
    nodes: Annotated[int, typer.Option(min=1, max=NODES_MAX, help="How many nodes to start.")] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of all data.", show_default="~/.local/share/tidegate/dev")
    ] = None,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Keep nothing when it stops.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, for scripts.")] = False,
) -> None:
    """Start a real Kafka broker, DynamoDB Local, a node and the API on this machine, and watch over them.

    Endpoints that your settings name (TIDEGATE_KAFKA__BOOTSTRAP_SERVERS, TIDEGATE_DYNAMODB__ENDPOINT_URL) are used
    instead of local ones; TIDEGATE_API__PORT is the port of the API. A setting that is wrong ends the command with exit code 2. Ctrl-C drains and stops everything; data are kept unless --ephemeral.
    """
    if ephemeral and data_dir is not None:
        raise typer.BadParameter("--ephemeral keeps no data, so it takes no --data-dir")
    folder = None if ephemeral else (data_dir or default_data_dir())
    console = console_for(sys.stdout, sys.stderr, as_json=as_json)
    raise typer.Exit(run_until_stopped(StackOptions(data_dir=folder, nodes=nodes), console))


def run_until_stopped(options: StackOptions, console: StackConsole) -> int:
    """Runs a stack until a signal ends it; returns the exit code: 0 a stop that was asked for, 2 a setting is wrong, 1 else."""
    interrupts = Interrupts()
    stack = Stack(options, console)
    try:
        stack.start()
        while True:
            stack.look()
            time.sleep(LOOK_INTERVAL_S)
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
    """Ctrl-C, SIGTERM and a terminal that was closed: the first one stops the stack, the next one hurries it up."""

    def __init__(self) -> None:
        self._count = 0
        self._raises = True
        for number in STOP_SIGNALS:
            signal.signal(number, self._arrived)

    def only_count(self) -> None:
        """From now on nothing is interrupted: the stop is under way."""
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
