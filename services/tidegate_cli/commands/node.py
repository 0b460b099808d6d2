"""`tidegate node`: alone it runs a node; its subcommands look at nodes and order them about."""

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
    str, typer.Argument(metavar="NODE", help="Name of the node, its id, or the beginning of that.")
]
LOOK_EVERY_S = 1.0


@app.callback()
def node(
    context: typer.Context,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            max=256,
            help="Node processes: one uses one core. Names, and health ports, count up from the one that is set; one that "
            "ends by itself is started again. On Kubernetes take more pods instead.",
        ),
    ] = 1,
) -> None:
    """Run a node until SIGTERM: it owns shards, ingests, fires and launches. With a subcommand: look at nodes, drain one, stop all
    firing.

    Settings: TIDEGATE_KAFKA__…, TIDEGATE_DYNAMODB__…, TIDEGATE_GATE__…, TIDEGATE_DATA_DIR, TIDEGATE_HEALTH__….
    """
    if context.invoked_subcommand is None:
        become(NODE, workers=workers)


@app.command("list")
def list_nodes(output: OutputOption = Format.TABLE) -> None:
    """List the processes that serve, and those of the last day that did not end well.

    Of those: `silent` says nothing and nobody knows why; `replaced` was started again under its name; `gone` has said nothing for 5
    minutes, and others have all of its shards. Who ends well takes its line along.
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
    undo: Annotated[bool, typer.Option("--undo", help="Take the order back: it takes its share again.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also the only node, or the last one that is not drained: nothing fires then."),
    ] = False,
    wait: Annotated[str, typer.Option(help="How long to wait until it holds nothing; 0 does not wait.")] = "60s",
    reason: ReasonOption = None,
    actor: ActorOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Have a node hand over what it holds, and take nothing until --undo or its restart. Its programs run on."""
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
    """Stop all firing of the cluster at once: what waits is cancelled, messages are held back, programs that run go on.

    The answer comes when each shard has stopped; exit code 5: not all have yet, and ask again with the same --id.
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
    """Let all go on from now. What was due meanwhile is not made up for; messages that were held back go out at once."""
    with api_client() as api:
        show(api.start_firing(reason=reason, actor=actor, request_id=request_id), output)


def _drained(api: Client, ordered: NodeView, patience_s: float) -> NodeView:
    """Waits until the process holds nothing. An API that does not answer for a while is asked again. Raises CommandFailed."""
    from tidegate_client import ApiUnavailable, ApiUnreachable, NotFound

    deadline = time.monotonic() + patience_s
    while True:
        try:
            seen = api.node(ordered.id)
        except NotFound:
            # Only who ends well takes its line along.
            note(f"node {ordered.name} has ended meanwhile")
            return ordered.model_copy(update={"state": "drained", "shards": 0, "topic_partitions": []})
        except (ApiUnreachable, ApiUnavailable) as silence:
            state = f"could not be asked for ({silence})"
        else:
            if seen.state == "drained":
                return seen
            state = f"still has {seen.shards} shards"
        if time.monotonic() > deadline:
            raise CommandFailed(f"node {ordered.name} {state}; the order stands", Exit.TIMEOUT)
        time.sleep(LOOK_EVERY_S)
