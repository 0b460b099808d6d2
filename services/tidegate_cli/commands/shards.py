"""`tidegate shard`: shows the owner, the progress and the stuck parts of each shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.output import Format, OutputOption, note_cut, show, show_list

if TYPE_CHECKING:
    from tidegate_client.views import ShardView

app = typer.Typer(help="Shards: owners, progress, stuck parts.", no_args_is_help=True, add_completion=False)


@app.command("list")
def list_shards(
    node: Annotated[str | None, typer.Option("--node", help="Only shards of this node, by id or name.")] = None,
    broken: Annotated[bool, typer.Option("--broken", help="Only shards with a stuck part.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """List shards with owner, progress, and the stuck parts that other nodes see."""
    columns = [
        ("shard", lambda view: view.shard),
        ("node", lambda view: view.node or view.owner),
        ("epoch", lambda view: view.epoch),
        ("served", lambda view: view.served),
        ("fired through", lambda view: view.fired_through),
        ("requests behind", lambda view: view.requests_behind),
        ("events behind", lambda view: view.events_behind),
        ("stuck", _stuck),
    ]
    with api_client() as api:
        found = api.shards(node)
    show_list([view for view in found if view.broken or not broken], columns, output)


@app.command("show")
def show_shard(
    shard: Annotated[int, typer.Argument(min=0, max=9_999, help="Number of the shard.")],
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Most limits of its schedules to show.")] = 100,
    output: OutputOption = Format.YAML,
) -> None:
    """Show a shard with its backlog, open jobs and runs, and limits in use."""
    with api_client() as api:
        view = api.shard(shard, limit)
    show(view, output)
    note_cut("limits in use", len(view.limits), view.limits_left_out)


def _stuck(view: ShardView) -> str | None:
    said = [each.promise for each in view.broken] + (["stopped"] if view.stopped else [])
    return ", ".join(said) or None
