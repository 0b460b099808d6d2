"""`tidegate version`: shows the version."""

from __future__ import annotations

from importlib.metadata import version

import typer

from tidegate_cli.output import write

app = typer.Typer(add_completion=False)


@app.command("version")
def show_version() -> None:
    """Show the version."""
    write(f"tidegate {version('tidegate')}")
