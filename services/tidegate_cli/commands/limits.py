"""`tidegate limits`: shows which runs hold permits, which jobs wait, and which permits are stuck."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import NamespaceOption
from tidegate_cli.output import Format, OutputOption, note_cut, show, show_list

SHOWN_MAX = 1_000
"""Most entries that the API returns at once."""

app = typer.Typer(
    help="Limits in use: permits, waiting jobs, stuck permits.", no_args_is_help=True, add_completion=False
)


@app.command("list")
def list_limits(
    namespace: NamespaceOption = None,
    stuck: Annotated[
        bool, typer.Option("--stuck", help="Only limits with a stuck permit: its run does not exist.")
    ] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """List limits with permits in use or waiting jobs. Limits with stuck permits come first, then the longest queues."""
    columns = [
        ("limit", lambda view: view.id),
        ("kind", lambda view: view.kind),
        ("in use", lambda view: view.in_use),
        ("of", lambda view: view.most),
        ("held since", lambda view: view.held_since),
        ("waiting", lambda view: view.waiting),
        ("since", lambda view: view.waiting_since),
        ("next change", lambda view: view.next_change),
        ("stuck", lambda view: ", ".join(view.stuck)),
        ("schedules", lambda view: ", ".join(view.schedules)),
    ]
    with api_client() as api:
        found = api.limits(namespace)
    show_list([view for view in found if view.stuck or not stuck], columns, output)


@app.command("show")
def show_limit(
    limit: Annotated[
        str, typer.Argument(metavar="LIMIT", help="Id of the limit, as the list shows it: NAMESPACE/SCOPE/NAME.")
    ],
    most: Annotated[
        int,
        typer.Option("--limit", min=1, max=SHOWN_MAX, help="Most runs with permits, and most waiting jobs, to show."),
    ] = 100,
    output: OutputOption = Format.YAML,
) -> None:
    """Show a limit with the runs that hold its permits, longest first, and the waiting jobs in queue order."""
    with api_client() as api:
        view = api.limit(limit, most)
    show(view, output)
    note_cut("runs that hold it", len(view.holders), view.holders_left_out)
    note_cut("jobs that wait", len(view.waiters), view.waiters_left_out)
