"""`tidegate simulate`: runs schedules on a virtual clock."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


class SimulationFormat(StrEnum):
    """Output format of a simulation."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


@app.command("simulate")
def simulate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="YAML file (schedules separated by ---), a folder, or - for standard input."
        ),
    ],
    begin: Annotated[str, typer.Option("--from", help="Begin, RFC 3339; the schedules are applied just before.")],
    end: Annotated[str, typer.Option("--to", help="End, RFC 3339; this instant is not simulated.")],
    events: Annotated[
        Path | None,
        typer.Option(help="File of JSON lines: events and requests, each with `at`, optionally `every` and `until`."),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            help="File of JSON lines: `schedule`, `nominal`, `attempt`, `duration`, `outcome`, `outputs`, `reports`."
        ),
    ] = None,
    duration: Annotated[
        str,
        typer.Option(
            help="Duration of runs without a line in --runs: 20m, 5m..20m (random for each run), or none (never ends)."
        ),
    ] = "1m",
    outage: Annotated[
        list[str] | None, typer.Option(metavar="FROM/TO", help="A span in which no node serves; may be repeated.")
    ] = None,
    load: Annotated[str, typer.Option(help="Load that constraints read, 0 to 1; none: the load is unknown.")] = "0",
    minimum_period: Annotated[
        str, typer.Option(help="Shortest allowed period; TIDEGATE_MINIMUM_PERIOD_MS of your nodes.")
    ] = "10s",
    output: Annotated[
        SimulationFormat, typer.Option("--output", "-o", help="How to show the result; `jsonl` ends with the hash.")
    ] = SimulationFormat.TABLE,
) -> None:
    """Run schedules on a virtual clock with the production code, and list the outcome of each occurrence.

    No cluster is needed, and no program is started. The hash at the end is the same on every machine.
    """
    from tidegate_cli.simulation_output import Wanted, show_simulation

    wanted = Wanted(
        file=file,
        begin=begin,
        end=end,
        events=events,
        runs=runs,
        duration=duration,
        outages=tuple(outage or ()),
        load=load,
        minimum_period=minimum_period,
    )
    show_simulation(wanted, output)
