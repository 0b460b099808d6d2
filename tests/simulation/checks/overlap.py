"""Overlap (I1, order): what a schedule's policy ended, it ended truly, and what stands for others stands for each of them once.

That `skip` never lets a run begin beside another one is the same as what `limits` checks; here is whether what was skipped had a
reason, and whether what was merged is told to a program.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.fires import MERGED, at_text, merged_into
from tests.simulation.checks.request_history import SKEW_MS
from tidegate_core.rows import keys

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.schedule_users import Life
    from tidegate_core.rows.ledger import LedgerRow

ENDED_UNDER: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("skipped", "overlap"): frozenset({"skip"}),
    ("skipped", "replaced"): frozenset({"keep_latest", "cancel_running"}),
    ("skipped", "max_pending"): frozenset({"queue"}),
    (MERGED, "overlap"): frozenset({"coalesce"}),
    (MERGED, "max_pending"): frozenset({"queue"}),
    ("cancelled", "overlap"): frozenset({"cancel_running"}),
}
"""How a policy ends an occurrence, and which policies do."""
IN_ORDER: Final = frozenset({"queue", "keep_latest", "coalesce", "cancel_running"})
"""One after another, in the order of their nominals."""


def check_overlap(case: Case) -> Iterator[str]:
    for life in case.lives:
        rows = case.rows_of.get(life.name, [])
        yield from _check_merged(life, rows)
        yield from _check_order(case, life, rows)
        for row in rows:
            problem = _problem(case, life, row)
            if problem is not None:
                yield f"I1: {row.job_id} of {life.name} is {row.disposition}/{row.reason}, and {problem}"


def _problem(case: Case, life: Life, row: LedgerRow) -> str | None:
    """Returns what contradicts an entry that a policy made, or None."""
    match row.disposition, row.reason:
        case "skipped", "overlap":
            return _was_blocked(case, life, row)
        case "skipped", "replaced":
            by = (row.detail or "").removeprefix("replaced by ")
            newer = case.rows_by_id.get(by, [])
            return None if any(each.nominal >= row.nominal for each in newer) else "nothing newer is in its place"
        case disposition, _ if disposition == MERGED:
            into = case.rows_by_id.get((row.detail or "").removeprefix("into "), [])
            whole = any(_spans(each, row) for each in into)
            return None if whole else f"nothing says that it stands for it: {[each.covered for each in into]}"
        case _:
            return None


def _was_blocked(case: Case, life: Life, row: LedgerRow) -> str | None:
    """The runs that it names were open then, and as many as may be.

    One that a suspend parked later, before its program began, is admitted a second time: the ledger has that admission.
    """
    parked_later = any(step.takes_back and step.done >= row.at - SKEW_MS for step in case.steps(life))
    blockers = (row.detail or "").removeprefix("still open: ").split(", ")
    open_then = [
        run
        for run in blockers
        for each in case.rows_by_id.get(run, [])
        if each.name == life.name
        and each.at >= row.at - SKEW_MS
        and (parked_later or (each.admitted_at or row.at) <= row.at + SKEW_MS)
    ]
    most = case.shape(life, row.version).most or 1
    return None if len(open_then) >= most else f"of the runs that it names {len(open_then)} were open, {most} may be"


def _spans(into: LedgerRow, row: LedgerRow) -> bool:
    begins = row.nominal if row.covered_from is None else row.covered_from
    return into.covered_from is not None and into.covered_from <= begins and row.nominal < into.nominal


def _check_merged(life: Life, rows: list[LedgerRow]) -> Iterator[str]:
    """What is merged into a job is a part of what it says to stand for, and something is its own."""
    into = merged_into(rows)
    by_id = {row.job_id: row for row in rows}
    for job, parts in into.items():
        whole = by_id.get(job)
        own = -1 if whole is None else (whole.covered or 1) - sum(part.covered or 1 for part in parts)
        if own < 1:
            yield f"I1: {job} of {life.name} says that it stands for {whole and whole.covered}, {parts} are merged into it"


def _check_order(case: Case, life: Life, rows: list[LedgerRow]) -> Iterator[str]:
    """Where one runs at a time they are admitted in their order, so that at most the newest ever waited.

    What was missed in an outage is made up for in an order of its own: what is due now goes beside it. A fact that was written later,
    because an outage has gone on, says nothing of how it was made.
    """
    if not life.definition.is_timed:
        return
    lives: defaultdict[tuple[str, int, bool], list[LedgerRow]] = defaultdict(list)
    for row in rows:
        definition = case.shape(life, row.version)
        in_order = definition.policy in IN_ORDER and definition.most == 1
        if in_order and row.trigger == "time" and row.admitted_at is not None:
            facts = case.record.outages.get(keys.shard_of_run(row.job_id), {})
            was_missed = any(
                row.nominal in fact and by_then <= case.made_as[row.job_id] for fact, by_then in facts.items()
            )
            lives[row.incarnation, row.version, was_missed].append(row)
    for mine in lives.values():
        mine.sort(key=lambda row: row.admitted_at or 0)
        for before, after in itertools.pairwise(mine):
            if after.nominal < before.nominal and (before.admitted_at or 0) + SKEW_MS < (after.admitted_at or 0):
                yield f"order: {life.name} {at_text(after.nominal)} was admitted after {at_text(before.nominal)}"
