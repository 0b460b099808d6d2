"""Tables that the demo prints at its end. They only show results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from rich import box
from rich.table import Table

from tidegate_cli.demo.accounting import Account, instant_text
from tidegate_cli.demo.demo_plan import DATASET_OF, LANDING, DemoPlan
from tidegate_client.views import OccurrenceView
from tidegate_pipelines.delay_report import Report, ranked

REPORT_ROWS = 8


def runs_table(occurrences: Iterable[OccurrenceView], plan: DemoPlan) -> Table:
    """Returns the table of runs, in the order of their nominal times."""
    table = _table("Runs")
    day_of = dict(zip(plan.instants, plan.days, strict=True))
    for column in ("schedule", "due", "day"):
        table.add_column(column, no_wrap=True)
    # `launched after` ends at the admission; `lateness` ends at the start gate, as in `tidegate run list`.
    for column in ("launched after", "lateness", "duration"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("node", "state"):
        table.add_column(column, no_wrap=True)
    for run in sorted(occurrences, key=lambda run: (run.nominal, run.schedule)):
        table.add_row(
            run.schedule,
            instant_text(run.nominal),
            run.correlation or str(day_of.get(run.nominal, "")),
            seconds_between(run.nominal, run.admitted_at),
            seconds_between(run.nominal, run.started_at),
            seconds_between(run.started_at, run.ended_at),
            run.node or "",
            run.state or run.disposition,
        )
    return table


def report_table(report: Report) -> Table:
    """Returns the first rows of the report, largest mean delay first."""
    table = _table(f"Report: departure delays, first {REPORT_ROWS} of {len(report)} rows")
    table.add_column("carrier")
    table.add_column("origin")
    for column in ("flights", "mean delay", "in rain", "without weather"):
        table.add_column(column, justify="right")
    for (carrier, origin), delays in ranked(report)[:REPORT_ROWS]:
        table.add_row(
            carrier,
            origin,
            str(delays.flights),
            f"{delays.mean_minutes:.1f} min",
            str(delays.flights_in_rain),
            str(delays.flights_without_weather),
        )
    return table


def account_table(account: Account) -> Table:
    """Returns the table of expected, run and skipped occurrences of each schedule."""
    table = _table("Occurrences")
    table.add_column("schedule")
    table.add_column("one for each")
    for column in ("expected", "run", "artefacts"):
        table.add_column(column, justify="right")
    table.add_column("skipped, expired, cancelled")
    for line in account.lines:
        table.add_row(
            line.schedule,
            "instant" if line.schedule in LANDING else "day",
            str(line.expected),
            str(line.run),
            f"{line.artefacts} {DATASET_OF[line.schedule]}",
            ", ".join(f"{count} {what}" for what, count in sorted(line.otherwise.items())) or "none",
        )
    return table


def _table(title: str) -> Table:
    # Without frames, so that it is readable in a pipe too.
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def seconds_between(earlier: datetime | None, later: datetime | None) -> str:
    """Returns a time span in seconds, or an empty text if one end is unknown."""
    return f"{(later - earlier).total_seconds():.1f} s" if earlier is not None and later is not None else ""


def verdict(problems: Sequence[str], difference: Sequence[str], seconds: float) -> str:
    """Returns the demo's last sentence."""
    if not problems and not difference:
        return f"Everything is accounted for, and both computations agree. {seconds:.0f} s in all."
    return f"NOT in order: {len(problems)} unaccounted, {len(difference)} differences. {seconds:.0f} s in all."
