"""Applies definitions from files, for `apply`, `schedule apply` and `source apply`.

Every document is tried. Each problem is shown with its file and line, and the worst problem decides the exit code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tidegate_cli.apply_order import in_order_of_dependence
from tidegate_cli.exit_codes import CommandFailed, Exit, exit_of
from tidegate_cli.input_files import name_of
from tidegate_cli.interrupts import sigterm_as_exit
from tidegate_cli.output import Column, Format, note, show_list
from tidegate_cli.source_dry_run import try_source
from tidegate_cli.unfinished_apply import Outcome, Progress, report_unfinished
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
class ApplyOptions:
    """Options of an apply.

    Attributes:
        kind: Only kind that the files may hold; None allows all kinds.
        expected_version: Version that the only definition in the files must have now.
        together: Whether all schedules are applied or none.
        create_only: Whether one existing schedule makes the API refuse all.
        request_id: Id of the only request of this apply.
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


def apply_all(api: Client, source: Path, options: ApplyOptions, output: Format) -> None:
    """Applies all definitions of a file or folder, in order of dependence. Prints applied and open definitions even after an error.

    Raises:
        CommandFailed: Some could not be applied; their problems are on stderr.
        TidegateError: The API cannot be used; the remaining definitions were not tried.
    """
    documents = read_documents(source, options.kind)
    if options.expected_version is not None and len(documents) > 1:
        count = f"{name_of(source)} has {len(documents)} {options.plural}"
        raise CommandFailed(f"--expected-version: {count}; give a file with one", Exit.USAGE)
    if options.request_id is not None and (len(documents) > 1 or options.together or options.dry_run):
        raise CommandFailed(
            "--id is for one request: apply one definition, without --dry-run, --all-or-none and --create-only",
            Exit.USAGE,
        )
    documents = in_order_of_dependence(documents)
    if options.together and not options.dry_run:
        _apply_together(api, documents, options, output)
    else:
        _apply_one_by_one(api, documents, options, output)


def _apply_one_by_one(
    api: Client, documents: Sequence[ScheduleDocument], options: ApplyOptions, output: Format
) -> None:
    progress = Progress(documents, options.plural, dry_run=options.dry_run)
    codes: list[Exit] = []
    try:
        with sigterm_as_exit():
            for document in documents:
                try:
                    progress.done.append(Outcome(kind=document.kind, answer=_applied(api, document, options)))
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
        _show(progress.done, options, output)
        report_unfinished(progress, end)
        raise
    _show(progress.done, options, output)
    if codes:
        counts = (
            [f"{progress.refused} of {len(documents)} {options.plural} were not applied"] if progress.refused else []
        )
        counts += [f"{progress.pending} of {len(documents)} have no answer so far"] if progress.pending else []
        raise CommandFailed("; ".join(counts), max(codes))


def _apply_together(api: Client, documents: Sequence[ScheduleDocument], options: ApplyOptions, output: Format) -> None:
    """Applies all schedules or none. A change by another client during the apply can still make some fail."""
    try:
        with sigterm_as_exit():
            receipts = receipts_of(
                lambda: api.apply_schedules(
                    [document.spec for document in documents],
                    create_only=options.create_only,
                    on_update=options.on_update,
                    reason=options.reason,
                    actor=options.actor,
                )
            )
    except InvalidRequest as error:
        _report_places(documents, error)
        raise CommandFailed(f"none of {len(documents)} {options.plural} was applied", exit_of(error)) from error
    except (ApiUnreachable, ApiUnavailable, ApiFailed, KeyboardInterrupt, SystemExit) as end:
        report_unfinished(Progress(documents, options.plural, sent=len(documents)), end)
        raise
    pairs = zip(documents, receipts, strict=True)
    _show([Outcome(kind=document.kind, answer=receipt) for document, receipt in pairs], options, output)
    fail_where_refused(receipts, "applied")


def receipts_of(ask: Callable[[], Sequence[ReceiptView]]) -> Sequence[ReceiptView]:
    """Returns the receipts of several requests. A pending one does not hide the answers of the others."""
    try:
        return ask()
    except AnswerPending as some:
        return some.receipts


def fail_where_refused(receipts: Sequence[ReceiptView], done: str) -> None:
    """Reports refused and pending requests with their reasons. Raises CommandFailed if there are any."""
    pending = [receipt for receipt in receipts if receipt.status == "pending"]
    refused = [receipt for receipt in receipts if receipt.status not in {"accepted", "unchanged", "pending"}]
    for receipt in refused:
        problems = "; ".join(map(str, receipt.errors)) or "another request changed it first"
        note(f"{receipt.namespace}/{receipt.name}: {receipt.status}: {problems}")
    for receipt in pending:
        waits = f"request {receipt.request_id} is stored, and will be applied when a node serves its shard"
        note(f"{receipt.namespace}/{receipt.name}: pending: {'; '.join(map(str, receipt.errors)) or waits}")
    counts = [f"{len(refused)} of {len(receipts)} schedules were not {done}"] if refused else []
    counts += [f"{len(pending)} of {len(receipts)} requests have no answer so far"] if pending else []
    if refused:
        code = Exit.USAGE if any(receipt.status == "rejected" for receipt in refused) else Exit.CONFLICT
        raise CommandFailed("; ".join(counts), code)
    if pending:
        raise CommandFailed("; ".join(counts), Exit.TIMEOUT)


def _report_places(documents: Sequence[ScheduleDocument], error: InvalidRequest) -> None:
    """Reports each problem of a list, such as `[2].trigger.type`, with the file and line of its document."""
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


def _applied(api: Client, document: ScheduleDocument, options: ApplyOptions) -> ReceiptView | DryRun:
    if document.kind == "source":
        if options.dry_run:
            return try_source(api, document.spec, options.expected_version)
        return api.apply_source(
            document.spec,
            expected_version=options.expected_version,
            reason=options.reason,
            actor=options.actor,
            request_id=options.request_id,
        )
    if options.dry_run:
        expected = 0 if options.create_only else options.expected_version
        return api.try_schedule(document.spec, expected_version=expected, on_update=options.on_update)
    receipt = api.apply_schedule(
        document.spec,
        expected_version=options.expected_version,
        on_update=options.on_update,
        reason=options.reason,
        actor=options.actor,
        request_id=options.request_id,
    )
    if receipt.status != "unchanged":
        return receipt
    # The receipt of an unchanged schedule has no next instants, so they are read from the schedule.
    view = api.schedule(str(document.spec["namespace"]), str(document.spec["name"]))
    return receipt.model_copy(update={"next": view.next})


def _report(document: ScheduleDocument, error: TidegateError) -> None:
    if isinstance(error, InvalidRequest) and error.problems:
        for problem in error.problems:
            note(f"{document.place_of(problem.field)}: {document.kind} {document.title}: {problem}")
    else:
        note(f"{document.place_of('')}: {error}")


def _show(done: Sequence[Outcome], options: ApplyOptions, output: Format) -> None:
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
    if options.kind is None:
        columns.insert(0, ("kind", lambda outcome: outcome.kind))
    if options.kind != "source":
        columns.append(("next", lambda outcome: outcome.answer.next[0] if outcome.answer.next else None))
    if options.dry_run:
        columns.append(("changed", lambda outcome: outcome.answer.changed))
        columns.append(("reading", lambda outcome: outcome.answer.reading))
    show_list(done, columns, output)
