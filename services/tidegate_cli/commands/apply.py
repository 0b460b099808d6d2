"""`tidegate apply`: applies schedules and event sources from one file or folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import ActorOption, ReasonOption
from tidegate_cli.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command("apply")
def apply(
    file: Annotated[
        Path,
        typer.Option(
            "--file", "-f", help="YAML file (definitions separated by ---), a folder, or - for standard input."
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and show what would change.")] = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    on_update: Annotated[
        str | None,
        typer.Option(help="What happens to pending jobs of a changed schedule; values as in `schedule apply`."),
    ] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Create or replace schedules and event sources.

    Sources are applied first, then each schedule after its upstream schedules. The `kind` of each document is schedule or source.
    An error in one document does not stop the others. If the command is interrupted, it lists the applied and the open documents.
    A second run leaves applied documents unchanged.
    """
    from tidegate_cli.apply_files import ApplyOptions, apply_all

    with api_client() as api:
        apply_all(
            api, file, ApplyOptions(kind=None, dry_run=dry_run, reason=reason, actor=actor, on_update=on_update), output
        )
