"""`tidegate partitions`: how many topic partitions the shards are spread over."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate_cli.service_processes import GROW, become

app = typer.Typer(help="Ownership topic partitions: grow.", no_args_is_help=True, add_completion=False)


@app.callback()
def partitions() -> None:
    """The topic partitions of the requests topic: as many nodes as there are can share the work."""


@app.command("grow")
def grow(
    number: Annotated[int, typer.Argument(metavar="N", min=1, help="How many there are to be: at most the shards.")],
) -> None:
    """Have N topic partitions of the requests topic, while nodes serve or while none runs. There is no way back to fewer.

    Adds them to the topic, waits until the group has given them to nodes (a minute at most), then writes the next version of the cluster's map.
    Nodes hand over to one another within some seconds: shards are late by that, and nothing is lost or doubled. Killed, it is run again and
    goes on. Topic partitions that another tool has added are followed by the nodes themselves, within a minute. Takes the settings of
    a node (TIDEGATE_DYNAMODB__..., TIDEGATE_KAFKA__...). Grow when all nodes run this release.

    Exit codes: 0 done, or it was so already, 2 there cannot be N (fewer than there are, more than shards), 75 run it again, 78 settings.
    """
    become(GROW, number=number)
