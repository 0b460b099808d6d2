"""Occurrences of a schedule as the audit finds them: entries of the ledger, open runs and open jobs.

One entry may cover many instants. Instants of an outage have no other entry. Merged jobs have entries too, so the entry of the job that took them
in accounts only for the rest of its instants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run

GAPS: Final = frozenset({"dst_gap", "zone_jump"})
"""Reasons of entries about local times that do not exist, and so are no instants."""
INTO: Final = "into "
PENDING: Final = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Outcome of one occurrence.

    Attributes:
        fate: Outcome that the ledger states for the occurrence; `pending` if it states none so far.
        into: Id of the job into which the occurrence was merged.
    """

    job_id: str
    ref: str
    incarnation: str
    version: int
    trigger: str
    nominal: int
    fate: str
    reason: str = ""
    covered: int | None = None
    covered_from: int | None = None
    into: str | None = None

    @property
    def stands_for(self) -> int:
        return self.covered or 1

    @property
    def begins(self) -> int:
        return self.nominal if self.covered_from is None else self.covered_from

    @property
    def text(self) -> str:
        reason = f"/{self.reason}" if self.reason else ""
        return f"{self.fate}{reason} as {self.job_id}"


def of_row(row: LedgerRow) -> Entry:
    into = (row.detail or "").removeprefix(INTO) if row.disposition == "coalesced" else None
    return _entry(row, row.job_id, row.disposition, row.reason, into)


def of_open(pending: Job | Run) -> Entry:
    return _entry(pending, pending.id, PENDING)


def _entry(of: LedgerRow | Job | Run, job_id: str, fate: str, reason: str = "", into: str | None = None) -> Entry:
    return Entry(
        job_id=job_id,
        ref=keys.schedule_ref(of.namespace, of.name),
        incarnation=of.incarnation,
        version=of.version,
        trigger=of.trigger,
        nominal=of.nominal,
        fate=fate,
        reason=reason,
        covered=of.covered,
        covered_from=of.covered_from,
        into=into,
    )


def all_entries(jobs: Iterable[Job], runs: Iterable[Run], ledger: Iterable[LedgerRow]) -> list[Entry]:
    """Returns an entry for each row of the ledger, for each other open run, and for each other open job."""
    rows = [of_row(row) for row in ledger]
    known = {row.job_id for row in rows}
    open_runs = {run.id: of_open(run) for run in runs if run.id not in known}
    open_jobs = [of_open(job) for job in jobs if job.id not in known and job.id not in open_runs]
    return [*rows, *open_runs.values(), *open_jobs]


InstantsOf = Callable[[Entry], Sequence[int]]


def accounted(
    entries: Sequence[Entry], spanned: InstantsOf, may_be_due: Callable[[int], bool]
) -> Iterator[tuple[Entry, int]]:
    """Yields each instant with the entry that accounts for it.

    Args:
        entries: Entries of a time trigger, of one incarnation of a schedule.
        spanned: Function that returns the trigger's instants from the first to the last of an entry.
        may_be_due: Function that says whether an instant may have an occurrence.
    """
    merged: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.into is not None:
            merged.setdefault(entry.into, []).append(entry)
    apart = {instant for entry in entries if entry.job_id not in merged for instant in spanned(entry)}
    settled: set[int] = set()
    for entry in sorted(entries, key=lambda each: each.nominal):
        parts = merged.get(entry.job_id)
        if parts is None or entry.covered is None:
            own: Sequence[int] = spanned(entry)
        else:
            theirs = apart.union(*(spanned(part) for part in parts))
            own = _left(entry, parts, [each for each in spanned(entry) if each not in theirs], settled, may_be_due)
            settled.update(own)
        for instant in own:
            yield entry, instant


def _left(
    entry: Entry, parts: Sequence[Entry], own: Sequence[int], settled: set[int], may_be_due: Callable[[int], bool]
) -> Sequence[int]:
    """Returns the instants for which an entry accounts alone, after other jobs were merged into it.

    The span of an entry may have holes: occurrences that ended before the merge, and suspended instants.

    Args:
        entry: Entry of the job into which others were merged.
        parts: Entries of the merged jobs.
        own: Instants in the span for which neither the parts nor entries of single jobs account.
        settled: Instants for which older entries account. If too few others are left, an instant is there twice.
        may_be_due: Function that says whether an instant may have an occurrence.
    """
    number = entry.covered - sum(part.stands_for for part in parts) if entry.covered else 1
    beside = [each for each in own if each not in settled]
    if len(beside) >= number:
        own = beside
    if len(own) > number:
        own = [each for each in own if each == entry.nominal or may_be_due(each)]
    # The entry has the number of its instants. They are the newest, because a job takes in others when it is made.
    return own[max(0, len(own) - number) :]
