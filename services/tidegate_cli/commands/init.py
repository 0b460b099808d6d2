"""`tidegate init`."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.service_processes import INIT, become

app = typer.Typer(add_completion=False)


@app.command("init")
def init(
    check: Annotated[bool, typer.Option("--check", help="Only compare; exit code 1 when something differs.")] = False,
) -> None:
    """Make tables, topics and the cluster's map. Changes nothing that is already there.

    With --check nothing is made. Each line is one thing that is not as this release needs it: of tables, topics, the map, and the version
    of rows (item SCHEMA), with what to do about it: `tidegate init`, `tidegate migrate`, a newer release, or a hand.

    Exit codes: 0 all is as it should be, 1 something differs, 75 a brick does not answer, 78 settings, such as topics that nodes of other
    tables read.
    """
    become(INIT, check=check)
