"""`tidegate audit`: reads the tables with a node's settings, while nodes run or not."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.commands.arguments import NamespaceOption
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Format, OutputOption
from tidegate_cli.service_processes import AUDIT, become

app = typer.Typer(add_completion=False)


@app.command("audit")
def audit(
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="RFC 3339. Default: a day before --to.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="RFC 3339, in the past. Default: a minute ago."),
    ] = None,
    namespace: NamespaceOption = None,
    messages: Annotated[
        bool, typer.Option(help="Messages as well: reads all of their rows, payloads included.")
    ] = True,
    sink: Annotated[
        bool, typer.Option("--sink", help="Read the topics of messages as well, and name what is not on them.")
    ] = False,
    reads_per_s: Annotated[
        float,
        typer.Option("--reads-per-s", min=0.1, max=10_000, help="Reads of the store a second, of 500 rows at most."),
    ] = 50.0,
    output: OutputOption = Format.TABLE,
) -> None:
    """Compare what should have happened with what did: schedules, their runs, and messages.

    What was due is recomputed from the versions of the definitions, not from what firing has written. Reads only; nodes may run
    meanwhile. Takes the settings of a node (TIDEGATE_DYNAMODB__..., TIDEGATE_KAFKA__...).

    Exit codes: 0 nothing is missing, 1 something differs (each is listed), 6 what is needed to tell is gone, 75 a shard has not come to
    --to yet, or a brick does not answer (run it again), 78 settings. What cannot be recomputed is named: "not audited: N because ...".
    """
    if output not in (Format.TABLE, Format.JSON):
        raise CommandFailed(f"-o {output}: an audit is shown as table or json", Exit.USAGE)
    if sink and not messages:
        raise CommandFailed("--sink is about messages: leave --no-messages out", Exit.USAGE)
    become(
        AUDIT,
        begin=begin,
        end=end,
        namespace=namespace,
        messages=messages,
        sink=sink,
        as_json=output is Format.JSON,
        reads_per_s=reads_per_s,
    )
