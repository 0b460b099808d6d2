"""Report of an apply that was interrupted: how many definitions were applied, and which ones were not tried.

Called by the commands that apply a folder or a file. Prints to standard error, and sends nothing.
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
"""Open definitions that are listed one by one; the number of the others is told."""


class Outcome(BaseModel):
    """What became of a definition: the API's answer, with its kind."""

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
    """How far an apply has come.

    Attributes:
        documents: All of them, in the order in which they are tried.
        plural: What they are together, such as `schedules`.
        done: Answers so far.
        refused: How many were refused.
        pending: How many requests were taken, and are not answered yet.
        sent: How many of the next documents are in the request that is under way.
        dry_run: Whether they are only checked.
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


def tell_unfinished(progress: Progress, end: BaseException) -> None:
    """Says how far an apply came that `end` ended, and what to do."""
    open_ones = progress.documents[progress.tried :]
    if not open_ones or (len(progress.documents) == 1 and isinstance(end, TidegateError)):
        return  # All were tried; or the error says it all.
    participle = "checked" if progress.dry_run else "applied"
    counts = f"{len(progress.done)} of {len(progress.documents)} {progress.plural} were {participle}"
    counts += f", {progress.refused} refused" if progress.refused else ""
    counts += f", {progress.pending} taken but not answered yet" if progress.pending else ""
    note(f"{'' if isinstance(end, TidegateError) else 'interrupted: '}{counts}; {len(open_ones)} are open:")
    # Where nobody answered the call, nothing was sent.
    in_doubt = 0 if progress.dry_run or isinstance(end, ApiUnreachable) else progress.sent
    for number, document in enumerate(open_ones[:SHOWN_MAX]):
        state = "sent, and may have been applied" if number < in_doubt else f"not {participle}"
        note(f"  {document.place_of('')}: {document.kind} {document.title}: {state}")
    if len(open_ones) > SHOWN_MAX:
        note(f"  and {len(open_ones) - SHOWN_MAX} more that were not {participle}")
    if not progress.dry_run:
        note("run the same command again: what was applied stays as it is (unchanged)")
