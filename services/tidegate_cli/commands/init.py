"""`tidegate init`: creates tables, topics and the partition map."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.service_processes import INIT, become

app = typer.Typer(add_completion=False)


@app.command("init")
def init(
    check: Annotated[bool, typer.Option("--check", help="Only compare; exit code 1 if something differs.")] = False,
) -> None:
    """Create tables, topics and the partition map. Existing ones are not changed.

    With --check nothing is created. Each line of the output names one difference from the needs of this release: in tables, topics,
    the partition map, or the version of rows (item SCHEMA). The line also says what to do: `tidegate init`, `tidegate migrate`, a newer
    release, or a change by hand.

    Exit codes: 0 nothing differs; 1 something differs; 75 Kafka or DynamoDB does not answer; 78 wrong settings, for example topics
    that nodes with other tables read.
    """
    become(INIT, check=check)
