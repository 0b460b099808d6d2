"""`tidegate occurrence`: lists the ledger, including skipped and expired occurrences."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import ScheduleOption, chosen, moment_of
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Format, OutputOption, note, show_list

if TYPE_CHECKING:
    from tidegate_client.views import OccurrenceView

app = typer.Typer(no_args_is_help=True, add_completion=False)

DEFAULT_SPAN: Final = timedelta(hours=24)


@app.callback()
def occurrences() -> None:
    """Occurrences that have ended: the outcome of each, and why."""


@app.command("list")
def list_occurrences(
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help="Only of this namespace.")] = None,
    schedule: ScheduleOption = None,
    disposition: Annotated[
        str | None,
        typer.Option(help="Only this outcome: launched, coalesced, skipped, expired or cancelled."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only this nominal time or later, RFC 3339. Default: 24 h ago.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Only nominal times before this, RFC 3339.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most occurrences to show, the newest first.")] = 100,
    output: OutputOption = Format.TABLE,
) -> None:
    """List the outcome of each occurrence, such as launched, skipped or expired, with its reason. Kept 90 days."""
    of = chosen(namespace, schedule)
    of_namespace = of.get("namespace")
    if of_namespace is None:
        raise CommandFailed("name a namespace (--namespace) or a schedule (--schedule NAMESPACE/NAME)", Exit.USAGE)
    columns = [
        ("schedule", lambda view: f"{view.namespace}/{view.schedule}"),
        ("nominal", lambda view: view.nominal),
        ("became", lambda view: f"{view.disposition}/{view.reason}" if view.reason else view.disposition),
        ("run", lambda view: view.state),
        ("decided", lambda view: view.at),
        ("job", lambda view: view.job_id),
        ("why", lambda view: view.detail),
    ]
    begin = moment_of("--since", since) or datetime.now(UTC) - DEFAULT_SPAN
    with api_client() as api:
        found = api.occurrences(of_namespace, of.get("schedule"), since=begin, until=moment_of("--until", until))
        kept = (view for view in found if disposition in (None, view.disposition))
        newest = _newest(kept, limit)
    show_list(newest, columns, output)


def _newest(views: Iterator[OccurrenceView], limit: int) -> list[OccurrenceView]:
    """Returns the newest occurrences by nominal time, newest first. The API orders them by shard and schedule."""
    kept: list[OccurrenceView] = []
    left_out = 0
    for view in views:
        kept.append(view)
        if len(kept) > 2 * limit:
            left_out += len(kept) - limit
            kept = sorted(kept, key=_by_nominal)[:limit]
    newest = sorted(kept, key=_by_nominal)
    left_out += max(0, len(newest) - limit)
    if left_out:
        note(f"{limit} of {limit + left_out} occurrences; --limit shows more of them")
    return newest[:limit]


def _by_nominal(view: OccurrenceView) -> tuple[float, str]:
    return -view.nominal.timestamp(), view.job_id
