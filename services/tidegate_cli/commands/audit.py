"""`tidegate audit`: compares expected occurrences with stored ones. It only reads, whether nodes run or not."""

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
        str | None,
        typer.Option("--from", metavar="TIME", help="Begin of the span, RFC 3339. Default: a day before --to."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="End of the span, RFC 3339, in the past. Default: a minute ago."),
    ] = None,
    namespace: NamespaceOption = None,
    messages: Annotated[bool, typer.Option(help="Audit messages too: reads all their rows, with payloads.")] = True,
    sink: Annotated[
        bool, typer.Option("--sink", help="Also read the topics of messages, and list messages that are missing there.")
    ] = False,
    reads_per_s: Annotated[
        float,
        typer.Option(
            "--reads-per-s", min=0.1, max=10_000, help="Most store reads per second; a read has at most 500 rows."
        ),
    ] = 50.0,
    output: OutputOption = Format.TABLE,
) -> None:
    """Compare expected occurrences, runs and messages with stored ones.

    Expected occurrences are recomputed from the versions of the definitions, not from rows that firing has written. The command only
    reads, and nodes may run at the same time. It takes the settings of a node (TIDEGATE_DYNAMODB__..., TIDEGATE_KAFKA__...).
    Occurrences that cannot be recomputed are listed: "not audited: N because ...".

    Exit codes: 0 nothing is missing; 1 something differs (each difference is listed); 6 the rows for a verdict are gone;
    75 a shard has not reached --to, or Kafka or DynamoDB does not answer (run it again); 78 wrong settings.
    """
    if output not in (Format.TABLE, Format.JSON):
        raise CommandFailed(f"-o {output}: is not possible for an audit; use table or json", Exit.USAGE)
    if sink and not messages:
        raise CommandFailed("--sink needs messages: leave --no-messages out", Exit.USAGE)
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
