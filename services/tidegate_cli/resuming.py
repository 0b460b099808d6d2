"""`schedule resume` of a span: all that somebody suspended then goes on, one request after the other."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate_cli.exits import CommandFailed, exit_of
from tidegate_cli.output import Format, note, show_list

if TYPE_CHECKING:
    from tidegate_client import Client
    from tidegate_client.views import ReceiptView


def resume_span(
    api: Client, span: tuple[datetime, datetime], namespace: str | None, output: Format, **fields: Any
) -> None:
    """Resumes what was suspended in a span, begin included and end not.

    Raises:
        CommandFailed: Some stay suspended; why stands on stderr.
        TidegateError: The API cannot be used at all; what was resumed is shown. The command can be repeated.
    """
    from tidegate_client.errors import TidegateError

    done: list[ReceiptView] = []
    refusals: list[TidegateError] = []
    try:
        for view, outcome in api.resume_suspended(*span, namespace, **fields):
            if isinstance(outcome, TidegateError):
                note(f"{view.namespace}/{view.name}: {outcome}")
                refusals.append(outcome)
            else:
                done.append(outcome)
    finally:
        columns = [
            ("namespace", lambda receipt: receipt.namespace),
            ("name", lambda receipt: receipt.name),
            ("result", lambda receipt: receipt.status),
            ("backlog", lambda receipt: receipt.backlog),
            ("next", lambda receipt: receipt.next[0] if receipt.next else None),
        ]
        show_list(done, columns, output)
    if refusals:
        raise CommandFailed(f"{len(refusals)} stay suspended", max(map(exit_of, refusals)))
