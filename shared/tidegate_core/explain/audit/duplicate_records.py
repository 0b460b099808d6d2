"""Compares facts that the store has twice: entries of the ledger, their index by id, and ended runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from typing import Final

from tidegate_core.explain.audit.findings import Findings
from tidegate_core.explain.audit.shard_snapshot import ShardFacts, Window
from tidegate_core.rows import keys
from tidegate_core.rows.ledger import LedgerPlace, LedgerRow
from tidegate_core.rows.receipt import DAY_S
from tidegate_core.rows.run import Run
from tidegate_core.runs.run_completion import ENDED_RUN_DAYS, ledger_row

RUNS_KEPT_MS: Final = ENDED_RUN_DAYS * DAY_S * 1_000


def crosscheck(facts: ShardFacts, window: Window, now: int) -> Findings:
    """Returns where two rows about the same fact differ, or one row is gone.

    Args:
        facts: Rows of a shard.
        window: Window of nominal times.
        now: Present instant; older ended runs are expired.
    """
    findings = Findings()
    rows = [row for row in facts.ledger if window.has(row.nominal)]
    entries = Counter(row.job_id for row in facts.ledger)
    for row in rows:
        if entries[row.job_id] > 1:
            findings.differs("doubled", _ref(row), row.job_id, "one entry", f"{entries[row.job_id]} entries")
    _check_states(facts, findings)
    _check_places(facts, window, rows, findings)
    _check_runs(facts, window, rows, now, findings)
    _check_ends(facts, window, now, findings)
    return findings


def _check_states(facts: ShardFacts, findings: Findings) -> None:
    """Checks that each schedule with other rows has a state.

    The state outlives all rows that the schedule has made. Without it the schedule does not fire, and the audit cannot recompute its instants.
    """
    stored = {keys.schedule_ref(each.namespace, each.name) for each in facts.states}
    told = {ref for ref, _ in facts.specs}
    told |= {job.ref for job in facts.jobs} | {run.ref for run in facts.runs} | {_ref(row) for row in facts.ledger}
    for ref in sorted(told - stored):
        if _is_of(ref, facts.namespace):
            findings.differs("state_gone", ref, "all of it", "its state (S#)", "what it has made, alone")


def _check_places(facts: ShardFacts, window: Window, rows: list[LedgerRow], findings: Findings) -> None:
    stored = {row.key(facts.shard).sk for row in rows}
    named = {place.entry for place in facts.places}
    for place in facts.places:
        ref, instant = _named_by(place)
        if window.has(instant) and _is_of(ref, facts.namespace) and place.entry not in stored:
            findings.differs("entry_gone", ref, place.job_id, "an entry in the ledger", "only where it was (LJ#)")
    for row in rows:
        if row.key(facts.shard).sk not in named:
            findings.differs("place_gone", _ref(row), row.job_id, "where it is (LJ#)", "nothing")


def _check_runs(facts: ShardFacts, window: Window, rows: list[LedgerRow], now: int, findings: Findings) -> None:
    by_id = {row.job_id: row for row in facts.ledger}
    ended = {run.id for run in facts.ended}
    for run in facts.ended:
        if window.has(run.nominal) and run.id not in by_id and _is_of(run.ref, facts.namespace):
            findings.differs("entry_gone", run.ref, run.id, "an entry in the ledger", "only its ended run (R#)")
            continue
        row = by_id.get(run.id)
        if row is not None and window.has(row.nominal) and (told := _entry_difference(row, run)):
            expected, found = told
            findings.differs("entry_differs", run.ref, run.id, expected, found)
    for row in rows:
        if row.admitted_at is not None and row.at + RUNS_KEPT_MS > now and row.job_id not in ended:
            findings.differs("run_gone", _ref(row), row.job_id, "its ended run (R#)", "nothing")


def _check_ends(facts: ShardFacts, window: Window, now: int, findings: Findings) -> None:
    """Checks the list of ended runs. Both rows of an ended run expire at the same time, but the store removes them one by one."""
    listed = {end.run_key(facts.shard) for end in facts.ends}
    for run in facts.ended:
        is_kept = run.expires_at is None or run.expires_at * 1_000 > now
        is_asked_for = window.has(run.nominal) and _is_of(run.ref, facts.namespace)
        if is_kept and is_asked_for and run.ended_key(facts.shard) not in listed:
            findings.differs("end_gone", run.ref, run.id, "its end in the shard's list (RE#)", "nothing")


def _entry_difference(row: LedgerRow, run: Run) -> tuple[str, str] | None:
    """Returns what the entry of an ended run should say and what it says; None: they agree. The entry is computed from the run."""
    wanted = asdict(replace(ledger_row(run, row.at), expires_at=row.expires_at))
    wrong = {name: (each, said) for name, each in wanted.items() if (said := getattr(row, name)) != each}
    if not wrong:
        return None
    expected, found = ("; ".join(f"{name} {pair[side]}" for name, pair in wrong.items()) for side in (0, 1))
    return expected, found


def _named_by(place: LedgerPlace) -> tuple[str, int]:
    """Returns schedule and nominal time of the entry that a place names, from the key of the entry."""
    _, ref, instant, _ = place.entry.split("#")
    return ref, int(instant)


def _ref(row: LedgerRow) -> str:
    return keys.schedule_ref(row.namespace, row.name)


def _is_of(ref: str, namespace: str | None) -> bool:
    return namespace is None or ref.split("/", 1)[0] == namespace
