"""Commands for several schedules: `schedule resume` with a span, `schedule delete` with a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate_cli.exit_codes import CommandFailed, exit_of
from tidegate_cli.interrupts import sigterm_as_exit
from tidegate_cli.output import Column, Format, note, show_list

if TYPE_CHECKING:
    from tidegate_client import Client
    from tidegate_client.views import ReceiptView


def resume_span(
    api: Client, span: tuple[datetime, datetime], namespace: str | None, output: Format, **fields: Any
) -> None:
    """Resumes the schedules that were suspended in a span, begin included, end excluded. It shows the answers even after an error.

    Raises:
        CommandFailed: Some stay suspended; the reasons are on stderr.
        TidegateError: The API cannot be used. The command can be repeated.
    """
    from tidegate_client.errors import TidegateError

    done: list[ReceiptView] = []
    refusals: list[TidegateError] = []
    try:
        with sigterm_as_exit():
            for view, outcome in api.resume_suspended(*span, namespace, **fields):
                if isinstance(outcome, TidegateError):
                    note(f"{view.namespace}/{view.name}: {outcome}")
                    refusals.append(outcome)
                else:
                    done.append(outcome)
    except BaseException as end:
        if done or refusals or not isinstance(end, TidegateError):
            note(
                f"ended early: {len(done)} schedules were resumed. Run the same command again to resume the others "
                "(`schedule list` with the same span shows them)"
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
        raise CommandFailed(f"{len(refusals)} schedules stay suspended", max(map(exit_of, refusals)))


def delete_together(
    api: Client,
    names: Sequence[tuple[str, str]],
    output: Format,
    *,
    reason: str | None,
    actor: str | None,
    cancel_running: bool,
) -> None:
    """Deletes all schedules, or none if one does not exist. It shows the receipts.

    Raises:
        CommandFailed: Another request changed some schedules first, or some have no answer so far.
        TidegateError: One does not exist and none was deleted; or the API cannot be used.
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
