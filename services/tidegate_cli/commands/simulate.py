"""`tidegate simulate`: schedules on a virtual clock."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


class SimulationFormat(StrEnum):
    """How a simulation is shown."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


@app.command("simulate")
def simulate(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="YAML file (several schedules with ---), a folder, or -: standard input."),
    ],
    begin: Annotated[str, typer.Option("--from", help="RFC 3339; the schedules are applied just before.")],
    end: Annotated[str, typer.Option("--to", help="RFC 3339; the first instant that is not simulated any more.")],
    events: Annotated[
        Path | None,
        typer.Option(help="JSON lines: events and requests, each with `at`, perhaps `every` and `until`."),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="JSON lines: `schedule`, `nominal`, `attempt`, `duration`, `outcome`, `outputs`, `reports`."),
    ] = None,
    duration: Annotated[
        str, typer.Option(help="Of runs that no line is about: 20m; 5m..20m, drawn for each run; none never ends.")
    ] = "1m",
    outage: Annotated[
        list[str] | None, typer.Option(metavar="FROM/TO", help="A span in which nobody serves; may be given again.")
    ] = None,
    load: Annotated[
        str, typer.Option(help="What every load that a constraint asks for is, 0 to 1; none: nobody can tell.")
    ] = "0",
    minimum_period: Annotated[str, typer.Option(help="As TIDEGATE_MINIMUM_PERIOD_MS of the cluster's nodes.")] = "10s",
    output: Annotated[
        SimulationFormat, typer.Option("--output", "-o", help="How to show the result; `jsonl` ends with the hash.")
    ] = SimulationFormat.TABLE,
) -> None:
    """Run schedules on a virtual clock, with the decisions of production, and list what became of each occurrence.

    No cluster is needed, and nothing is started. The hash at the end is equal on every machine.
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
