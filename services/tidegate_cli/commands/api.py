"""`tidegate api`."""

from __future__ import annotations

import typer

from tidegate_cli.service_processes import API, become

app = typer.Typer(add_completion=False)


@app.command("api")
def api() -> None:
    """Run an API process until SIGTERM: the start gate, views of what is stored, and writes.

    There is no authentication of users yet (planned for 0.4): whoever reaches the port may do everything. It listens on
    127.0.0.1 unless TIDEGATE_API__HOST says otherwise.

    Settings: TIDEGATE_API__HOST, TIDEGATE_API__PORT, TIDEGATE_KAFKA__…, TIDEGATE_DYNAMODB__…,
    TIDEGATE_GATE__SECRET_FILE, TIDEGATE_DATA_DIR.
    """
    become(API)
