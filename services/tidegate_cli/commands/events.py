"""`tidegate event`: facts about data, and facts of the users' own."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import json_of
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Format, OutputOption, show

app = typer.Typer(
    help="Events: announce data partitions and facts of your own.", no_args_is_help=True, add_completion=False
)


@app.callback()
def events() -> None:
    """Events: announce data partitions and facts of your own."""


@app.command()
def send(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Whose event it is.")],
    kind: Annotated[str, typer.Option("--type", help="data.partition, or custom.<name>.")] = "data.partition",
    dataset: Annotated[str | None, typer.Option(help="Of data.partition: the dataset.")] = None,
    partition: Annotated[str | None, typer.Option(help="Of data.partition: the data partition's name.")] = None,
    change: Annotated[
        str | None, typer.Option("--kind", help="Of data.partition: created, appended, replaced or deleted.")
    ] = None,
    size: Annotated[int | None, typer.Option("--bytes", min=0, help="Of data.partition: its size.")] = None,
    rows: Annotated[int | None, typer.Option(min=0, help="Of data.partition: its rows.")] = None,
    version: Annotated[str | None, typer.Option(help="Of data.partition: tells two contents apart.")] = None,
    subject: Annotated[str | None, typer.Option(help="Of custom events: what it is about.")] = None,
    data: Annotated[str | None, typer.Option(help="Of custom events: JSON.")] = None,
    event_time: Annotated[str | None, typer.Option(help="RFC 3339; when it happened.")] = None,
    event_id: Annotated[str | None, typer.Option("--id", help="A repeat under it counts once.")] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Put an event on its topic; returns when the broker has it."""
    if kind == "data.partition" and (dataset is None or partition is None):
        raise CommandFailed("data.partition needs --dataset and --partition", Exit.USAGE)
    fields: dict[str, object] = {
        "id": event_id,
        "type": kind,
        "namespace": namespace,
        "dataset": dataset,
        "partition": partition,
        "kind": change,
        "bytes": size,
        "rows": rows,
        "version": version,
        "subject": subject,
        "event_time": event_time,
    }
    if data is not None:
        fields["data"] = json_of("--data", data)
    with api_client() as api:
        show(api.send_event(**fields), output)
