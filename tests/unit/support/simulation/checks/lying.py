"""Lies about a world that is right, and whether a check objects to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.simulation.checks.case import Case
from tidegate_core.rows.ledger import LedgerRow

MINUTE_MS = 60_000


def found(problems: Iterable[str], invariant: str, *words: str) -> bool:
    return any(each.startswith(f"{invariant}:") and all(word in each for word in words) for each in problems)


def with_rows(case: Case, change: Callable[[LedgerRow], LedgerRow | None]) -> Case:
    """Returns the case with a ledger in which each entry is what `change` makes of it (None: it is not there)."""
    changed = Case(case.world)
    changed.rows = [row for row in map(change, case.rows) if row is not None]
    return changed


def one_of(case: Case, name: str, trigger: str) -> LedgerRow:
    return next(row for row in case.rows_of[name] if row.trigger == trigger and row.disposition == "launched")
