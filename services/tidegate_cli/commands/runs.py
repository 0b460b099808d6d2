"""`tidegate run`: launched jobs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import (
    ActorOption,
    IdOption,
    NamespaceOption,
    ReasonOption,
    RunArgument,
    RunOrScheduleArgument,
    ScheduleOption,
    chosen,
    recent_moment_of,
    seconds_of,
)
from tidegate_cli.exit_codes import CommandFailed
from tidegate_cli.output import Format, OutputOption, show, show_first, write
from tidegate_telemetry.plain_text import in_plain_text


def ask(question: str) -> None:
    """Returns once somebody has said yes. On standard error: standard output is for data.

    Raises:
        CommandFailed: They have not, or there is nobody to ask.
    """
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    said = sys.stdin.readline() if sys.stdin is not None else ""
    if said.strip().lower() not in {"y", "yes"}:
        raise CommandFailed("nothing was done; --yes does without the question")


if TYPE_CHECKING:
    from tidegate_client.views import RunView

app = typer.Typer(help="Runs: launched jobs.", no_args_is_help=True, add_completion=False)

_WHAT_A_RELEASE_DOES = (
    "Its permits are given back, and a further attempt may start: if the program still runs, beside it."
)


@app.command("list")
def list_runs(
    namespace: NamespaceOption = None,
    schedule: ScheduleOption = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only runs in this state, such as failed; several may be given.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|DURATION",
            help="Only runs that ended then or later, or are open: RFC 3339, or so long ago, such as 12h.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME|DURATION", help="Only runs that ended before then; as --since.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many of the newest.")] = 50,
    output: OutputOption = Format.TABLE,
) -> None:
    """List runs: open ones, then those that ended in the last 30 days, newest end first.

    What failed tonight, on all of the cluster: tidegate run list --state failed --state timed_out --since 12h
    """
    columns = [
        ("run", lambda view: view.id),
        ("schedule", lambda view: f"{view.namespace}/{view.schedule}"),
        ("state", lambda view: view.state),
        ("nominal", lambda view: view.nominal),
        ("key", lambda view: view.correlation),
        ("late", lambda view: None if view.lateness_ms is None else f"{view.lateness_ms / 1000:.1f}s"),
        ("took", _took),
        ("node", lambda view: view.node),
        ("reason", _reason),
    ]
    with api_client() as api:
        found = api.runs(
            **chosen(namespace, schedule),
            state=state,
            limit=limit + 1,
            since=recent_moment_of("--since", since),
            until=recent_moment_of("--until", until),
        )
    show_first(found, limit, columns, output, "--schedule, --state and --since")


@app.command()
def get(run: RunOrScheduleArgument, output: OutputOption = Format.TABLE) -> None:
    """Show a run."""
    from tidegate_cli.run_follow import run_meant

    with api_client() as api:
        view = api.run(run_meant(api, run))
    setback = view.last_setback or {}
    last_lines = view.last_lines or setback.get("last_lines")
    if output is not Format.TABLE or not last_lines:
        show(view, output)
        return
    shown = {"last_lines": None, "last_setback": {**setback, "last_lines": None} if setback else None}
    show(view.model_copy(update=shown), output)
    of_attempt = f"attempt {setback['attempt']}" if view.last_lines is None else "the program"
    write(f"\nlast lines of {of_attempt}'s error output:")
    for line in str(last_lines).splitlines():
        write(f"  {in_plain_text(line)}")


@app.command()
def logs(
    run: RunOrScheduleArgument,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Go on until the run's last attempt has ended; wait for a schedule's first run."
        ),
    ] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="The error stream instead of the output.")] = False,
    attempt: Annotated[int | None, typer.Option(min=1, help="The current one by default.")] = None,
    tail: Annotated[
        int | None, typer.Option(min=0, max=10_000, metavar="N", help="Begin with the Nth line from the end.")
    ] = None,
) -> None:
    """Print what a run's program has written. Under spark-submit the driver's errors stand in the output."""
    from tidegate_cli.run_follow import print_log, run_meant

    stream: Literal["stdout", "stderr"] = "stderr" if stderr else "stdout"
    with api_client() as api:
        print_log(api, run_meant(api, run, wait=follow), stream, attempt, follow=follow, tail=tail)


@app.command()
def cancel(
    run: RunArgument,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """End a run: before the start gate it is closed, after it its processes are stopped."""
    with api_client() as api:
        show(api.cancel_run(run, reason=reason, actor=actor, request_id=request_id), output)


@app.command()
def release(
    run: RunArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether its program is gone.")] = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """End a run that is lost, on your word that its program is gone for good.

    Its permits are given back, and a further attempt may start, as its schedule's `retry` says. If the program still runs, what starts then
    runs beside it. A run in another state is not released: cancel it.
    """
    if not yes:
        ask(f"{_WHAT_A_RELEASE_DOES} Is the program of run {run} gone for good?")
    with api_client() as api:
        show(api.release_run(run, reason=reason, actor=actor, request_id=request_id), output)


@app.command()
def wait(
    run: RunArgument,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Such as 90s or 5m, or seconds; then the exit code is 5.")
    ] = "10m",
    output: OutputOption = Format.TABLE,
) -> None:
    """Wait until a run has ended; also takes the id of a job that has not been launched yet.

    The exit code is 0 when it succeeded, 1 when it ended otherwise, or its job without a run, 5 when it took too long.
    """
    from tidegate_cli.run_follow import await_end, require_success

    patience_s = seconds_of("--timeout", timeout)
    with api_client() as api:
        ended = await_end(api, run, patience_s)
    show(ended, output)
    require_success(ended)


def _reason(view: RunView) -> str | None:
    if view.last_setback is not None and view.reason is None:
        return f"attempt {view.last_setback['attempt']}: {view.last_setback['reason']}"
    if view.signal is not None or view.last_lines is None:
        return f"{view.reason} ({view.signal})" if view.signal is not None else view.reason
    last = view.last_lines.splitlines()[-1]
    return view.reason if last in (view.reason or "") else f"{view.reason}: {last}"


def _took(view: RunView) -> str | None:
    if view.started_at is None or view.ended_at is None:
        return None
    return f"{(view.ended_at - view.started_at).total_seconds():.1f}s"
