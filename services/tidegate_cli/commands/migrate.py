"""`tidegate migrate`: moves the store from one version of rows to the next, while nodes serve."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.service_processes import MIGRATE, become

app = typer.Typer(add_completion=False)


@app.command("migrate")
def migrate(
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Also make nodes write the newer version; refused while an older release runs."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    writes_per_s: Annotated[
        float,
        typer.Option(
            "--writes-per-s",
            min=0.1,
            max=10_000,
            help="Most store calls per second; a call writes one row or reads 100.",
        ),
    ] = 50.0,
) -> None:
    """Bring the store to the version of this release.

    Without --finish it moves rows into a form that both releases read. Run it at any time while both serve.
    Use --finish when only nodes of this release are left. Nodes then write rows that older releases cannot read, and there is no
    way back. If the command is killed, run it again: it continues. It takes the settings of a node (TIDEGATE_DYNAMODB__..., TIDEGATE_KAFKA__...).

    Exit codes: 0 done; 1 a process of an older release runs (each is listed, the version was not raised); 75 run it again;
    78 wrong settings, or the store is newer than this release.
    """
    become(MIGRATE, finish=finish, dry_run=dry_run, writes_per_s=writes_per_s)
