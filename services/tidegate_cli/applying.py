"""`schedule apply` and `source apply`: every document of the files is tried, each problem is shown with its line, and the worst one decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tidegate_cli.documents import ScheduleDocument, read_documents
from tidegate_cli.exits import CommandFailed, Exit, exit_of
from tidegate_cli.output import Format, note, show_list
from tidegate_client.errors import (
    AnswerPending,
    ApiFailed,
    ApiUnavailable,
    ApiUnreachable,
    InvalidRequest,
    TidegateError,
)
from tidegate_client.views import DryRun, ReceiptView

if TYPE_CHECKING:
    from tidegate_client import Client


_PLACE = re.compile(r"\[(\d{1,9})\]\.?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wanted of each schedule, or source.

    Attributes:
        kind: Which of them the files hold.
        expected_version: Of the one schedule that the files hold.
        together: Whether nothing is applied unless all can be.
        create_only: Whether one that exists stands in the way of all.
        request_id: Of the one request that this is.
    """

    kind: Literal["schedule", "source"] = "schedule"
    dry_run: bool = False
    reason: str | None = None
    actor: str | None = None
    expected_version: int | None = None
    on_update: str | None = None
    together: bool = False
    create_only: bool = False
    request_id: str | None = None


def apply_all(api: Client, source: Path, wish: Wish, output: Format) -> None:
    """Applies all schedules, or sources, of a file or folder.

    Raises:
        CommandFailed: Some could not be applied; what was wrong stands on stderr.
        TidegateError: The API cannot be used at all; nothing further was tried, and what was applied is shown.
    """
    documents = read_documents(source, wish.kind)
    if wish.expected_version is not None and len(documents) > 1:
        raise CommandFailed(f"--expected-version: {source} has {len(documents)} {wish.kind}s; apply one", Exit.USAGE)
    if wish.request_id is not None and (len(documents) > 1 or wish.together or wish.dry_run):
        raise CommandFailed("--id names one request: apply one definition, and by itself", Exit.USAGE)
    if wish.together and not wish.dry_run:
        _apply_together(api, documents, wish, output)
        return
    done: list[ReceiptView | DryRun] = []
    codes: list[Exit] = []
    try:
        for document in documents:
            try:
                done.append(_applied(api, document, wish))
            except (ApiUnreachable, ApiUnavailable, ApiFailed):
                raise
            except TidegateError as error:
                _report(document, wish.kind, error)
                codes.append(exit_of(error))
    finally:
        if done:
            _show(done, wish.kind, output)
    if codes:
        raise CommandFailed(f"{len(codes)} of {len(documents)} {wish.kind}s were not applied", max(codes))


def _apply_together(api: Client, documents: list[ScheduleDocument], wish: Wish, output: Format) -> None:
    """Applies all of them, or none of them as far as anybody could know beforehand."""
    try:
        receipts = receipts_of(
            lambda: api.apply_schedules(
                [document.spec for document in documents],
                create_only=wish.create_only,
                on_update=wish.on_update,
                reason=wish.reason,
                actor=wish.actor,
            )
        )
    except InvalidRequest as error:
        _report_places(documents, wish.kind, error)
        raise CommandFailed(f"none of {len(documents)} {wish.kind}s was applied", exit_of(error)) from error
    _show([*receipts], wish.kind, output)
    fail_where_refused(receipts, "applied")


def receipts_of(ask: Callable[[], Sequence[ReceiptView]]) -> Sequence[ReceiptView]:
    """Returns the receipts of several requests, those that say `pending` as well: what became of the others is known all the same."""
    try:
        return ask()
    except AnswerPending as some:
        return some.receipts


def fail_where_refused(receipts: Sequence[ReceiptView], done: str) -> None:
    """Says which of several were refused after all, or are not answered, and why. Raises CommandFailed, if there are any."""
    pending = [receipt for receipt in receipts if receipt.status == "pending"]
    refused = [receipt for receipt in receipts if receipt.status not in {"accepted", "unchanged", "pending"}]
    for receipt in refused:
        problems = "; ".join(map(str, receipt.errors)) or "somebody else was quicker"
        note(f"{receipt.namespace}/{receipt.name}: {receipt.status}: {problems}")
    for receipt in pending:
        told = f"request {receipt.request_id} was taken, and will be applied once a node serves its shard"
        note(f"{receipt.namespace}/{receipt.name}: pending: {'; '.join(map(str, receipt.errors)) or told}")
    counts = [f"{len(refused)} of {len(receipts)} schedules were not {done}"] if refused else []
    counts += [f"{len(pending)} of {len(receipts)} requests are not answered yet"] if pending else []
    if refused:
        code = Exit.USAGE if any(receipt.status == "rejected" for receipt in refused) else Exit.CONFLICT
        raise CommandFailed("; ".join(counts), code)
    if pending:
        raise CommandFailed("; ".join(counts), Exit.TIMEOUT)


def _report_places(documents: list[ScheduleDocument], kind: str, error: InvalidRequest) -> None:
    """Shows each problem of a list, `[2].trigger.type`, where its document is written."""
    for problem in error.problems:
        place = _PLACE.match(problem.field)
        if place is None or int(place[1]) >= len(documents):
            note(str(problem))
            continue
        document = documents[int(place[1])]
        own = problem.model_copy(update={"field": problem.field[place.end() :]})
        note(f"{document.place_of(own.field)}: {kind} {document.title}: {own}")
    if not error.problems:
        note(str(error))


def _applied(api: Client, document: ScheduleDocument, wish: Wish) -> ReceiptView | DryRun:
    if wish.kind == "source":
        return api.apply_source(
            document.spec,
            expected_version=wish.expected_version,
            reason=wish.reason,
            actor=wish.actor,
            request_id=wish.request_id,
        )
    if wish.dry_run:
        expected = 0 if wish.create_only else wish.expected_version
        return api.try_schedule(document.spec, expected_version=expected, on_update=wish.on_update)
    receipt = api.apply_schedule(
        document.spec,
        expected_version=wish.expected_version,
        on_update=wish.on_update,
        reason=wish.reason,
        actor=wish.actor,
        request_id=wish.request_id,
    )
    if receipt.status != "unchanged":
        return receipt
    # What changed nothing has no instants in its receipt; the schedule has.
    view = api.schedule(str(document.spec["namespace"]), str(document.spec["name"]))
    return receipt.model_copy(update={"next": view.next})


def _report(document: ScheduleDocument, kind: str, error: TidegateError) -> None:
    if isinstance(error, InvalidRequest) and error.problems:
        for problem in error.problems:
            note(f"{document.place_of(problem.field)}: {kind} {document.title}: {problem}")
    else:
        note(f"{document.place_of('')}: {error}")


def _show(done: list[ReceiptView | DryRun], kind: str, output: Format) -> None:
    for view in done:
        for warning in view.warnings:
            note(f"{view.namespace}/{view.name}: warning: {warning}")
    columns = [
        ("namespace", lambda view: view.namespace),
        ("name", lambda view: view.name),
        ("result", lambda view: view.status if isinstance(view, ReceiptView) else f"would {view.would}"),
        ("version", lambda view: view.version),
        ("next", lambda view: view.next[0] if view.next else None),
        ("changed", lambda view: view.changed if isinstance(view, DryRun) else None),
        ("reading", lambda view: view.reading if isinstance(view, DryRun) else None),
    ]
    dry_run = any(isinstance(view, DryRun) for view in done)
    shown = 4 if kind == "source" else len(columns) if dry_run else len(columns) - 2
    show_list(done, columns[:shown], output)
