from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidegate_cli.demo.accounting import Artefacts, LedgerEntry, account
from tidegate_cli.demo.demo_plan import DAILY, DATASET_OF, LANDING, DemoPlan, plan_from

PLAN: DemoPlan = plan_from(datetime(2026, 3, 3, 5, 0, 0, tzinfo=UTC), 2)


def full_ledger() -> list[LedgerEntry]:
    landed = [
        LedgerEntry(name, instant, None, "launched", state="succeeded") for name in LANDING for instant in PLAN.instants
    ]
    daily = [
        LedgerEntry(name, PLAN.end + timedelta(seconds=3), day.isoformat(), "launched", state="succeeded")
        for name in DAILY
        for day in PLAN.days
    ]
    return landed + daily


def full_lake() -> dict[tuple[str, str], int]:
    return {(dataset, day.isoformat()): 1 for dataset in DATASET_OF.values() for day in PLAN.days}


def test_given_one_entry_and_one_artefact_for_each_expected_occurrence_then_all_is_accounted_for() -> None:
    result = account(PLAN, full_ledger(), full_lake())
    assert result.problems == ()
    assert [(line.schedule, line.expected, line.run, line.artefacts) for line in result.lines] == [
        (name, 2, 2, 2) for name in (*LANDING, *DAILY)
    ]


Change = Callable[[list[LedgerEntry], dict[tuple[str, str], int]], None]


def loses_an_entry(ledger: list[LedgerEntry], _lake: dict[tuple[str, str], int]) -> None:
    del ledger[0]


def doubles_an_entry(ledger: list[LedgerEntry], _lake: dict[tuple[str, str], int]) -> None:
    ledger.append(ledger[-1])


def fires_off_the_plan(ledger: list[LedgerEntry], _lake: dict[tuple[str, str], int]) -> None:
    ledger.append(replace(ledger[0], nominal=PLAN.end))


def loses_an_artefact(_ledger: list[LedgerEntry], lake: dict[tuple[str, str], int]) -> None:
    del lake[("flights.joined", "2013-01-02")]


def doubles_an_artefact(_ledger: list[LedgerEntry], lake: dict[tuple[str, str], int]) -> None:
    lake[("flights.delays", "2013-01-01")] = 2


def lands_an_unknown_day(_ledger: list[LedgerEntry], lake: dict[tuple[str, str], int]) -> None:
    lake[("flights.raw", "2013-01-03")] = 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(loses_an_entry, "land-flights 05:00:08: 0 ledger entries instead of 1", id="an instant is lost"),
        pytest.param(doubles_an_entry, "delays 2013-01-02: 2 ledger entries instead of 1", id="a day came twice"),
        pytest.param(fires_off_the_plan, "land-flights 05:00:24: 1 ledger entries instead of 0", id="one too many"),
        pytest.param(loses_an_artefact, "flights.joined 2013-01-02: 0 artefacts instead of 1", id="nothing on disk"),
        pytest.param(doubles_an_artefact, "flights.delays 2013-01-01: 2 artefacts instead of 1", id="written twice"),
        pytest.param(lands_an_unknown_day, "flights.raw 2013-01-03: 1 artefacts instead of 0", id="a wrong day"),
    ],
)
def test_given_a_single_deviation_then_it_is_the_one_problem(change: Change, problem: str) -> None:
    ledger, lake = full_ledger(), full_lake()
    change(ledger, lake)
    assert account(PLAN, ledger, lake).problems == (problem,)


def test_given_an_occurrence_that_was_not_launched_then_it_is_listed_with_its_reason() -> None:
    ledger, lake = full_ledger(), full_lake()
    ledger[-1] = replace(ledger[-1], disposition="expired", reason="pending_timeout", state=None)
    del lake[("flights.delays", "2013-01-02")]
    result = account(PLAN, ledger, lake)
    assert dict(result.lines[-1].otherwise) == {"expired/pending_timeout": 1}
    assert (result.lines[-1].run, result.lines[-1].artefacts) == (1, 1)
    assert result.problems == (
        "flights.delays 2013-01-02: 0 artefacts instead of 1",
        "delays 2013-01-02: expired/pending_timeout",
    )


def test_given_a_run_that_failed_then_it_is_a_problem_although_it_has_its_entry() -> None:
    ledger = full_ledger()
    ledger[0] = replace(ledger[0], state="failed")
    assert account(PLAN, ledger, full_lake()).problems == ("land-flights 05:00:08: its run is failed",)


def test_given_nothing_at_all_then_every_occurrence_and_artefact_is_missing() -> None:
    nothing: Artefacts = {}
    assert len(account(PLAN, [], nothing).problems) == 2 * PLAN.occurrences
