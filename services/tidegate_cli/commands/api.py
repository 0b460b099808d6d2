"""`tidegate api`: starts an API process."""

from __future__ import annotations

import typer

from tidegate_cli.service_processes import API, become

app = typer.Typer(add_completion=False)


@app.command("api")
def api() -> None:
    """Run an API process until SIGTERM. It answers the start gate, shows stored state, and takes requests.

    Users are not authenticated (planned for 0.4): every client that reaches the port may do everything. The API listens on
    127.0.0.1 unless TIDEGATE_API__HOST names another address.

    Settings: TIDEGATE_API__HOST, TIDEGATE_API__PORT, TIDEGATE_KAFKA__…, TIDEGATE_DYNAMODB__…,
    TIDEGATE_GATE__SECRET_FILE, TIDEGATE_DATA_DIR.
    """
    become(API)
