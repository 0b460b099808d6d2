"""`tidegate schedule`: applies, shows, suspends, resumes, triggers and deletes schedules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.bulk import delete_together, resume_span
from tidegate_cli.commands.arguments import (
    ActorOption,
    IdOption,
    NamespaceOption,
    ReasonOption,
    ScheduleArgument,
    SuspendedFromOption,
    SuspendedToOption,
    VersionOption,
    moment_of,
    split_schedule,
)
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Column, Format, OutputOption, dump, show, show_list
from tidegate_cli.yaml_documents import read_schedules

if TYPE_CHECKING:
    from tidegate_client.views import ScheduleView

SUSPENSION: list[Column] = [
    ("since", lambda view: view.suspension and view.suspension.since),
    ("mode", lambda view: view.mode),
    ("actor", lambda view: view.suspension and view.suspension.actor),
    ("reason", lambda view: view.suspension and view.suspension.reason),
]
"""Columns about the suspension of a schedule."""

app = typer.Typer(help="Schedules: a target, a trigger and constraints.", no_args_is_help=True, add_completion=False)


@app.command()
def apply(
    file: Annotated[
        Path,
        typer.Option("--file", "-f", help="YAML file (schedules separated by ---), a folder, or - for standard input."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and show what would change.")] = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    expected_version: VersionOption = None,
    on_update: Annotated[
        str | None,
        typer.Option(
            help="What happens to pending jobs: keep_due, restart, carry, finish_old or finish_admitted. Default: `on_update` of the definition."
        ),
    ] = None,
    all_or_none: Annotated[
        bool, typer.Option("--all-or-none", help="Apply all schedules or none; at most 100.")
    ] = False,
    create_only: Annotated[
        bool, typer.Option("--create-only", help="As --all-or-none, and refuse if one of the schedules exists.")
    ] = False,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Create or replace schedules. A relative `file` of a program is resolved from the folder of the YAML file."""
    from tidegate_cli.apply_files import ApplyOptions, apply_all

    together = all_or_none or create_only
    if together and expected_version is not None:
        raise CommandFailed(
            "--expected-version is for one schedule; leave out --all-or-none and --create-only", Exit.USAGE
        )
    options = ApplyOptions(
        dry_run=dry_run,
        reason=reason,
        actor=actor,
        expected_version=expected_version,
        on_update=on_update,
        together=together,
        create_only=create_only,
        request_id=request_id,
    )
    with api_client() as api:
        apply_all(api, file, options, output)


@app.command("list")
def list_schedules(
    namespace: NamespaceOption = None,
    suspended_from: SuspendedFromOption = None,
    suspended_to: SuspendedToOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """List schedules. With a span: only schedules that a request suspended in the span and that are still suspended."""
    begin, end = moment_of("--suspended-from", suspended_from), moment_of("--suspended-to", suspended_to)
    columns: list[Column] = [
        ("namespace", lambda view: view.namespace),
        ("name", lambda view: view.name),
        ("status", lambda view: view.status),
        ("version", lambda view: view.version),
        ("trigger", _trigger),
        ("next", lambda view: view.next[0] if view.next else None),
    ]
    if begin is not None or end is not None:
        columns = [*columns[:2], *SUSPENSION]
    with api_client() as api:
        listed = api.schedules(namespace, suspended_from=begin, suspended_to=end)
        found = sorted(listed, key=lambda view: (view.namespace, view.name))
    show_list(found, columns, output)


@app.command()
def get(
    schedule: ScheduleArgument,
    spec: Annotated[
        bool,
        typer.Option("--spec", help="Only the definition, in the form that `schedule apply -f` reads; YAML or JSON."),
    ] = False,
    output: OutputOption = Format.YAML,
) -> None:
    """Show a schedule with its definition and its next nominal times."""
    if spec and output not in (Format.YAML, Format.JSON):
        raise CommandFailed("--spec prints YAML or JSON", Exit.USAGE)
    with api_client() as api:
        view = api.schedule(*split_schedule(schedule))
    if spec:
        dump(view.spec, output)
    else:
        show(view, output)


@app.command("next")
def next_instants(
    schedule: Annotated[str | None, typer.Argument(metavar="[NAMESPACE/NAME]", help="The schedule.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="Preview the schedules of a YAML file or folder instead; - is standard input."
        ),
    ] = None,
    after: Annotated[str | None, typer.Option("--from", help="Begin of the preview, RFC 3339. Default: now.")] = None,
    count: Annotated[int, typer.Option("--count", "-c", min=1, max=1_000, help="Number of occurrences to show.")] = 10,
    minimum_period: Annotated[
        str, typer.Option(help="With --file: shortest allowed period; TIDEGATE_MINIMUM_PERIOD_MS of your nodes.")
    ] = "10s",
    output: OutputOption = Format.TABLE,
) -> None:
    """Show the next instants of a time trigger, and the effect of clock changes on them."""
    from tidegate_cli.schedule_preview import show_next, show_next_of

    if (schedule is None) == (file is None):
        raise CommandFailed("give either NAMESPACE/NAME or --file", Exit.USAGE)
    if file is not None:
        show_next(read_schedules(file), after, count, minimum_period, output)
    else:
        with api_client() as api:
            view = api.schedule(*split_schedule(schedule or ""))
        show_next_of(view, after, count, output)


@app.command()
def delete(
    schedules: Annotated[
        list[str], typer.Argument(metavar="NAMESPACE/NAME ...", help="Schedules to delete, 1 to 100.")
    ],
    reason: ReasonOption = None,
    actor: ActorOption = None,
    expected_version: VersionOption = None,
    cancel_running: Annotated[
        bool, typer.Option("--cancel-running", help="Also cancel runs past the start gate.")
    ] = False,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Delete schedules. Waiting jobs are cancelled; runs past the start gate are listed and go on.

    If one of several schedules does not exist, none is deleted.
    """
    names = [split_schedule(schedule) for schedule in schedules]
    with api_client() as api:
        if len(names) > 1:
            if expected_version is not None or request_id is not None:
                raise CommandFailed("--expected-version and --id are for one schedule", Exit.USAGE)
            delete_together(api, names, output, reason=reason, actor=actor, cancel_running=cancel_running)
            return
        receipt = api.delete_schedule(
            *names[0],
            reason=reason,
            actor=actor,
            expected_version=expected_version,
            cancel_running=cancel_running,
            request_id=request_id,
        )
    show(receipt, output)


@app.command()
def suspend(
    schedule: ScheduleArgument,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    mode: Annotated[
        str | None, typer.Option(help="drop, drain, hold or freeze. Default: `suspend_mode` of the schedule.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Time of an automatic resume, such as 2026-11-20T22:00:00Z.")
    ] = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Suspend a schedule. The mode decides whether waiting jobs are cancelled; running programs go on."""
    with api_client() as api:
        show(
            api.suspend_schedule(
                *split_schedule(schedule), reason=reason, actor=actor, mode=mode, until=until, request_id=request_id
            ),
            output,
        )


@app.command()
def resume(
    schedule: Annotated[str | None, typer.Argument(metavar="[NAMESPACE/NAME]", help="The schedule.")] = None,
    suspended_from: SuspendedFromOption = None,
    suspended_to: SuspendedToOption = None,
    namespace: NamespaceOption = None,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    backlog: Annotated[
        str | None, typer.Option(help="Which jobs of the suspended span go on: all, last, coalesce or none.")
    ] = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Resume a suspended schedule from now. Instants of the suspended span are no misfires.

    With a span instead of a schedule: resume all schedules that a request suspended in the span. `schedule list` with the same span
    shows them. Schedules that were created suspended, or suspended at another time, stay suspended.
    """
    if (schedule is None) == (suspended_from is None and suspended_to is None):
        raise CommandFailed("give either NAMESPACE/NAME or --suspended-from and --suspended-to", Exit.USAGE)
    with api_client() as api:
        if schedule is None:
            begin, end = moment_of("--suspended-from", suspended_from), moment_of("--suspended-to", suspended_to)
            if begin is None or end is None or request_id is not None:
                raise CommandFailed("a span needs --suspended-from and --suspended-to, and takes no --id", Exit.USAGE)
            resume_span(api, (begin, end), namespace, output, reason=reason, actor=actor, backlog=backlog)
            return
        if namespace is not None:
            raise CommandFailed("--namespace is for a span; leave it out for one schedule", Exit.USAGE)
        receipt = api.resume_schedule(
            *split_schedule(schedule), reason=reason, actor=actor, backlog=backlog, request_id=request_id
        )
    show(receipt, output)


@app.command()
def trigger(
    schedule: ScheduleArgument,
    force_overlap: Annotated[
        bool, typer.Option("--force-overlap", help="Run it next to open runs, as far as constraints allow.")
    ] = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    expected_version: VersionOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Trigger a schedule now. Constraints, limits and the overlap policy apply. The receipt has the id of the job and its run."""
    with api_client() as api:
        receipt = api.trigger_schedule(
            *split_schedule(schedule),
            force_overlap=force_overlap or None,
            reason=reason,
            actor=actor,
            expected_version=expected_version,
            request_id=request_id,
        )
    show(receipt, output)


def _trigger(view: ScheduleView) -> str:
    trigger = view.spec.get("trigger", {})
    kind = str(trigger.get("type", ""))
    detail = next(
        (trigger[name] for name in ("expression", "period", "instant", "dataset", "schedule") if name in trigger), ""
    )
    return f"{kind} {detail}".strip()
