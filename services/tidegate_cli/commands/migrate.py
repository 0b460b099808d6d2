"""`tidegate migrate`: from one version of rows to the next, while nodes serve."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.service_processes import MIGRATE, become

app = typer.Typer(add_completion=False)


@app.command("migrate")
def migrate(
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Also have nodes write the newer version; refused while an older release runs."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    writes_per_s: Annotated[
        float,
        typer.Option(
            "--writes-per-s", min=0.1, max=10_000, help="Calls of the store a second: a row, or 100 rows read."
        ),
    ] = 50.0,
) -> None:
    """Bring the store to the version of this release.

    Without --finish it moves rows, in a way that both releases read: run it at any time while both serve. With --finish, when only nodes
    of this release are left, they write what older ones could not read, and there is no way back. Killed, it is run again and goes on.
    Takes the settings of a node (TIDEGATE_DYNAMODB__..., TIDEGATE_KAFKA__...).

    Exit codes: 0 done, 1 a process of an older release is in the way (each is listed, nothing was raised), 75 run it again, 78 settings,
    or the store is newer than this release.
    """
    become(MIGRATE, finish=finish, dry_run=dry_run, writes_per_s=writes_per_s)
