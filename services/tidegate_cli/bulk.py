"""Commands about several schedules: `schedule resume` of a span, `schedule delete` of a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate_cli.exit_codes import CommandFailed, exit_of
from tidegate_cli.interrupts import told_of_sigterm
from tidegate_cli.output import Column, Format, note, show_list

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
        with told_of_sigterm():
            for view, outcome in api.resume_suspended(*span, namespace, **fields):
                if isinstance(outcome, TidegateError):
                    note(f"{view.namespace}/{view.name}: {outcome}")
                    refusals.append(outcome)
                else:
                    done.append(outcome)
    except BaseException as end:
        if done or refusals or not isinstance(end, TidegateError):
            note(
                f"ended early: {len(done)} were resumed. Run the same command again: it goes on with those that are still "
                "suspended (`schedule list` with the same span shows them)"
            )
        raise
    finally:
        columns: list[Column] = [
            ("namespace", lambda receipt: receipt.namespace),
            ("name", lambda receipt: receipt.name),
            ("result", lambda receipt: receipt.status),
            ("backlog", lambda receipt: receipt.backlog),
            ("next", lambda receipt: receipt.next[0] if receipt.next else None),
        ]
        show_list(done, columns, output)
    if refusals:
        raise CommandFailed(f"{len(refusals)} stay suspended", max(map(exit_of, refusals)))


def delete_together(
    api: Client,
    names: Sequence[tuple[str, str]],
    output: Format,
    *,
    reason: str | None,
    actor: str | None,
    cancel_running: bool,
) -> None:
    """Deletes all of them, or none when one does not exist.

    Raises:
        CommandFailed: Somebody else has changed some of them meanwhile, or some are not answered yet; what became of the others is shown.
        TidegateError: One does not exist, and none was deleted; or the API cannot be used.
    """
    from tidegate_cli.apply_files import fail_where_refused, receipts_of

    receipts = receipts_of(
        lambda: api.delete_schedules(names, reason=reason, actor=actor, cancel_running=cancel_running)
    )
    columns: list[Column] = [
        ("namespace", lambda receipt: receipt.namespace),
        ("name", lambda receipt: receipt.name),
        ("result", lambda receipt: receipt.status),
        ("running", lambda receipt: receipt.running),
    ]
    show_list(receipts, columns, output)
    fail_where_refused(receipts, "deleted")
