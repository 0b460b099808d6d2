"""`tidegate shard`: who has which shard, how far it is, and what of it stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.output import Format, OutputOption, show, show_list, tell_cut

if TYPE_CHECKING:
    from tidegate_client.views import ShardView

app = typer.Typer(help="Shards: list, show.", no_args_is_help=True, add_completion=False)


@app.command("list")
def list_shards(
    node: Annotated[str | None, typer.Option("--node", help="Only of this node, by id or name.")] = None,
    broken: Annotated[bool, typer.Option("--broken", help="Only those of which something stands still.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """List shards with their owners, how far they are, and what stands still as the other nodes see it."""
    columns = [
        ("shard", lambda view: view.shard),
        ("node", lambda view: view.node or view.owner),
        ("epoch", lambda view: view.epoch),
        ("served", lambda view: view.served),
        ("fired through", lambda view: view.fired_through),
        ("requests behind", lambda view: view.requests_behind),
        ("events behind", lambda view: view.events_behind),
        ("stands still", _standing),
    ]
    with api_client() as api:
        found = api.shards(node)
    show_list([view for view in found if view.broken or not broken], columns, output)


@app.command("show")
def show_shard(
    shard: Annotated[int, typer.Argument(min=0, max=9_999, help="Number of the shard.")],
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Most limits of its schedules.")] = 100,
    output: OutputOption = Format.YAML,
) -> None:
    """Show a shard with its backlog, open jobs and runs, and limits in use."""
    with api_client() as api:
        view = api.shard(shard, limit)
    show(view, output)
    tell_cut("limits in use", len(view.limits), view.limits_left_out)


def _standing(view: ShardView) -> str | None:
    said = [each.promise for each in view.broken] + (["stopped"] if view.stopped else [])
    return ", ".join(said) or None
