"""`tidegate partitions`: grows the number of ownership topic partitions."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.service_processes import GROW, become

app = typer.Typer(
    help="Ownership topic partitions: the upper bound of nodes that share the work.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def partitions() -> None:
    """Topic partitions of the requests topic. At most this number of nodes can share the work."""


@app.command("grow")
def grow(
    number: Annotated[
        int, typer.Argument(metavar="N", min=1, help="New number of topic partitions, at most the number of shards.")
    ],
) -> None:
    """Grow the requests topic to N topic partitions. There is no way back to fewer.

    Run it whether nodes serve or not, once all nodes run this release. The command adds the topic partitions and waits
    until the group has assigned them to nodes (at most a minute). Then it writes the next version of the partition map.
    Nodes hand over shards within some seconds. Shards are late by this time, but nothing is lost or doubled. If the
    command is killed, run it again: it continues. If another tool has added the topic partitions, nodes follow within a
    minute without this command. It takes the settings of a node (TIDEGATE_DYNAMODB__..., TIDEGATE_KAFKA__...).

    Exit codes: 0 done, or there were N already; 2 N is impossible (fewer than now, or more than shards); 75 run it again;
    78 wrong settings.
    """
    become(GROW, number=number)
