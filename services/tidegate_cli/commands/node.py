"""`tidegate node`: runs a node; its subcommands list and drain nodes, and stop and start all firing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import ActorOption, IdOption, ReasonOption, seconds_of
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Format, OutputOption, note, show, show_list
from tidegate_cli.service_processes import NODE, become

if TYPE_CHECKING:
    from tidegate_client import Client
    from tidegate_client.views import NodeView

app = typer.Typer(add_completion=False, invoke_without_command=True)

NodeArgument = Annotated[
    str, typer.Argument(metavar="NODE", help="Name of the node, its id, or the beginning of its id.")
]
POLL_INTERVAL_S = 1.0


@app.callback()
def node(
    context: typer.Context,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            max=256,
            help="Number of node processes; each uses one core. Node names and health ports count up from the "
            "configured ones. A process that ends is started again. On Kubernetes use more pods instead.",
        ),
    ] = 1,
) -> None:
    """Run a node until SIGTERM. It owns shards, reads topics, fires schedules and launches runs.

    With a subcommand: list nodes, drain a node, stop or start all firing.

    Settings: TIDEGATE_KAFKA__…, TIDEGATE_DYNAMODB__…, TIDEGATE_GATE__…, TIDEGATE_DATA_DIR, TIDEGATE_HEALTH__….
    """
    if context.invoked_subcommand is None:
        become(NODE, workers=workers)


@app.command("list")
def list_nodes(output: OutputOption = Format.TABLE) -> None:
    """List nodes that serve, and nodes of the last day that did not end cleanly.

    States of the latter: `silent` reports nothing, for an unknown reason. `replaced` was started again under the same name.
    `gone` has reported nothing for 5 minutes, and other nodes own all its shards.
    """
    columns = [
        ("node", lambda view: view.name),
        ("id", lambda view: view.id),
        ("state", lambda view: view.state),
        ("version", lambda view: view.version),
        ("tzdata", lambda view: view.tzdata),
        ("seen", lambda view: view.seen),
        ("shards", lambda view: view.shards),
        ("topic partitions", lambda view: ", ".join(map(str, view.topic_partitions))),
        ("clock off by ms", lambda view: view.clock_offset_ms),
        ("why not ready", lambda view: "; ".join(view.unready)),
    ]
    with api_client() as api:
        show_list(api.nodes(), columns, output)


@app.command()
def drain(
    node: NodeArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Cancel the drain: the node takes shards again.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also drain the last serving node; then nothing fires."),
    ] = False,
    wait: Annotated[str, typer.Option(help="How long to wait until the node owns nothing; 0 does not wait.")] = "60s",
    reason: ReasonOption = None,
    actor: ActorOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Make a node hand over its shards and take none until --undo or its restart. Its programs keep running."""
    patience_s = seconds_of("--wait", wait)
    with api_client() as api:
        if undo:
            show(api.undrain_node(node), output)
            return
        ordered = api.drain_node(node, force=force, reason=reason, actor=actor)
        show(_drained(api, ordered, patience_s) if patience_s else ordered, output)


@app.command("stop-firing")
def stop_firing(
    reason: ReasonOption = None,
    actor: ActorOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Stop all firing of the cluster at once: waiting jobs are cancelled, messages are held, running programs go on.

    The command returns when every shard has stopped. Exit code 5: some shards have not stopped; run it again with the same --id.
    """
    with api_client() as api:
        show(api.stop_firing(reason=reason, actor=actor, request_id=request_id), output)


@app.command("start-firing")
def start_firing(
    reason: ReasonOption = None,
    actor: ActorOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Start all firing again. There is no catch-up for instants during the stop; held messages are delivered at once."""
    with api_client() as api:
        show(api.start_firing(reason=reason, actor=actor, request_id=request_id), output)


def _drained(api: Client, ordered: NodeView, patience_s: float) -> NodeView:
    """Waits until the node owns nothing. While the API does not answer, it asks again. Raises CommandFailed."""
    from tidegate_client import ApiUnavailable, ApiUnreachable, NotFound

    deadline = time.monotonic() + patience_s
    while True:
        try:
            seen = api.node(ordered.id)
        except NotFound:
            # A node deletes its status row only on a clean shutdown.
            note(f"node {ordered.name} has ended")
            return ordered.model_copy(update={"state": "drained", "shards": 0, "topic_partitions": []})
        except (ApiUnreachable, ApiUnavailable) as silence:
            state = f"has an unknown state ({silence})"
        else:
            if seen.state == "drained":
                return seen
            state = f"still has {seen.shards} shards"
        if time.monotonic() > deadline:
            raise CommandFailed(f"node {ordered.name} {state}; the drain goes on", Exit.TIMEOUT)
        time.sleep(POLL_INTERVAL_S)
