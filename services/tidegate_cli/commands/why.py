"""`tidegate why`: shows the blockers of a job, or the outcome of an instant. The code that decides also explains."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import split_schedule
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Format, OutputOption, dump, note, show_list, write

if TYPE_CHECKING:
    from tidegate_client.views import WhyView

app = typer.Typer(add_completion=False)

_ID = re.compile(r"\d{4}-[a-z2-7]{26}", re.ASCII)
"""Id of a job, and of the run that it becomes."""


@app.command("why")
def why(
    what: Annotated[
        str, typer.Argument(metavar="NAMESPACE/NAME|JOB|RUN", help="A schedule, or the id of a job or a run.")
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="For a schedule: explain this instant. RFC 3339, or a local time in the trigger's zone such as "
            "2026-03-29T02:30; a clock change may skip the local time.",
        ),
    ] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Explain why a schedule, a job or a run does not run, or the outcome of an instant.

    Each reason has a code (docs/reasons.md), and the time at which it can change if that is known.
    """
    if "/" not in what and at is not None:
        raise CommandFailed("--at is for a schedule: write it as NAMESPACE/NAME", Exit.USAGE)
    if "/" not in what and not _ID.fullmatch(what):
        raise CommandFailed(
            f"{what}: is neither NAMESPACE/NAME nor the id of a job or run; give one of them", Exit.USAGE
        )
    with api_client() as api:
        view = api.why_schedule(*split_schedule(what), at=at) if "/" in what else api.why_job(what)
    _show(view, output)


def _show(view: WhyView, output: Format) -> None:
    if output in (Format.JSON, Format.YAML):
        dump(view.model_dump(mode="json"), output)
        return
    if output is Format.NAME:
        for reason in view.reasons:
            write(reason.code)
        return
    if view.local is not None:
        note(f"{view.about} at {view.local}")
    columns = [
        ("code", lambda reason: reason.code),
        ("until", lambda reason: reason.until),
        ("why", lambda reason: reason.text),
    ]
    show_list(view.reasons, columns, output)
