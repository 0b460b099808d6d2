"""Constraints hold by what the ledger says of admissions: no run before its delay, too soon after another, or above its rate.

What one of them skipped a job for was so: there was such a run.

Exact, whatever the nodes' clocks say: an admission compares its own instant with those that earlier ones wrote down, and the
ledger has the same instants. What a pending time-out forced is no fault of its own, and counts for the runs after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.checks.request_history import SKEW_MS
from tidegate_core.language.values.durations import parse_duration

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.schedule_definitions import Definition
    from tests.simulation.users.schedule_users import Life
    from tidegate_core.rows.ledger import LedgerRow


def may_abort(definition: Definition, code: str) -> bool:
    """Whether a constraint of the schedule skips jobs with this reason."""
    return any(
        each["type"] == "since_last_run"
        and each.get("on_unmet") == "abort"
        and (code == "ran_recently" or each["of"] != "start")
        for each in definition.constraints
    )


def check_constraints(case: Case) -> Iterator[str]:
    for life in case.lives:
        rows = [
            row for row in case.rows_of.get(life.name, []) if row.admitted_at is not None and not _was_taken_back(row)
        ]
        rows.sort(key=_order_of_admission)
        by_job = waited(case.rows_of.get(life.name, []))
        for constraint in life.definition.constraints:
            for _, of_incarnation in groupby(rows, key=lambda row: row.incarnation):
                yield from _check(life.definition, constraint, list(of_incarnation))
        yield from _check_forced(case, life, rows, by_job)
        yield from _check_skipped(case, life)


def _order_of_admission(row: LedgerRow) -> tuple[str, int, bool]:
    """Of those of one instant the forced ones come last: a constraint let the others go, which shows that these were not there."""
    return (row.incarnation, _admitted(row), row.forced is not None)


def _was_taken_back(row: LedgerRow) -> bool:
    """Cancelled before its program started: it counts for nothing."""
    return row.started_at is None and (row.disposition != "launched" or row.state == "killed")


class Waited(NamedTuple):
    """How a job waited, itself or in the place of others that it stands for or has replaced.

    Attributes:
        since: From the first of their instants on.
        versions: Of the schedule, in which they were made: the earliest of their pending time-outs is its own
            (docs/schedules.md, Overlap), also where it is of a later version than they (seed 38011371).
    """

    since: int
    versions: frozenset[int]


def waited(rows: Sequence[LedgerRow]) -> dict[str, Waited]:
    """Returns by job how it waited."""
    found = {row.job_id: Waited(row.nominal, frozenset({row.version})) for row in rows}
    for row in sorted(rows, key=lambda row: row.nominal):
        taken_by = (row.detail or "").rpartition(" ")[2]
        if row.disposition in ("coalesced", "skipped") and taken_by in found:
            one, other = found[taken_by], found[row.job_id]
            found[taken_by] = Waited(min(one.since, other.since), one.versions | other.versions)
    return found


def _check(definition: Definition, constraint: dict[str, Any], rows: list[LedgerRow]) -> Iterator[str]:
    match constraint["type"]:
        case "delay":
            found = _too_early(rows, parse_duration(constraint["after"]))
        case "since_last_run":
            found = _too_soon(rows, parse_duration(constraint["at_least"]), constraint["of"])
        case "rate":
            found = _too_many(rows, constraint["max"], parse_duration(constraint["per"]), constraint.get("zone"))
        case kind:
            raise AssertionError(f"nobody judges {kind}")
    for row, problem in found:
        if row.forced is None:
            yield f"constraints: {row.job_id} of {definition.name} was admitted at {row.admitted_at}, {problem}"


def _too_early(rows: list[LedgerRow], after: int) -> Iterator[tuple[LedgerRow, str]]:
    """Its own waiting, whoever's place it has in queues."""
    for row in rows:
        if _admitted(row) < row.nominal + after - SKEW_MS:
            yield row, f"{after} ms after {row.nominal} were to be waited for"


def _too_soon(rows: list[LedgerRow], at_least: int, of: str) -> Iterator[tuple[LedgerRow, str]]:
    if of == "start":
        for before, row in pairwise(rows):
            if _admitted(row) < _admitted(before) + at_least:
                yield row, f"less than {at_least} ms after {before.job_id}"
        return
    ended: int | None = None
    for row in rows:
        if ended is not None and _admitted(row) < ended + at_least:
            yield row, f"less than {at_least} ms after the {of} at {ended}"
        if row.started_at is not None and row.ended_at is not None and (of == "finish" or row.state == "succeeded"):
            ended = max(row.ended_at, ended or 0)


def _too_many(rows: list[LedgerRow], most: int, per: int, zone: str | None) -> Iterator[tuple[LedgerRow, str]]:
    """With a zone, which is an offset from UTC here, the hours of its calendar count."""
    for first, row in zip(rows, rows[most:], strict=False):
        end = _admitted(first) + per if zone is None else _end_of_hour(_admitted(first), zone)
        if _admitted(row) < end:
            yield row, f"as number {most + 1} within {per} ms from {first.job_id} on"


def _end_of_hour(instant: int, offset: str) -> int:
    local = datetime.fromtimestamp(instant // 1000, datetime.strptime(offset, "%z").tzinfo)
    return int((local.replace(minute=0, second=0) + timedelta(hours=1)).timestamp()) * 1000


def _check_forced(case: Case, life: Life, rows: list[LedgerRow], by_job: Mapping[str, Waited]) -> Iterator[str]:
    for row in rows:
        if row.forced is None:
            continue
        since, versions = by_job[row.job_id]
        kept = case.pending_timeouts(life, versions)
        if case.shape(life, row.version).late != "force" or not kept:
            yield f"constraints: {row.job_id} of {life.name} was forced, which its schedule does not want"
        elif _admitted(row) < since + min(map(parse_duration, kept)) - SKEW_MS:
            yield f"constraints: {row.job_id} of {life.name} was forced before its time"


def _check_skipped(case: Case, life: Life) -> Iterator[str]:
    """Of a run that a suspend parked later the ledger has its last admission alone."""
    rows, steps = case.rows_of.get(life.name, []), case.steps(life)
    constraint = next((each for each in life.definition.constraints if each["type"] == "since_last_run"), None)
    for row in rows:
        if constraint is None or row.reason not in {"ran_recently", "still_running"}:
            continue
        others = [each for each in rows if each.incarnation == row.incarnation and each.job_id != row.job_id]
        parked_later = any(step.takes_back and step.done >= row.at - SKEW_MS for step in steps)
        if not parked_later and not any(_keeps_from_running(constraint, each, row) for each in others):
            yield f"constraints: {row.job_id} of {life.name} was skipped at {row.at}, {row.reason}, and no run was"


def _keeps_from_running(constraint: dict[str, Any], other: LedgerRow, row: LedgerRow) -> bool:
    """Whether another run was one for which the constraint may have skipped a job, by the instants that both have."""
    of, at_least = constraint["of"], parse_duration(constraint["at_least"])
    if other.admitted_at is None:
        return False
    if row.reason == "still_running":
        return other.admitted_at <= row.at + SKEW_MS and row.at - SKEW_MS <= other.at
    counts = other.started_at is not None and (of == "finish" or other.state == "succeeded")
    last = other.admitted_at if of == "start" else other.ended_at if counts else None
    return last is not None and last - SKEW_MS <= row.at < last + at_least


def _admitted(row: LedgerRow) -> int:
    assert row.admitted_at is not None
    return row.admitted_at
