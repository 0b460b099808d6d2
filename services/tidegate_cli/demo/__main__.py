"""`python -m tidegate_cli.demo`, the program of `make demo`."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tidegate_cli.dev.console import console_for
from tidegate_cli.dev.dev_command import Interrupts
from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.dev.stack import Stack
from tidegate_cli.dev.stack_events import Failed
from tidegate_client.errors import TidegateError
from tidegate_pipelines.calendar_days import DAYS_MAX
from tidegate_pipelines.input_data import PACKAGE, SourceMissing

NEEDED = ("pyspark", "pyarrow", PACKAGE)
"""Packages of the extra [demo]."""

PIPED_WIDTH = 140
"""Width of the tables if the output is no terminal."""

EXIT_INTERRUPTED = 130


def demo(
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="Number of days of data, from January 1, 2013.")] = 3,
    output: Annotated[Path, typer.Option(help="Folder for the Parquet files of the demo.")] = Path("build/demo"),
) -> None:
    """Run a real pipeline on two nodes, kill one node half-way, and check that nothing was lost or doubled."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(f"tidegate: the demo needs {', '.join(missing)}; pip install 'tidegate[demo]'\n")
        raise typer.Exit(1)
    raise typer.Exit(run_demo(days, output.absolute()))


def run_demo(days: int, output: Path) -> int:
    """Runs the demo. Returns the exit code: 0 without differences, 1 after a difference or failure, 130 if interrupted."""
    # Imported only here, because it needs the packages of the extra.
    from tidegate_cli.demo.demo_run import Folders, Story, demo_options

    folders = Folders(output)
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    components = console_for(sys.stdout, sys.stderr, as_json=False)
    interrupts = Interrupts()
    stack = Stack(demo_options(), components)
    begun = time.monotonic()
    code = 1
    try:
        code = 0 if Story(stack, console, folders, days).tell(stack.start()) else 1
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except (StackFailed, TidegateError, SourceMissing) as failure:
        components.show(Failed(problem=str(failure), remedy=""))
    finally:
        interrupts.only_count()
        components.close()
        try:
            if code != 0:
                folders.keep_logs(stack.data_dir)
                console.print(f"Logs of nodes, API and runs: {folders.logs}", soft_wrap=True)
        finally:
            stack.stop(hurry=interrupts.hurry)
        console.print(f"The demo took {time.monotonic() - begun:.0f} s.")
    return code


if __name__ == "__main__":
    typer.run(demo)
