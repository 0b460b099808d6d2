"""`tidegate init`."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.processes import INIT, become

app = typer.Typer(add_completion=False)


@app.command("init")
def init(
    check: Annotated[bool, typer.Option("--check", help="Only compare; exit code 1 when something differs.")] = False,
) -> None:
    """Make tables, topics and the cluster's map. Changes nothing that is already there."""
    become(INIT, check=check)
