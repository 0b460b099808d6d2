"""`tidegate limits`: who holds permits, who waits, and what is stuck."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import NamespaceOption
from tidegate_cli.output import Format, OutputOption, show, show_list, tell_cut

SHOWN_MAX = 1_000
"""As many as the API shows at once."""

app = typer.Typer(help="Limits in use: list, show.", no_args_is_help=True, add_completion=False)


@app.command("list")
def list_limits(
    namespace: NamespaceOption = None,
    stuck: Annotated[bool, typer.Option("--stuck", help="Only those with a permit whose run is not there.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """List limits that somebody holds or waits for: those with stuck permits first, then by how many wait."""
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
    limit: Annotated[str, typer.Argument(metavar="LIMIT", help="As the list shows it: NAMESPACE/SCOPE/NAME.")],
    most: Annotated[
        int, typer.Option("--limit", min=1, max=SHOWN_MAX, help="Most runs that hold, and most jobs that wait.")
    ] = 100,
    output: OutputOption = Format.YAML,
) -> None:
    """Show a limit with the runs that hold its permits, longest first, and the jobs that wait, in their order."""
    with api_client() as api:
        view = api.limit(limit, most)
    show(view, output)
    tell_cut("runs that hold it", len(view.holders), view.holders_left_out)
    tell_cut("jobs that wait", len(view.waiters), view.waiters_left_out)
