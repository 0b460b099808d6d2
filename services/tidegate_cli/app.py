"""All commands: noun, then verb. Only names and help lines are loaded here; a command's module is imported when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from tidegate_cli.api_context import set_api_url


@dataclass(frozen=True, slots=True)
class Subcommand:
    """Module whose `app` is a Typer app, and its line in the list of commands."""

    module: str
    help: str


class LazySubcommand(TyperCommand):
    """Placeholder of a subcommand in lists. A call imports and runs the real one."""

    def __init__(self, name: str, subcommand: Subcommand) -> None:
        super().__init__(name, help=subcommand.help, callback=None)
        self._module = subcommand.module

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        real = typer.main.get_command(import_module(self._module).app)
        return real.make_context(info_name, args, parent=parent, **extra)


class LazyGroup(TyperGroup):
    """A group whose subcommands come from `SUBCOMMANDS`, in that order."""

    SUBCOMMANDS: Mapping[str, Subcommand] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.SUBCOMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = self.SUBCOMMANDS.get(cmd_name)
        return None if found is None else LazySubcommand(cmd_name, found)


COMMANDS = "tidegate_cli.commands"


class Commands(LazyGroup):
    """The subcommands of `tidegate`."""

    SUBCOMMANDS = {  # noqa: RUF012 - a table, never changed
        "dev": Subcommand(
            "tidegate_cli.dev.dev_command", "Start Kafka, DynamoDB Local, a node and the API on this machine."
        ),
        "apply": Subcommand(f"{COMMANDS}.apply", "Apply schedules and sources, from one file or folder."),
        "schedule": Subcommand(f"{COMMANDS}.schedules", "Apply, list, suspend, resume, trigger and delete schedules."),
        "source": Subcommand(f"{COMMANDS}.sources", "Event sources: your topics whose records become events."),
        "job": Subcommand(f"{COMMANDS}.jobs", "Open jobs: list, show, cancel; what each waits for."),
        "run": Subcommand(f"{COMMANDS}.runs", "Runs: list, logs, cancel, release, wait."),
        "occurrence": Subcommand(
            f"{COMMANDS}.occurrences", "Outcomes of occurrences: launched, skipped, expired, and why."
        ),
        "why": Subcommand(f"{COMMANDS}.why", "Explain why a schedule, a job or a run does not run, or did not run."),
        "event": Subcommand(f"{COMMANDS}.events", "Send events: data partitions and custom events."),
        "message": Subcommand(f"{COMMANDS}.messages", "Deliver a payload to a topic at a set time; cancel it."),
        "dlq": Subcommand(f"{COMMANDS}.dlq", "Dead letters: list, show, replay, drop."),
        "simulate": Subcommand(f"{COMMANDS}.simulate", "Run schedules on a virtual clock and explain each outcome."),
        "audit": Subcommand(
            f"{COMMANDS}.audit", "Compare expected occurrences with stored ones; exit code 1 if they differ."
        ),
        "version": Subcommand(f"{COMMANDS}.version", "Show the version."),
        "node": Subcommand(f"{COMMANDS}.node", "Run a node; list, drain; stop and start all firing."),
        "shard": Subcommand(f"{COMMANDS}.shards", "Shards: owners, progress, stuck parts."),
        "limits": Subcommand(f"{COMMANDS}.limits", "Limits in use: permits, waiting jobs, stuck permits."),
        "api": Subcommand(f"{COMMANDS}.api", "Run an API process."),
        "init": Subcommand(f"{COMMANDS}.init", "Create tables, topics and the partition map; --check only compares."),
        "config": Subcommand(f"{COMMANDS}.config", "Show the settings of each process, with the source of each value."),
        "partitions": Subcommand(
            f"{COMMANDS}.partitions", "Grow the number of topic partitions that nodes share, while they serve."
        ),
        "migrate": Subcommand(
            f"{COMMANDS}.migrate", "Bring the store to the version of this release, while nodes serve."
        ),
    }


app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def options(
    api: Annotated[
        str | None,
        typer.Option(
            "--api",
            metavar="URL",
            envvar="TIDEGATE_API_URL",
            help="Address of the API. Default: the `tidegate dev` that was started from this folder; otherwise the only running "
            "`tidegate dev`; otherwise http://127.0.0.1:8080.",
        ),
    ] = None,
) -> None:
    """Tidegate: schedules, data triggers and delayed messages on Kafka, DynamoDB and PySpark.

    Exit codes: 0 ok; 1 failure; 2 wrong input, found by the command, the API or a node; 3 not found; 4 conflict; 5 timeout;
    75 the API, Kafka or DynamoDB does not answer now, so run it again. Commands that read a node's settings (node, api, init, migrate,
    partitions, audit, config) also use 78: wrong settings. The --help of a command lists its further codes.
    """
    set_api_url(api)
