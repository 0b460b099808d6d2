"""`tidegate source`: applies, shows and deletes event sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import (
    ActorOption,
    IdOption,
    NamespaceOption,
    ReasonOption,
    VersionOption,
    split_schedule,
)
from tidegate_cli.output import Format, OutputOption, dump, show, show_list

app = typer.Typer(
    help="Event sources: your topics whose records become events.", no_args_is_help=True, add_completion=False
)

SourceArgument = Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The event source.")]


@app.command()
def apply(
    file: Annotated[
        Path,
        typer.Option("--file", "-f", help="YAML file (sources separated by ---), a folder, or - for standard input."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and show what would change.")] = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    expected_version: VersionOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Create or replace event sources. A new source starts at the end of its topic."""
    from tidegate_cli.apply_files import ApplyOptions, apply_all

    options = ApplyOptions(
        kind="source",
        dry_run=dry_run,
        reason=reason,
        actor=actor,
        expected_version=expected_version,
        request_id=request_id,
    )
    with api_client() as api:
        apply_all(api, file, options, output)


@app.command("list")
def list_sources(namespace: NamespaceOption = None, output: OutputOption = Format.TABLE) -> None:
    """List event sources."""
    columns = [
        ("namespace", lambda view: view.namespace),
        ("name", lambda view: view.name),
        ("topic", lambda view: view.topic),
        ("status", lambda view: view.status),
        ("version", lambda view: view.version),
    ]
    with api_client() as api:
        found = api.sources(namespace)
    show_list(found, columns, output)


@app.command()
def get(
    source: SourceArgument,
    spec: Annotated[
        bool, typer.Option("--spec", help="Only the definition, in the form that `source apply -f` reads.")
    ] = False,
    output: OutputOption = Format.YAML,
) -> None:
    """Show an event source with its definition."""
    with api_client() as api:
        view = api.source(*split_schedule(source, "source"))
    if spec:
        dump(view.spec, output)
    else:
        show(view, output)


@app.command()
def delete(
    source: SourceArgument,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    expected_version: VersionOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Delete an event source. Later records of its topic are no events."""
    with api_client() as api:
        receipt = api.delete_source(
            *split_schedule(source, "source"),
            reason=reason,
            actor=actor,
            expected_version=expected_version,
            request_id=request_id,
        )
    show(receipt, output)
