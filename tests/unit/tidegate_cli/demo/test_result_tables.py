from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console
from rich.table import Table

from tidegate_cli.demo.accounting import Account, ScheduleAccount
from tidegate_cli.demo.demo_plan import plan_from
from tidegate_cli.demo.result_tables import account_table, report_table, runs_table, seconds_between, verdict
from tidegate_client.views import OccurrenceView
from tidegate_pipelines.delay_report import Delays

PLAN = plan_from(datetime(2026, 3, 3, 5, 0, 0, tzinfo=UTC), 2)
DUE = PLAN.instants[1]


def printed(table: Table) -> list[list[str]]:
    output = io.StringIO()
    Console(file=output, width=200).print(table)
    return [line.split() for line in output.getvalue().splitlines() if line.strip()]


def test_given_a_landing_run_then_its_row_has_due_day_lateness_duration_and_node() -> None:
    run = OccurrenceView(
        namespace="flights",
        schedule="land-flights",
        version=1,
        job_id="0001-x",
        trigger="time",
        nominal=DUE,
        disposition="launched",
        at=DUE,
        state="succeeded",
        admitted_at=DUE + timedelta(seconds=0.1),
        started_at=DUE + timedelta(seconds=4),
        ended_at=DUE + timedelta(seconds=14.5),
        node="node-2",
    )
    last = printed(runs_table([run], PLAN))[-1]
    assert last == "land-flights 05:00:16 2013-01-02 0.1 s 4.0 s 10.5 s node-2 succeeded".split()


def test_given_a_long_report_then_its_first_rows_are_shown() -> None:
    report = {(f"C{number}", "EWR"): Delays(2, number * 2, 1, 0) for number in range(20)}
    rows = printed(report_table(report))
    assert rows[0][-3:] == ["of", "20", "rows"]
    assert rows[-1] == "C12 EWR 2 12.0 min 1 0".split()


def test_given_an_account_then_other_dispositions_are_listed_with_their_number() -> None:
    line = ScheduleAccount("join-day", 3, 1, {"expired/pending_timeout": 2}, 1)
    assert printed(account_table(Account((line,), ("problem",))))[-1] == [
        *"join-day day 3 1 1 flights.joined 2 expired/pending_timeout".split()
    ]


def test_given_an_end_that_is_not_known_then_its_cell_stays_empty() -> None:
    assert (seconds_between(DUE, None), seconds_between(None, DUE)) == ("", "")


@pytest.mark.parametrize(
    ("problems", "difference", "sentence"),
    [
        pytest.param([], [], "Everything is accounted for, and both computations agree. 61 s in all.", id="in order"),
        pytest.param(["p"], ["d", "d"], "NOT in order: 1 unaccounted, 2 differences. 61 s in all.", id="not in order"),
    ],
)
def test_given_an_outcome_then_the_verdict_says_so(problems: list[str], difference: list[str], sentence: str) -> None:
    assert verdict(problems, difference, 61.2) == sentence
