"""`tidegate message`: sends, shows and cancels messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tidegate_cli.api_context import api_client
from tidegate_cli.commands.arguments import ActorOption, IdOption, ReasonOption, each_once, json_of
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Format, OutputOption, show

app = typer.Typer(
    help="Messages: deliver a payload to a topic at a set time.", no_args_is_help=True, add_completion=False
)

Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the message.")]
Key = Annotated[str | None, typer.Option(help="Key of the message. A message with a key can be replaced.")]


@app.command()
def send(
    namespace: Namespace,
    topic: Annotated[str, typer.Option("--topic", "-t", help="Topic to deliver to.")],
    at: Annotated[
        str | None, typer.Option("--at", help="Delivery time, RFC 3339 with offset; a past time delivers at once.")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Delivery time as a duration from now, such as 90s or 4h.")] = None,
    payload: Annotated[str | None, typer.Option(help="Payload as JSON.")] = None,
    text: Annotated[str | None, typer.Option(help="Payload as text.")] = None,
    key: Key = None,
    message_key: Annotated[str | None, typer.Option(help="Key of the delivered record.")] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="Header of the delivered record, NAME=VALUE; may be repeated.")
    ] = None,
    expire_after: Annotated[
        str | None, typer.Option(help="Do not deliver it if it is later than this, such as 1h.")
    ] = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Send a message. The delivered record has the id of the receipt as header `tidegate-id`."""
    if (payload is None) == (text is None):
        raise CommandFailed("give either --payload (JSON) or --text", Exit.USAGE)
    if at is not None and after is not None:
        raise CommandFailed("give either --at or --after", Exit.USAGE)
    fields: dict[str, object] = {
        "namespace": namespace,
        "topic": topic,
        "deliver_at": at,
        "after": after if after is not None or at is not None else "0s",
        "payload_text": text,
        "key": key,
        "message_key": message_key,
        "headers": _headers(header) if header else None,
        "expire_after": expire_after,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    if payload is not None:
        given["payload"] = json_of("--payload", payload)
    with api_client() as api:
        show(
            api.request({"type": "message.send", **given, **({} if request_id is None else {"id": request_id})}), output
        )


@app.command()
def get(
    namespace: Namespace,
    key: Key = None,
    message_id: Annotated[
        str | None, typer.Option("--message-id", help="Id of the request that sent the message.")
    ] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Show the state of a message."""
    _one_name(key, message_id)
    with api_client() as api:
        show(api.message(namespace, key=key, message_id=message_id), output)


@app.command()
def cancel(
    namespace: Namespace,
    key: Key = None,
    message_id: Annotated[
        str | None, typer.Option("--message-id", help="For a message without key: the id of its request or receipt.")
    ] = None,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    request_id: IdOption = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Cancel a message. Exit code 4: it was delivered, or its delivery is under way."""
    _one_name(key, message_id)
    with api_client() as api:
        receipt = api.cancel_message(
            namespace, key=key, message_id=message_id, reason=reason, actor=actor, request_id=request_id
        )
    show(receipt, output)


def _one_name(key: str | None, message_id: str | None) -> None:
    if (key is None) == (message_id is None):
        raise CommandFailed("give either --key or --message-id", Exit.USAGE)


def _headers(texts: Sequence[str]) -> dict[str, str]:
    try:
        return each_once([_header(text) for text in texts])
    except ValueError as error:
        raise CommandFailed(f"--header: {error}", Exit.USAGE) from error


def _header(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise CommandFailed(f"--header {text}: write NAME=VALUE", Exit.USAGE)
    return name, value
