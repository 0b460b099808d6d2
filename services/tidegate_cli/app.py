"""All commands: noun, then verb. Nothing but their names and help is loaded here."""

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
    """A module whose `app` is a Typer app, and the line of the help."""

    module: str
    help: str


class LazySubcommand(TyperCommand):
    """Stands in for a subcommand in lists; becomes the real one when it is called."""

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
        "source": Subcommand(f"{COMMANDS}.sources", "Topics of one's own that are read as events."),
        "job": Subcommand(f"{COMMANDS}.jobs", "Occurrences in the making, and what each waits for."),
        "run": Subcommand(f"{COMMANDS}.runs", "Launched jobs: list, logs, cancel, wait."),
        "occurrence": Subcommand(
            f"{COMMANDS}.occurrences", "What became of occurrences: launched, skipped, expired, and why."
        ),
        "why": Subcommand(f"{COMMANDS}.why", "Say why a schedule, a job or a run does not run, or did not then."),
        "event": Subcommand(f"{COMMANDS}.events", "Announce data partitions and events of your own."),
        "message": Subcommand(f"{COMMANDS}.messages", "Deliver a payload to a topic at a time; take it back."),
        "dlq": Subcommand(f"{COMMANDS}.dlq", "Records that could not be used: list, show, replay, drop."),
        "simulate": Subcommand(
            f"{COMMANDS}.simulate", "Run schedules on a virtual clock: what they would do, and why."
        ),
        "audit": Subcommand(
            f"{COMMANDS}.audit", "Compare what should have happened with what did; exit 1 when it differs."
        ),
        "version": Subcommand(f"{COMMANDS}.version", "Show the version."),
        "node": Subcommand(f"{COMMANDS}.node", "Run a node; list, drain; stop and start all firing."),
        "shard": Subcommand(f"{COMMANDS}.shards", "Shards: owners, how far they are, what stands still."),
        "limits": Subcommand(f"{COMMANDS}.limits", "Limits in use: holders, who waits, what is stuck."),
        "api": Subcommand(f"{COMMANDS}.api", "Run an API process: start gate, views, writes."),
        "init": Subcommand(f"{COMMANDS}.init", "Make tables, topics and the map; --check only compares."),
        "config": Subcommand(f"{COMMANDS}.config", "Show the settings of each process, and where each value is from."),
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
            help="Address of the API. Default: that of the `tidegate dev` that was started from this folder, else of the only "
            "one that runs, else http://127.0.0.1:8080.",
        ),
    ] = None,
) -> None:
    """Tidegate: schedules, data triggers and delayed messages on Kafka, DynamoDB and PySpark.

    Exit codes: 0 ok, 1 failure, 2 the input is wrong (whether the command, the API or a node says so), 3 not found, 4 conflict, 5 timeout,
    75 the API, or a brick behind it, does not answer now: run it again. Commands that take a node's settings (node, api, init, migrate,
    partitions, audit, config) also have 78 (wrong settings); what else one has its own --help says.
    """
    set_api_url(api)
