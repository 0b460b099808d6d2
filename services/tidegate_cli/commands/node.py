"""`tidegate node`."""

from __future__ import annotations

import typer

from tidegate_cli.processes import NODE, become

app = typer.Typer(add_completion=False)


@app.command("node")
def node() -> None:
    """Run a node until SIGTERM: it owns shards, ingests, fires and launches.

    Settings: TIDEGATE_KAFKA__…, TIDEGATE_DYNAMODB__…, TIDEGATE_GATE__…, TIDEGATE_DATA_DIR, TIDEGATE_HEALTH__….
    """
    become(NODE)
