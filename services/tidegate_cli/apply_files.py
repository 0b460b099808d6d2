"""`apply`, `schedule apply` and `source apply`: every document of the files is tried, each problem is shown with its line, and the worst one decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tidegate_cli.apply_order import in_order_of_dependence
from tidegate_cli.exit_codes import CommandFailed, Exit, exit_of
from tidegate_cli.input_files import name_of
from tidegate_cli.interrupts import told_of_sigterm
from tidegate_cli.output import Column, Format, note, show_list
from tidegate_cli.source_dry_run import try_source
from tidegate_cli.unfinished_apply import Outcome, Progress, tell_unfinished
from tidegate_cli.yaml_documents import ScheduleDocument, read_documents
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
        kind: Which of them the files hold; None is all kinds.
        expected_version: Of the one schedule that the files hold.
        together: Whether nothing is applied unless all can be.
        create_only: Whether one that exists stands in the way of all.
        request_id: Of the one request that this is.
    """

    kind: Literal["schedule", "source"] | None = "schedule"
    dry_run: bool = False
    reason: str | None = None
    actor: str | None = None
    expected_version: int | None = None
    on_update: str | None = None
    together: bool = False
    create_only: bool = False
    request_id: str | None = None

    @property
    def plural(self) -> str:
        return f"{self.kind or 'definition'}s"


def apply_all(api: Client, source: Path, wish: Wish, output: Format) -> None:
    """Applies all schedules, or sources, of a file or folder, in order of dependence.

    Raises:
        CommandFailed: Some could not be applied; what was wrong stands on stderr.
        TidegateError: The API cannot be used at all; nothing further was tried. What was applied is shown, and what is open is told.
    """
    documents = read_documents(source, wish.kind)
    if wish.expected_version is not None and len(documents) > 1:
        count = f"{name_of(source)} has {len(documents)} {wish.plural}"
        raise CommandFailed(f"--expected-version: {count}; apply one", Exit.USAGE)
    if wish.request_id is not None and (len(documents) > 1 or wish.together or wish.dry_run):
        raise CommandFailed("--id names one request: apply one definition, and by itself", Exit.USAGE)
    documents = in_order_of_dependence(documents)
    if wish.together and not wish.dry_run:
        _apply_together(api, documents, wish, output)
    else:
        _apply_one_by_one(api, documents, wish, output)


def _apply_one_by_one(api: Client, documents: Sequence[ScheduleDocument], wish: Wish, output: Format) -> None:
    progress = Progress(documents, wish.plural, dry_run=wish.dry_run)
    codes: list[Exit] = []
    try:
        with told_of_sigterm():
            for document in documents:
                try:
                    progress.done.append(Outcome(kind=document.kind, answer=_applied(api, document, wish)))
                except (ApiUnreachable, ApiUnavailable, ApiFailed):
                    raise
                except TidegateError as error:
                    _report(document, error)
                    codes.append(exit_of(error))
                    if isinstance(error, AnswerPending):
                        progress.pending += 1
                    else:
                        progress.refused += 1
    except BaseException as end:
        _show(progress.done, wish, output)
        tell_unfinished(progress, end)
        raise
    _show(progress.done, wish, output)
    if codes:
        counts = [f"{progress.refused} of {len(documents)} {wish.plural} were not applied"] if progress.refused else []
        counts += [f"{progress.pending} of {len(documents)} are not answered yet"] if progress.pending else []
        raise CommandFailed("; ".join(counts), max(codes))


def _apply_together(api: Client, documents: Sequence[ScheduleDocument], wish: Wish, output: Format) -> None:
    """Applies all of them, or none of them as far as anybody could know beforehand."""
    try:
        with told_of_sigterm():
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
        _report_places(documents, error)
        raise CommandFailed(f"none of {len(documents)} {wish.plural} was applied", exit_of(error)) from error
    except (ApiUnreachable, ApiUnavailable, ApiFailed, KeyboardInterrupt, SystemExit) as end:
        tell_unfinished(Progress(documents, wish.plural, sent=len(documents)), end)
        raise
    pairs = zip(documents, receipts, strict=True)
    _show([Outcome(kind=document.kind, answer=receipt) for document, receipt in pairs], wish, output)
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


def _report_places(documents: Sequence[ScheduleDocument], error: InvalidRequest) -> None:
    """Shows each problem of a list, `[2].trigger.type`, where its document is written."""
    for problem in error.problems:
        place = _PLACE.match(problem.field)
        if place is None or int(place[1]) >= len(documents):
            note(str(problem))
            continue
        document = documents[int(place[1])]
        own = problem.model_copy(update={"field": problem.field[place.end() :]})
        note(f"{document.place_of(own.field)}: {document.kind} {document.title}: {own}")
    if not error.problems:
        note(str(error))


def _applied(api: Client, document: ScheduleDocument, wish: Wish) -> ReceiptView | DryRun:
    if document.kind == "source":
        if wish.dry_run:
            return try_source(api, document.spec, wish.expected_version)
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


def _report(document: ScheduleDocument, error: TidegateError) -> None:
    if isinstance(error, InvalidRequest) and error.problems:
        for problem in error.problems:
            note(f"{document.place_of(problem.field)}: {document.kind} {document.title}: {problem}")
    else:
        note(f"{document.place_of('')}: {error}")


def _show(done: Sequence[Outcome], wish: Wish, output: Format) -> None:
    if not done:
        return
    for outcome in done:
        for warning in outcome.answer.warnings:
            note(f"{outcome.namespace}/{outcome.name}: warning: {warning}")
    columns: list[Column] = [
        ("namespace", lambda outcome: outcome.namespace),
        ("name", lambda outcome: outcome.name),
        ("result", lambda outcome: outcome.result),
        ("version", lambda outcome: outcome.answer.version),
    ]
    if wish.kind is None:
        columns.insert(0, ("kind", lambda outcome: outcome.kind))
    if wish.kind != "source":
        columns.append(("next", lambda outcome: outcome.answer.next[0] if outcome.answer.next else None))
    if wish.dry_run:
        columns.append(("changed", lambda outcome: outcome.answer.changed))
        columns.append(("reading", lambda outcome: outcome.answer.reading))
    show_list(done, columns, output)
