"""Compares the demo's expected occurrences with the ledger and with the files on disk. Pure functions.

The demo computes its own list of instants and days. Each of them must have exactly one ledger entry, with its disposition, and exactly
one artefact. Missing, unexpected and doubled ones are problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tidegate_cli.demo.demo_plan import DAILY, DATASET_OF, LANDING, DemoPlan

LAUNCHED = "launched"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Outcome of one occurrence, from the API."""

    schedule: str
    nominal: datetime
    correlation: str | None
    disposition: str
    reason: str = ""
    state: str | None = None

    @property
    def mark(self) -> str:
        """Identity of an occurrence within its schedule: the instant, or the day."""
        return instant_text(self.nominal) if self.schedule in LANDING else self.correlation or "(no day)"


@dataclass(frozen=True, slots=True)
class ScheduleAccount:
    """One line of the account.

    Attributes:
        expected: Number of occurrences by the demo's own list.
        run: Number of launched occurrences in the ledger.
        otherwise: Number of ledger entries by other disposition and reason.
        artefacts: Number of expected artefacts on disk.
    """

    schedule: str
    expected: int
    run: int
    otherwise: Mapping[str, int]
    artefacts: int


@dataclass(frozen=True, slots=True)
class Account:
    """Account of all schedules; `problems` is empty if everything is accounted for."""

    lines: tuple[ScheduleAccount, ...]
    problems: tuple[str, ...]


Artefacts = Mapping[tuple[str, str], int]
"""Number of Parquet files by dataset and day."""


def account(plan: DemoPlan, ledger: Iterable[LedgerEntry], artefacts: Artefacts) -> Account:
    """Returns the account of a demo that has ended."""
    entries = list(ledger)
    marks = Counter((entry.schedule, entry.mark) for entry in entries)
    expected = {(schedule, mark): day for schedule in (*LANDING, *DAILY) for mark, day in _expected(plan, schedule)}
    problems = [
        *_mismatches("ledger entries", dict.fromkeys(expected, 1), marks),
        *_mismatches("artefacts", {(DATASET_OF[name], day): 1 for (name, _), day in expected.items()}, artefacts),
        *(
            f"{entry.schedule} {entry.mark}: {_outcome(entry)}"
            for entry in entries
            if entry.disposition != LAUNCHED or entry.state != "succeeded"
        ),
    ]
    return Account(tuple(_line(plan, name, entries, artefacts) for name in (*LANDING, *DAILY)), tuple(problems))


def instant_text(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%H:%M:%S")


def _expected(plan: DemoPlan, schedule: str) -> list[tuple[str, str]]:
    """Returns the marks of a schedule's occurrences, each with its day."""
    names = [day.isoformat() for day in plan.days]
    marks = [instant_text(instant) for instant in plan.instants] if schedule in LANDING else names
    return list(zip(marks, names, strict=True))


def _mismatches(what: str, expected: Mapping[tuple[str, str], int], found: Mapping[tuple[str, str], int]) -> list[str]:
    return [
        f"{key[0]} {key[1]}: {found.get(key, 0)} {what} instead of {expected.get(key, 0)}"
        for key in sorted(expected.keys() | found.keys())
        if expected.get(key, 0) != found.get(key, 0)
    ]


def _line(plan: DemoPlan, schedule: str, entries: list[LedgerEntry], artefacts: Artefacts) -> ScheduleAccount:
    own = [entry for entry in entries if entry.schedule == schedule]
    return ScheduleAccount(
        schedule=schedule,
        expected=len(plan.days),
        run=sum(entry.disposition == LAUNCHED for entry in own),
        otherwise=Counter(_outcome(entry) for entry in own if entry.disposition != LAUNCHED),
        artefacts=sum(artefacts.get((DATASET_OF[schedule], day.isoformat()), 0) > 0 for day in plan.days),
    )


def _outcome(entry: LedgerEntry) -> str:
    if entry.disposition == LAUNCHED:
        return f"its run is {entry.state}"
    return f"{entry.disposition}/{entry.reason}" if entry.reason else entry.disposition
