"""`tidegate event`: sends events about data partitions, and custom events."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import json_of
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Format, OutputOption, show

app = typer.Typer(help="Events: announce data partitions and custom facts.", no_args_is_help=True, add_completion=False)


@app.callback()
def events() -> None:
    """Events: announce data partitions and custom facts."""


@app.command()
def send(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the event.")],
    kind: Annotated[str, typer.Option("--type", help="data.partition, or custom.<name>.")] = "data.partition",
    dataset: Annotated[str | None, typer.Option(help="For data.partition: the dataset.")] = None,
    partition: Annotated[str | None, typer.Option(help="For data.partition: name of the data partition.")] = None,
    change: Annotated[
        str | None, typer.Option("--kind", help="For data.partition: created, appended, replaced or deleted.")
    ] = None,
    size: Annotated[int | None, typer.Option("--bytes", min=0, help="For data.partition: size in bytes.")] = None,
    rows: Annotated[int | None, typer.Option(min=0, help="For data.partition: number of rows.")] = None,
    version: Annotated[str | None, typer.Option(help="For data.partition: version of its content.")] = None,
    subject: Annotated[str | None, typer.Option(help="For custom events: the subject.")] = None,
    data: Annotated[str | None, typer.Option(help="For custom events: data as JSON.")] = None,
    event_time: Annotated[str | None, typer.Option(help="When it happened, RFC 3339.")] = None,
    event_id: Annotated[
        str | None, typer.Option("--id", help="Id of the event. A repeat with the same id counts once.")
    ] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Send an event. The command returns when the broker has stored it."""
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
