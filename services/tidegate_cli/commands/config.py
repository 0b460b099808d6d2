"""`tidegate config`: shows the settings that a process would start with in this environment."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from tidegate_cli.exit_codes import Exit
from tidegate_cli.output import Format, OutputOption, note, show_list

app = typer.Typer(
    help="Settings of node, API and command line, and where each value is from.",
    no_args_is_help=True,
    add_completion=False,
)


class Process(StrEnum):
    """Process whose settings are shown."""

    NODE = "node"
    API = "api"
    CLI = "cli"


@app.callback()
def config() -> None:
    """Settings of node, API and command line, and where each value is from."""


@app.command("show")
def show_settings(
    context: typer.Context,
    process: Annotated[Process | None, typer.Argument(help="Only the settings of this process.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only values that are not the default.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show the settings that a process would start with now: value, unit and source of each.

    Sources: `default`, `file` (named by TIDEGATE_CONFIG), `environment`; for the command line also `option` (--api) and `local stack`.
    Reads environment and file as the process does, and connects to nothing. Secrets are masked. Run it where the process runs, for
    example in its pod. JSON and YAML also have the variable that sets each value, and its meaning.

    Exit codes: 0 all settings are valid, 78 a setting is wrong; each wrong one is named on standard error, with what to do.
    """
    from tidegate_cli.setting_views import setting_views
    from tidegate_ports.common.settings_loader import SettingsRefused

    source = context.find_root().get_parameter_source("api")
    api_option = source is not None and source.name == "COMMANDLINE"
    views: list[Any] = []
    wrong = False
    for each in [process] if process else [*Process]:
        try:
            views += setting_views(each, api_option=api_option)
        except SettingsRefused as refusal:
            wrong = True
            note(f"the settings of {each} have to be corrected:")
            for line, fix in zip(refusal.lines, refusal.fixes, strict=True):
                note(f"  {line}; {fix}" if fix else f"  {line}")
    show_list(
        [view for view in views if not changed or view.source != "default"],
        [
            ("process", lambda view: view.process),
            ("setting", lambda view: view.name),
            ("unit", lambda view: view.unit),
            ("source", lambda view: view.source),
            ("value", lambda view: view.value if not isinstance(view.value, bool) else str(view.value).lower()),
        ],
        output,
    )
    if wrong:
        raise typer.Exit(Exit.WRONG_SETTINGS)
