"""`tidegate version`."""

from __future__ import annotations

from importlib.metadata import version

import typer

app = typer.Typer(add_completion=False)


@app.command("version")
def show_version() -> None:
    """Show the version."""
    typer.echo(f"tidegate {version('tidegate')}")
