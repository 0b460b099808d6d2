"""`tidegate job`: lists, shows and cancels open jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import (
    ActorOption,
    IdOption,
    JobArgument,
    NamespaceOption,
    ReasonOption,
    ScheduleOption,
    chosen,
    recent_moment_of,
)
from tidegate_cli.output import Format, OutputOption, show, show_first, show_list, write

if TYPE_CHECKING:
    from tidegate_client.views import JobView

app = typer.Typer(
    help="Jobs: occurrences before their run, and what each waits for.", no_args_is_help=True, add_completion=False
)


@app.command("list")
def list_jobs(
    namespace: NamespaceOption = None,
    schedule: ScheduleOption = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only jobs in this state, such as pending_trigger; may be repeated.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME|DURATION", help="Only this nominal time or later: RFC 3339, or a duration ago."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME|DURATION", help="Only nominal times before this; written as --since.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Most jobs to show.")] = 100,
    output: OutputOption = Format.TABLE,
) -> None:
    """List open jobs: first jobs that gather evidence, then jobs that wait or launch.

    Each part is ordered by shard and id, not by time. --since and --until select by nominal time.
    """
    columns = [
        ("job", lambda view: view.id),
        ("schedule", lambda view: f"{view.namespace}/{view.schedule}"),
        ("state", lambda view: view.state),
        ("nominal", lambda view: view.nominal),
        ("key", lambda view: view.correlation),
        ("waits for", _waits_for),
        ("as of", lambda view: None if view.unmet is None else view.unmet.at),
        ("next check", lambda view: None if view.unmet is None else view.unmet.until),
    ]
    with api_client() as api:
        found = api.jobs(
            **chosen(namespace, schedule),
            state=state,
            since=recent_moment_of("--since", since),
            until=recent_moment_of("--until", until),
        )
        show_first(found, limit, columns, output, "--schedule, --state and --since")


@app.command()
def get(job: JobArgument, output: OutputOption = Format.TABLE) -> None:
    """Show an open job with its blockers as of the last check. `tidegate why JOB` checks again."""
    with api_client() as api:
        view = api.job(job)
    if output is not Format.TABLE or view.unmet is None:
        show(view, output)
        return
    show(view.model_copy(update={"unmet": None}), output)
    write("" if view.unmet.at is None else f"\nas of {view.unmet.at:%Y-%m-%dT%H:%M:%SZ}:")
    columns = [
        ("held back by", lambda verdict: verdict.code),
        ("next check", lambda verdict: verdict.until),
        ("why", lambda verdict: verdict.reason),
    ]
    show_list(view.unmet.verdicts, columns, output)


@app.command()
def cancel(
    job: JobArgument,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Cancel a waiting job. If the job has become a run, cancel the run instead."""
    with api_client() as api:
        show(api.cancel_job(job, reason=reason, actor=actor, request_id=request_id), output)


LAUNCHING = {"submitting": "the launcher", "submitted": "the start gate"}
"""State of the run, and what the admitted job waits for in this state."""


def _waits_for(view: JobView) -> str | None:
    if view.run_state is not None:
        return LAUNCHING.get(view.run_state, f"nothing, its run is {view.run_state}")
    return view.missing or (None if view.unmet is None else view.unmet.reason)
