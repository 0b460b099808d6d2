"""Report of an apply that was interrupted: how many definitions were applied, and which ones were not tried.

Commands that apply a folder or a file call it. It prints to standard error and sends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, model_serializer

from tidegate_cli.output import note
from tidegate_cli.yaml_documents import ScheduleDocument
from tidegate_client.errors import ApiUnreachable, TidegateError
from tidegate_client.views import DryRun, ReceiptView

SHOWN_MAX = 100
"""Most open definitions that are listed; of the others only the number is shown."""


class Outcome(BaseModel):
    """The API's answer to a definition, with the definition's kind."""

    kind: str
    answer: ReceiptView | DryRun

    @property
    def namespace(self) -> str | None:
        return self.answer.namespace

    @property
    def name(self) -> str | None:
        return self.answer.name

    @property
    def result(self) -> str:
        return self.answer.status if isinstance(self.answer, ReceiptView) else f"would {self.answer.would}"

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.answer.model_dump(mode="json")}


@dataclass(slots=True)
class Progress:
    """Progress of an apply.

    Attributes:
        documents: Definitions in the order in which they are tried.
        plural: Word for the definitions in messages, such as `schedules`.
        done: Answers so far.
        refused: Number of refused definitions.
        pending: Number of requests that are stored and have no answer so far.
        sent: Number of the next documents that are in the open request.
        dry_run: Whether the definitions are only checked.
    """

    documents: Sequence[ScheduleDocument]
    plural: str
    done: list[Outcome] = field(default_factory=list)
    refused: int = 0
    pending: int = 0
    sent: int = 1
    dry_run: bool = False

    @property
    def tried(self) -> int:
        return len(self.done) + self.refused + self.pending


def report_unfinished(progress: Progress, end: BaseException) -> None:
    """Reports the progress of an apply that ended with the exception `end`, and what to do next."""
    open_ones = progress.documents[progress.tried :]
    if not open_ones or (len(progress.documents) == 1 and isinstance(end, TidegateError)):
        return  # All were tried, or the error of the only one says everything.
    participle = "checked" if progress.dry_run else "applied"
    counts = f"{len(progress.done)} of {len(progress.documents)} {progress.plural} were {participle}"
    counts += f", {progress.refused} refused" if progress.refused else ""
    counts += f", {progress.pending} without an answer so far" if progress.pending else ""
    note(f"{'' if isinstance(end, TidegateError) else 'interrupted: '}{counts}; {len(open_ones)} are open:")
    # If the API was unreachable, nothing was sent.
    in_doubt = 0 if progress.dry_run or isinstance(end, ApiUnreachable) else progress.sent
    for number, document in enumerate(open_ones[:SHOWN_MAX]):
        state = "sent, and may have been applied" if number < in_doubt else f"not {participle}"
        note(f"  {document.place_of('')}: {document.kind} {document.title}: {state}")
    if len(open_ones) > SHOWN_MAX:
        note(f"  and {len(open_ones) - SHOWN_MAX} more that were not {participle}")
    if not progress.dry_run:
        note("run the same command again: applied definitions stay unchanged")
