"""`tidegate run`: lists, shows, follows, cancels and releases runs."""

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
    """Asks a question on standard error, and returns if the answer is yes.

    Raises:
        CommandFailed: The answer is not yes, or standard input is closed.
    """
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    said = sys.stdin.readline() if sys.stdin is not None else ""
    if said.strip().lower() not in {"y", "yes"}:
        raise CommandFailed("nothing was done; --yes skips the question")


if TYPE_CHECKING:
    from tidegate_client.views import RunView

app = typer.Typer(help="Runs: executions of schedules, with their logs.", no_args_is_help=True, add_completion=False)

_WHAT_A_RELEASE_DOES = (
    "Its permits are returned, and another attempt may start. If the program still runs, both run at the same time."
)


@app.command("list")
def list_runs(
    namespace: NamespaceOption = None,
    schedule: ScheduleOption = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only runs in this state, such as failed; may be repeated.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|DURATION",
            help="Only open runs, and runs that ended at this time or later: RFC 3339, or a duration ago such as 12h.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME|DURATION", help="Only runs that ended before this time; written as --since."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Most runs to show, the newest first.")] = 50,
    output: OutputOption = Format.TABLE,
) -> None:
    """List runs: open runs, then runs that ended in the last 30 days, newest end first.

    Failures of the last 12 hours, in all namespaces: tidegate run list --state failed --state timed_out --since 12h
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
    from tidegate_cli.run_follow import resolve_run

    with api_client() as api:
        view = api.run(resolve_run(api, run))
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
            "--follow", "-f", help="Follow until the run's last attempt has ended; wait for a schedule's first run."
        ),
    ] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Show the error stream instead of the output.")] = False,
    attempt: Annotated[int | None, typer.Option(min=1, help="Number of the attempt. Default: the current one.")] = None,
    tail: Annotated[
        int | None, typer.Option(min=0, max=10_000, metavar="N", help="Begin with the Nth line from the end.")
    ] = None,
) -> None:
    """Print the log of a run's program. Under spark-submit the driver's errors are in the output."""
    from tidegate_cli.run_follow import print_log, resolve_run

    stream: Literal["stdout", "stderr"] = "stderr" if stderr else "stdout"
    with api_client() as api:
        print_log(api, resolve_run(api, run, wait=follow), stream, attempt, follow=follow, tail=tail)


@app.command()
def cancel(
    run: RunArgument,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Cancel a run. Before the start gate it never starts; after the gate its processes are stopped."""
    with api_client() as api:
        show(api.cancel_run(run, reason=reason, actor=actor, request_id=request_id), output)


@app.command()
def release(
    run: RunArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether the program is gone.")] = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """End a lost run. You confirm that its program is gone for good.

    Its permits are returned, and another attempt may start, by the schedule's `retry`. If the program still runs, both attempts run at
    the same time. Only a lost run can be released; cancel a run in another state.
    """
    if not yes:
        ask(f"{_WHAT_A_RELEASE_DOES} Is the program of run {run} gone for good?")
    with api_client() as api:
        show(api.release_run(run, reason=reason, actor=actor, request_id=request_id), output)


@app.command()
def wait(
    run: RunArgument,
    timeout: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Longest wait, such as 90s or 5m, or seconds. After it the exit code is 5."
        ),
    ] = "10m",
    output: OutputOption = Format.TABLE,
) -> None:
    """Wait until a run has ended. The id of a job that has not launched works too.

    Exit codes: 0 the run succeeded; 1 it ended in another state, or the job ended without a run; 5 the timeout passed.
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
