"""`tidegate source`: topics of one's own that are read as events."""

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
    help="Sources: topics of one's own whose records are events.", no_args_is_help=True, add_completion=False
)

SourceArgument = Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The source.")]


@app.command()
def apply(
    file: Annotated[
        Path,
        typer.Option("--file", "-f", help="YAML file (several sources with ---), a folder, or - for standard input."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and say what would happen.")] = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    expected_version: VersionOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Create sources, or replace what they map. A new one begins where its topic ends."""
    from tidegate_cli.apply_files import Wish, apply_all

    wish = Wish(
        kind="source",
        dry_run=dry_run,
        reason=reason,
        actor=actor,
        expected_version=expected_version,
        request_id=request_id,
    )
    with api_client() as api:
        apply_all(api, file, wish, output)


@app.command("list")
def list_sources(namespace: NamespaceOption = None, output: OutputOption = Format.TABLE) -> None:
    """List sources."""
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
    spec: Annotated[bool, typer.Option("--spec", help="Only the definition, as `source apply -f` takes it.")] = False,
    output: OutputOption = Format.YAML,
) -> None:
    """Show a source with its definition."""
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
    """Delete a source. What is produced from now on is no event."""
    with api_client() as api:
        receipt = api.delete_source(
            *split_schedule(source, "source"),
            reason=reason,
            actor=actor,
            expected_version=expected_version,
            request_id=request_id,
        )
    show(receipt, output)
